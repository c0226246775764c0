"""The command `python -m meta_policy_search evaluate`."""
import sys

from meta_policy_search.cli.evaluate import main

if __name__ == "__main__":
    sys.exit(main())
