"""Trains, resumes, evaluates and plots meta-reinforcement learning from the command line."""
import argparse
import importlib
import inspect
import json
import re
import sys
from typing import Optional, Sequence

from meta_policy_search import __version__
from meta_policy_search.cli.flags import Parser, text_table
from meta_policy_search.cli.training import INTERRUPTED, PROG, run_tool
from meta_policy_search.utils.checks import did_you_mean

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
    lists = {"envs": _list_envs, "algorithms": _list_algorithms, "pretrained": _list_pretrained}
    if name in lists:
        return run_tool(_list_parser(name), lists[name], flags)
    command = {"train": _train, "resume": _resume}.get(name)
    return (importlib.import_module(f"meta_policy_search.cli.{name}").main if command is None else command)(flags)


def _train(argv: Sequence[str]) -> int:
    from meta_policy_search.cli import algorithms, training

    parser = Parser(f"{PROG} train", "Trains an algorithm.", usage=f"{PROG} train ALGORITHM [FLAGS]")
    parser.add_argument("algorithm", metavar="ALGORITHM", help=f"one of {', '.join(algorithms.CONFIGS)} (case, hyphens "
                        "and underscores are ignored), or MODULE:NAME of a class; train ALGORITHM --help prints its "
                        "settings")
    arguments = parser.parse_args(argv[:1])
    try:
        config_class = algorithms.find_config(arguments.algorithm)
    except ValueError as error:
        parser.error(str(error))
    prog = f"{PROG} train {config_class.algorithm}"
    return training.run(config_class, argv[1:], prog, config_class.__doc__)


def _resume(argv: Sequence[str]) -> int:
    from meta_policy_search import run_folder
    from meta_policy_search.cli import algorithms, record, training

    parser = Parser(f"{PROG} resume", "Resumes a run. The result is the same as that of an uninterrupted run.",
                    usage=f"{PROG} resume RUN_FOLDER [--n_itr N] [--SETTING VALUE ...]")
    parser.add_argument("run_folder", metavar="RUN_FOLDER", help="folder of the run; --n_itr N increases the final "
                        "iteration, flags of parallel sampling and --plot_gap may differ from the run")
    folder = parser.parse_args(argv[:1]).run_folder
    try:
        params = record.read_params(folder)
        is_of_trainer = params.get("made_by") == run_folder.MADE_BY_TRAINER
        config_class = None if is_of_trainer else algorithms.find_config(params.get("algorithm", ""))
    except ValueError as error:
        parser.error(f"expected the folder of a run, got {folder}: {error}")
    if config_class is not None:
        return training.run(config_class, ["--resume", folder, *argv[1:]], parser.prog, None)
    parser.add_argument("--n_itr", type=int, default=params["settings"].get("n_itr"), metavar="N")
    return run_tool(parser, _resume_in_python, argv)


def _resume_in_python(arguments: argparse.Namespace) -> int:
    import meta_policy_search as mps

    run = mps.load_run(arguments.run_folder).resume(arguments.n_itr)
    return INTERRUPTED if run.trainer.itr < arguments.n_itr else 0


def _list_envs(arguments: argparse.Namespace) -> None:
    from meta_policy_search.envs import available_envs, get_env_class

    _print_list("environment", {name: get_env_class(name).__doc__ for name in available_envs()}, arguments)


def _list_algorithms(arguments: argparse.Namespace) -> None:
    from meta_policy_search.cli.algorithms import CONFIGS

    _print_list("algorithm", {name: config.__doc__ for name, config in CONFIGS.items()}, arguments)


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
