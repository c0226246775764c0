"""The command `python -m meta_policy_search sweep`."""
import sys

from meta_policy_search.cli.sweep import main

if __name__ == "__main__":
    sys.exit(main())
