"""`python -m meta_policy_search`: the command line of the package."""
import contextlib
import os
import signal
import sys


def main() -> int:
    """Runs the command line; returns the exit status. Until a command starts, Ctrl-C ends the process silently."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with contextlib.suppress(FileNotFoundError):  # the current folder was deleted
        if sys.path[0] in ("", os.getcwd()) and not os.path.isdir("meta_policy_search"):
            del sys.path[0]  # `main` appends the current folder: its modules do not replace installed ones
    from meta_policy_search.cli.main import main

    return main()


if __name__ == "__main__":
    sys.exit(main())
