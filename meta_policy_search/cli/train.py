"""The commands `train` and `resume`, and the training scripts.

The sources of settings are the defaults of the script, `--config_file`, `--smoke` and flags. Later sources override
earlier sources.
"""
import argparse
import functools
import os
import signal
import sys
from typing import Any, Callable, Mapping, Optional, Sequence

from meta_policy_search.cli.flags import Parser, add_flag, make_training_parser
from meta_policy_search.envs import find_env
from meta_policy_search.registry import search_current_folder
from meta_policy_search.run_folder import read_params
from meta_policy_search.run_spec import FIXED_OPTIONS
from meta_policy_search.samplers.errors import EnvWorkerError, WorkerDiedError
from meta_policy_search.settings import SMOKE, read_json, settings_of
from meta_policy_search.utils.log_outputs import LOG_FILE, append_text
from meta_policy_search.utils.progress import print_line
from meta_policy_search.utils.snapshotter import BEST_FILE, SnapshotError

PROG = "meta-policy-search"  # name of the command
INTERRUPTED = 130  # exit status after Ctrl-C, as in shells
USER_ERRORS = (EnvWorkerError, ImportError, NotImplementedError, OSError, SnapshotError, TypeError, ValueError)
"""Errors of wrong flags, files or settings, which are reported in one line without a traceback."""
FAILURES = (FloatingPointError, WorkerDiedError)
"""Errors of a computation that has started; reported in the same way, with status 1."""
RUN_FAILURES = (SnapshotError, OSError, *FAILURES)
"""The same for `train` and `resume`, which write files."""

COMMAND_DEFAULTS = {"plot_gap": 20}
"""Defaults of the command that differ from those of `meta_policy_search.train`."""


def make_main(algorithm: str, published: Mapping[str, Any], path: str, description: Optional[str]
              ) -> Callable[[Optional[Sequence[str]]], int]:
    """Returns the function `main(argv=None)` of a training script; see `train`.

    Args:
        algorithm: name of the algorithm.
        published: settings of the script that differ from the defaults.
        path: path of the script.
        description: first part of the help text.
    """
    def main(argv: Optional[Sequence[str]] = None) -> int:
        return train(algorithm, argv, os.path.basename(path), description, published)

    return main


def train(algorithm: str, argv: Optional[Sequence[str]], prog: str, description: Optional[str],
          published: Mapping[str, Any] = {}) -> int:  # noqa: B006
    """Starts or resumes a run, trains and prints the result.

    Args:
        algorithm: name of the algorithm, or MODULE:NAME of its class.
        argv: command line flags; None for the flags of this process.
        prog: name of the command in messages.
        description: first part of the help text.
        published: settings of a script that differ from the defaults.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.

    Raises:
        SystemExit: with status 2 and a one-line message if a flag, file or setting is wrong; with status 1 if rows or
            snapshots can no longer be written, a worker process dies or numbers are no longer finite.
    """
    import meta_policy_search as mps

    search_current_folder()
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        if (env := _value_of("--env", argv)) is not None:
            find_env(env)  # before TensorFlow is imported, which takes seconds
        from meta_policy_search.run import find_algo_class, others_with, settings_of_algorithm

        algo_class: Any = find_algo_class(algorithm)
        settings = settings_of_algorithm(algo_class, _value_of("--policy", argv))
    except USER_ERRORS as error:
        Parser(prog, None).error(str(error))
    defaults = {**algo_class.default_settings, **COMMAND_DEFAULTS, **published}
    settings = {name: each._replace(default=defaults.get(name, each.default)) for name, each in settings.items()}
    parser = make_training_parser(prog, description, algorithm, settings, settings_of([mps.train], ()))
    parser.owners = functools.partial(others_with, algo_class)

    def start(config_file: Optional[str] = None, smoke: bool = False, **given: Any) -> Any:
        content = {} if config_file is None else read_json(config_file)
        if "grid" in content:
            raise ValueError(f"{config_file}: expected the settings of one run, got a sweep")
        values = {"env": defaults["env"], **COMMAND_DEFAULTS, **published, **content}
        if not {"env", "settings"} & {*published, *content, *given}:
            print_line(f"--env was not given: training on {values['env']}, the default of {algorithm}; `{PROG} envs` "
                       "lists all environments")
        if isinstance(content.get("settings"), dict):  # the params.json of a run
            options = {name: value for name, value in content.get("options", {}).items() if name in settings}
            names = content.get("given") or content["settings"]
            values = {**options, **{name: value for name, value in content["settings"].items() if name in names}}
        elif found := {"algo", "algorithm"} & content.keys():
            raise ValueError(f"{config_file}: expected no {min(found)!r}, because the command already names the "
                             f"algorithm {algorithm}")
        is_smoke = smoke or os.environ.get("SMOKE", "0") not in ("", "0")
        sizes = {name: value for name, value in SMOKE.items() if name in settings and is_smoke}
        return mps.train(algo=algorithm, **{**values, **sizes, **given})

    return run_tool(parser, lambda arguments: report(start(**vars(arguments))), argv, RUN_FAILURES)


def resume(argv: Sequence[str]) -> int:
    """Resumes a run; returns the exit status, see `train`."""
    parser = Parser(f"{PROG} resume", "Resumes a run. The result is the same as that of an uninterrupted run.",
                    usage=f"{PROG} resume RUN_FOLDER [--n_itr N] [--SETTING VALUE ...]",
                    argument_default=argparse.SUPPRESS)
    parser.add_argument("run_folder", metavar="RUN_FOLDER", help="folder of the run")
    run: Any = None  # without a folder, `parse_args` ends the program
    parser.check_first(argv, "RUN_FOLDER: expected the folder before the flags")
    if argv and not argv[0].startswith("-"):
        from meta_policy_search.run import load_run, settings_of_algorithm

        try:
            run = load_run(argv[0])
        except USER_ERRORS as error:  # a missing or damaged snapshot is reported as a wrong argument
            parser.error(f"{argv[0]} cannot be resumed: {error}")
        described, params = run.trainer.get_spec().describe(), read_params(run.folder)
        recorded = {name: value for record in (described, params) for part in ("settings", "options")
                    for name, value in record.get(part, {}).items()}
        groups = [parser.add_argument_group(title) for title in ("can be changed", "must equal those of the run")]
        for setting in settings_of_algorithm(type(run.trainer.algo), type(run.policy)).values():
            if setting.name in recorded:
                is_fixed = setting.affects_result and setting.name != "n_itr" or setting.name in FIXED_OPTIONS
                add_flag(groups[is_fixed], setting._replace(default=recorded[setting.name]))

    def start(run_folder: str, **changed: Any) -> Any:
        return run.resume(**changed)

    return run_tool(parser, lambda arguments: report(start(**vars(arguments))), argv, RUN_FAILURES)


def report(run: Any) -> int:
    """Prints the result of a run, which is also appended to its `log.txt`; returns the exit status."""
    if not run.is_complete:
        return INTERRUPTED
    lines = []
    try:
        lines.append(run.summarize())
        if os.path.exists(os.path.join(run.folder, BEST_FILE)):
            lines.append(run.summarize_best())
    except Exception as error:  # for example columns that the user's trainer does not log
        lines.append(f"warning: could not summarize the run: {error}")
    text = "\n".join([*lines, f"Run folder: {run.folder}"])
    print_line(text)
    if os.path.exists(log := os.path.join(run.folder, LOG_FILE)):
        append_text(log, f"{text}\n")
    return 0


def _value_of(flag: str, argv: Sequence[str]) -> Optional[str]:
    """Returns the value of a flag that is needed before the parser of all flags is built; None if it is not given.

    `--policy` is such a flag: its value is a class, and the arguments of this class are further flags.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(flag, dest="value", nargs="?")
    return parser.parse_known_args(argv)[0].value


def run_tool(parser: Parser, work: Callable[[argparse.Namespace], Optional[int]], argv: Optional[Sequence[str]] = None,
             failures: Sequence[type[Exception]] = FAILURES) -> int:
    """Runs a command and reports its errors.

    Args:
        parser: parser of the flags.
        work: function that receives the parsed flags and returns the exit status, or None for 0.
        argv: command line flags; default None, the flags of this process.
        failures: errors with the exit status 1.

    Returns:
        The exit status; 130 after Ctrl-C.

    Raises:
        SystemExit: with a one-line message, and status 2 if a flag or file is wrong or status 1 for `failures`.
    """
    arguments = parser.parse_args(argv)
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # `__main__` lets Ctrl-C end the process before
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return work(arguments) or 0
    except tuple(failures) as error:
        parser.exit(1, f"{parser.prog}: error: {error}\n")
    except USER_ERRORS as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
