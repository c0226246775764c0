"""Trains, resumes, evaluates and plots meta-reinforcement learning from the command line."""
import importlib
import inspect
import json
import re
import sys
from typing import Optional, Sequence

from meta_policy_search import __version__, registry
from meta_policy_search.cli.flags import Parser
from meta_policy_search.cli.train import PROG, resume, run_tool, train
from meta_policy_search.envs import available_envs, get_env_class
from meta_policy_search.utils.checks import did_you_mean
from meta_policy_search.utils.progress import print_line, text_table

COMMANDS = {
    "demo": "adapts a pretrained half cheetah to both directions; writes a picture and a video",
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
"""Commands and their descriptions. Commands without a function in this module are modules with a function `run`."""


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
    registry.search_current_folder()  # snapshots may need the user's modules
    if name in ("envs", "algorithms", "pretrained"):
        parser = Parser(f"{PROG} {name}", COMMANDS[name])
        parser.add_argument("--json", action="store_true", help="print as JSON")
        return run_tool(parser, lambda arguments: _list(name, arguments.json), flags)
    if name in ("train", "resume"):
        return (_train if name == "train" else resume)(flags)
    return run_tool(make_parser(name), importlib.import_module(f"meta_policy_search.cli.{name}").run, flags)


def make_parser(name: str) -> Parser:
    """Returns the parser of a command that is a module of this package."""
    module = importlib.import_module(f"meta_policy_search.cli.{name}")
    parser = Parser(f"{PROG} {name}", module.__doc__)
    module.add_flags(parser)
    return parser


def _train(argv: Sequence[str]) -> int:
    parser = Parser(f"{PROG} train", "Trains an algorithm.", usage=f"{PROG} train ALGORITHM [FLAGS]")
    names = ", ".join(registry.available_algorithms())
    parser.add_argument("algorithm", metavar="ALGORITHM", help=f"one of {names} (case, hyphens and underscores are "
                        "ignored), or MODULE:NAME of a class; train ALGORITHM --help prints its settings")
    parser.check_first(argv, f"expected the algorithm before the flags, as in {PROG} train promp --env NAME")
    arguments = parser.parse_args(argv[:1])
    try:
        name = registry.find_algorithm(arguments.algorithm)
    except ValueError as error:
        parser.error(str(error))
    return train(name, argv[1:], f"{PROG} train {name}", registry.DESCRIPTIONS.get(name))


def _list(name: str, as_json: bool) -> None:
    """Prints environments, algorithms or pretrained policies with their descriptions."""
    import meta_policy_search as mps

    if name == "pretrained":
        policies = mps.pretrained()
        print_line(json.dumps([policy._asdict() for policy in policies], indent=2) if as_json else
                   "\n".join(map(str, policies)))
        return
    docs = ({key: registry.DESCRIPTIONS.get(key) or registry.get_algorithm(key).__doc__
             for key in registry.available_algorithms()} if name == "algorithms" else
            {key: get_env_class(key).__doc__ for key in available_envs()})
    sentences = {key: " ".join(inspect.cleandoc(doc or "").split("\n\n")[0].split()) for key, doc in docs.items()}
    sentences = {key: re.split(r"(?<=\w\w)[.;] |\.$", text)[0] for key, text in sentences.items()}
    print_line(json.dumps(sentences, indent=2) if as_json else
               text_table([[name[:-1], "description"], *map(list, sentences.items())], right=()))
