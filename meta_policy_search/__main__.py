"""`python -m meta_policy_search`: the command line of the package."""
import signal
import sys


def main() -> int:
    """Runs the command line; returns the exit status. Until a command starts, Ctrl-C ends the process silently."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from meta_policy_search.cli.main import main

    return main()


if __name__ == "__main__":
    sys.exit(main())
