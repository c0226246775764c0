"""Trains, resumes, evaluates and plots meta-reinforcement learning from the command line."""
import argparse
import importlib
import inspect
import json
import re
import sys
from typing import Optional, Sequence

from meta_policy_search import __version__
from meta_policy_search.cli.flags import Parser
from meta_policy_search.cli.train import PROG, resume, run_tool
from meta_policy_search.registry import describe_algorithms, find_algorithm, get_entry
from meta_policy_search.utils.checks import did_you_mean
from meta_policy_search.utils.progress import text_table
from meta_policy_search.utils.user_modules import search_current_folder

COMMANDS = {
    "train": "trains an algorithm: train ALGORITHM --env NAME",
    "resume": "resumes a run: resume RUN_FOLDER",
    "evaluate": "tests the policy of a run in sampled tasks",
    "plot": "plots learning curves or trajectories of runs",
    "render": "renders a video of the policy of a run",
    "runs": "lists runs and their results",
    "sweep": "trains with all combinations of some settings",
    "envs": "lists the environments",
    "algorithms": "lists the algorithms",
    "pretrained": "lists the pretrained policies",
}
"""Commands and their descriptions. Commands without a function in this module are modules with a function `main`."""


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a command.

    Args:
        argv: the command and its flags; default None, the flags of this process.

    Returns:
        The exit status.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = Parser(PROG, f"{__doc__}\n\ncommands:\n"
                    + "\n".join(f"  {name:<12}{description}" for name, description in COMMANDS.items())
                    + f"\n\n{PROG} COMMAND --help prints the flags of a command.", usage=f"{PROG} COMMAND [FLAGS]")
    parser.add_argument("--version", action="version", version=f"meta_policy_search {__version__}")
    if not argv or argv[0].startswith("-"):
        parser.parse_args(argv or ["--help"])
    name, *flags = argv
    if name not in COMMANDS:
        parser.error(f"expected one of the commands {', '.join(COMMANDS)}, got {name!r}{did_you_mean(name, COMMANDS)}")
    search_current_folder()  # snapshots may need the user's modules
    lists = {"envs": _list_envs, "algorithms": _list_algorithms, "pretrained": _list_pretrained}
    if name in lists:
        return run_tool(_list_parser(name), lists[name], flags)
    if name in ("train", "resume"):
        return (_train if name == "train" else resume)(flags)
    return importlib.import_module(f"meta_policy_search.cli.{name}").main(flags)


def _train(argv: Sequence[str]) -> int:
    from meta_policy_search.cli.train import train

    known = describe_algorithms()
    parser = Parser(f"{PROG} train", "Trains an algorithm.", usage=f"{PROG} train ALGORITHM [FLAGS]")
    parser.add_argument("algorithm", metavar="ALGORITHM", help=f"one of {', '.join(known)} (case, hyphens and "
                        "underscores are ignored), or MODULE:NAME of a class; train ALGORITHM --help prints its "
                        "settings")
    arguments = parser.parse_args(argv[:1])
    try:
        name = find_algorithm(arguments.algorithm)
        entry = get_entry(name)
    except ValueError as error:
        parser.error(str(error))
    return train(name, argv[1:], f"{PROG} train {name}", entry.description)


def _list_envs(arguments: argparse.Namespace) -> None:
    from meta_policy_search.envs import available_envs, get_env_class

    _print_list("environment", {name: get_env_class(name).__doc__ for name in available_envs()}, arguments)


def _list_algorithms(arguments: argparse.Namespace) -> None:
    _print_list("algorithm", dict(describe_algorithms()), arguments)


def _list_pretrained(arguments: argparse.Namespace) -> None:
    import meta_policy_search as mps

    policies = mps.pretrained()
    print(json.dumps([policy._asdict() for policy in policies], indent=2) if arguments.json else
          "\n".join(map(str, policies)))


def _list_parser(name: str) -> Parser:
    parser = Parser(f"{PROG} {name}", COMMANDS[name])
    parser.add_argument("--json", action="store_true", help="print as JSON")
    return parser


def _print_list(kind: str, docs: dict[str, Optional[str]], arguments: argparse.Namespace) -> None:
    """Prints names with the first sentence of their docstrings."""
    texts = {name: " ".join(inspect.cleandoc(doc or "").split("\n\n")[0].split()) for name, doc in docs.items()}
    texts = {name: re.split(r"(?<=\w\w)[.;] |\.$", text)[0] for name, text in texts.items()}
    print(json.dumps(texts, indent=2) if arguments.json else
          text_table([[kind, "description"], *map(list, texts.items())], right=()))
