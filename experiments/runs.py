"""The command `python -m meta_policy_search runs`."""
import sys

from meta_policy_search.cli.runs import main

if __name__ == "__main__":
    sys.exit(main())
