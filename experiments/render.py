"""The command `python -m meta_policy_search render`."""
import sys

from meta_policy_search.cli.render import main

if __name__ == "__main__":
    sys.exit(main())
