"""The command `python -m meta_policy_search plot`."""
import sys

from meta_policy_search.cli.plot import main

if __name__ == "__main__":
    sys.exit(main())
