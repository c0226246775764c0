"""Saves the policy of a run's last snapshot as arrays, without code.

    python docs/notebooks/save_weights.py RUN_FOLDER FILE.npz

Snapshots run code when they are loaded. Use only runs that you trust.
"""
import argparse
import sys
from typing import Optional, Sequence

from meta_policy_search.utils.snapshotter import load_snapshot


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Saves the file named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_folder", metavar="RUN_FOLDER", help="folder of a run of one of the experiments")
    parser.add_argument("file", metavar="FILE.npz", help="file to write")
    arguments = parser.parse_args(argv)
    snapshot = load_snapshot(arguments.run_folder)
    snapshot["policy"].save_npz(arguments.file)
    print(f"{arguments.file}: the policy after iteration {snapshot['itr']} of {arguments.run_folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
