"""The command of a script: starts or resumes a run as its flags say, trains, and ends with an exit status.

A script states what is its own, its settings and its algorithm, and hands both to `run`. Settings come from, each
overriding the one before: the defaults of the script, `--config_file`, `--smoke`, flags.
"""
import argparse
import contextlib
import dataclasses
import os
import sys
import threading
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple, Optional, Sequence

from experiments import record, times
from experiments.flags import Parser, given_settings, make_training_parser
from experiments.settings import SMOKE, ConfigT, MetaConfig, RunConfig, make_config
from meta_policy_search import run_folder
from meta_policy_search.plotting import mean_gain, plot_diagnostics, plot_learning_curve, read_progress
from meta_policy_search.samplers.executors.errors import EnvWorkerError
from meta_policy_search.samplers.executors.worker import exit_after_parent
from meta_policy_search.utils import logger
from meta_policy_search.utils.files import FolderLock
from meta_policy_search.utils.log_outputs import check_formats
from meta_policy_search.utils.snapshotter import SnapshotError

if TYPE_CHECKING:
    from meta_policy_search.meta_trainer import Trainer

INTERRUPTED = 130  # exit status after Ctrl-C, as shells have it
SWEEP = "META_POLICY_SEARCH_SWEEP"  # variable: the end of a pipe whose other end the sweep holds that a run belongs to
MISTAKES = (EnvWorkerError, FloatingPointError, ImportError, OSError, SnapshotError, TypeError, ValueError)
"""What a wrong flag, file or setting raises; its message is the line that the user reads."""


class RunType(NamedTuple):
    """What the runs of a family of scripts have in common: those that meta-learn, or those that learn a single task."""

    config_class: type[RunConfig]  # the settings that all of them have
    smoke: Mapping[str, Any]  # those of a run that takes seconds
    load: Callable[[str], dict[str, Any]]  # reads the last snapshot in a run folder
    draw: Callable[[str, Any], None]  # draws pictures into a run folder, given the settings
    describe: Callable[[Any, Any], str]  # says in a few words what is trained, given trainer and settings
    summarize: Callable[[Any, Any], str]  # says what came of a run, given trainer and settings


class Experiment(NamedTuple):
    """A script: what its module holds."""

    module: ModuleType
    config_class: type[RunConfig]
    build: Callable[[Any], "Trainer"]
    run_type: RunType

    @property
    def path(self) -> str:
        """Its file."""
        return os.path.abspath(str(self.module.__file__))

    @property
    def name(self) -> str:
        """The name of its file, without `.py`."""
        return os.path.splitext(os.path.basename(self.path))[0]


def run(
    config_class: type[ConfigT],
    build: Callable[[ConfigT], "Trainer"],
    argv: Optional[Sequence[str]] = None,
    run_type: Optional[RunType] = None,
) -> int:
    """Runs an experiment as its command line says.

    Args:
        config_class: its settings; the module that defines them is the script.
        build: makes the trainer from the settings.
        argv: flags; by default those that the process was started with.
        run_type: what is trained; by default a meta-learning algorithm.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.

    Raises:
        SystemExit: with status 2, for a mistake in flags, files or settings, which is named in one line; with status 1,
            when rows or snapshots cannot be written any more.
    """
    experiment = Experiment(sys.modules[config_class.__module__], config_class, build, run_type or META_LEARNING)
    argv = sys.argv[1:] if argv is None else argv
    parser = make_training_parser(experiment.path, experiment.module.__doc__, config_class,
                                  experiment.run_type.config_class)
    arguments = vars(parser.parse_args(argv))
    _end_with_sweep()
    try:
        try:
            prepare = _resume if "resume" in arguments else _start
            trainer, config = prepare(experiment, arguments, [sys.executable, experiment.path, *argv])
        except MISTAKES as error:
            parser.error(str(error))
        try:
            _train(experiment, trainer, config)
        except (SnapshotError, logger.LogFileError) as error:  # a full disk, say
            parser.exit(1, f"{parser.prog}: error: {error}\n{record.resume_hint(experiment.path, logger.get_dir())}\n")
    except KeyboardInterrupt:
        logger.log(record.resume_hint(experiment.path, arguments.get("resume", logger.get_dir())))
        return INTERRUPTED
    finally:
        logger.reset()
    return 0


def _end_with_sweep() -> None:
    """Has a run of a sweep end when the sweep has ended, in whatever way; the run can be gone on with."""
    pipe = os.environ.pop(SWEEP, None)
    if pipe is not None:
        threading.Thread(target=exit_after_parent, args=(int(pipe), 0.0), daemon=True).start()


def run_tool(
    parser: Parser, work: Callable[[argparse.Namespace], Optional[int]], argv: Optional[Sequence[str]] = None
) -> int:
    """Runs a script that does not train.

    Args:
        parser: reads its flags.
        work: does as they say; returns the exit status, None for 0.
        argv: flags; by default those that the process was started with.

    Returns:
        The exit status, 130 after Ctrl-C.

    Raises:
        SystemExit: with status 2, for a mistake in flags or files, which is named in one line.
    """
    arguments = parser.parse_args(argv)
    try:
        return work(arguments) or 0
    except MISTAKES as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED


def _start(experiment: Experiment, arguments: dict[str, Any], command: list[str]) -> tuple["Trainer", RunConfig]:
    """Begins a run."""
    if os.environ.get("SMOKE", "0") not in ("", "0"):
        arguments["smoke"] = True
    config = make_config(experiment.config_class, given_settings(arguments, experiment.run_type.smoke))
    check_formats(config.log_formats, "log_formats")  # before there is a folder
    folder = arguments.get("dump_path") or record.make_default_folder(experiment.name, config)
    record.check_is_unused(folder)
    _configure_logger(folder, config)
    trainer = experiment.build(config)
    process = record.describe_process(command)
    run_folder.write_params(folder, {"script": experiment.name, "settings": dataclasses.asdict(config), **process,
                                     "resumed": []})
    logger.log_settings({"script": experiment.name, **dataclasses.asdict(config)})
    return trainer, config


def _resume(experiment: Experiment, arguments: dict[str, Any], command: list[str]) -> tuple["Trainer", RunConfig]:
    """Goes on with a run, which no other process does at the same time."""
    folder = arguments["resume"]
    for name in ("dump_path", "smoke"):
        if name in arguments:
            raise ValueError(f"--{name}: expected no such flag with --resume, which keeps folder and sizes of the run")
    record.read_resumable_params(folder, experiment.name)  # says if there is none
    with FolderLock(folder):  # the logger takes it over
        return _go_on(experiment, folder, arguments, command)


def _go_on(
    experiment: Experiment, folder: str, arguments: dict[str, Any], command: list[str]
) -> tuple["Trainer", RunConfig]:
    """Goes on with a run from its last snapshot; files change when it is certain that this is possible."""
    params = record.read_resumable_params(folder, experiment.name)
    config = record.resumed_config(experiment.config_class, params["settings"], given_settings(arguments, {}))
    if record.ended_before_first_snapshot(folder, config.snapshot_mode):
        trainer = experiment.build(config)
        _configure_logger(folder, config, overwrite=True)
    else:
        snapshot = experiment.run_type.load(folder)
        if snapshot["itr"] + 1 >= config.n_itr:
            raise ValueError(f"--resume: the run in {folder} has done its {snapshot['itr'] + 1} iterations; to go on, "
                             "give a larger --n_itr")
        trainer = experiment.build(config)
        try:
            trainer.restore(snapshot)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"--resume: the snapshot in {folder} does not fit the settings in its "
                             f"{record.PARAMS_FILE}: {error}") from error
        _configure_logger(folder, config, positions=snapshot["state"]["outputs"])
    process = record.describe_process(command)
    run_folder.warn_of_changes(params, process)
    params["settings"] = dataclasses.asdict(config)
    params.pop("ended", None)
    params["stopped"] = False
    params["resumed"].append({"itr": trainer.itr, **process})
    run_folder.write_params(folder, params)
    logger.log_settings({"script": experiment.name, **params["settings"]})
    logger.log(f"Going on with iteration {trainer.itr} in {logger.get_dir()}")
    return trainer, config


def _configure_logger(folder: str, config: RunConfig, **how: Any) -> None:
    logger.configure(folder, config.log_formats, config.snapshot_mode, config.snapshot_gap, **how)


def _train(experiment: Experiment, trainer: "Trainer", config: RunConfig) -> None:
    """Trains to the end and says what came of it."""
    folder = str(logger.get_dir())
    trainer.writes_params = False  # it is written already
    number = config.n_itr - trainer.itr
    logger.log(f"{config.env}, seed {config.seed}: {number} iteration{'s' * (number != 1)} of "
               f"{experiment.run_type.describe(trainer, config)}")
    logger.log(f"Writing to {record.shortest(folder)}")
    first, began = trainer.itr, time.monotonic()

    def say_how_long(_: Any, row: logger.Row) -> None:
        took, left = time.monotonic() - began, config.n_itr - trainer.itr
        if trainer.itr == first + 1 and left:
            logger.log(f"The first iteration took {took:.1f} s, start-up included; up to "
                       f"{times.duration(left * took)} for the {left} left")

    def draw_at_times(_: Any, row: logger.Row) -> None:
        if config.plot_gap and trainer.itr % config.plot_gap == 0:
            with _warning("could not draw the learning curve"):
                experiment.run_type.draw(folder, config)

    trainer.callbacks.extend([say_how_long, draw_at_times])
    try:
        trainer.train()
    finally:
        trainer.sampler.close()
        with _warning("could not write down when the run ended"):
            run_folder.record_end(folder, trainer.stopped)
    with _warning("could not draw the learning curve"):
        experiment.run_type.draw(folder, config)
    with _warning("could not sum up what came of the run"):
        logger.log(experiment.run_type.summarize(trainer, config))
    logger.log(f"Run folder: {folder}")


@contextlib.contextmanager
def _warning(what: str) -> Iterator[None]:
    """Has an error within a `with` block, which the run itself does not suffer from, become a warning."""
    try:
        yield
    except Exception as error:  # a full disk, say, or a file that somebody has changed
        logger.warn(f"{what}: {error if isinstance(error, MISTAKES) else repr(error)}")


def _draw(folder: str, config: MetaConfig) -> None:
    plot_learning_curve(folder)
    if config.diagnostics:
        plot_diagnostics(folder)


def _describe(trainer: "Trainer", config: MetaConfig) -> str:
    """Says what is trained, and on how many samples."""
    number = config.num_inner_grad_steps
    when = "without adaptation" if number == 0 else "before and after 1 adaptation step" if number == 1 else \
        f"before and after each of {number} adaptation steps"
    size = f"{config.meta_batch_size} tasks x {config.rollouts_per_meta_task} paths x {config.max_path_length} steps"
    return f"{type(trainer.algo).__name__} with {size}, {when}"


def _summarize(trainer: "Trainer", config: MetaConfig) -> str:
    """Says in one sentence what adaptation gained at the end or, without it, what the policy returned."""
    gain = mean_gain(read_progress(str(logger.get_dir())))
    samples = (f"mean of the last {gain.num_itr} iterations, each with {config.meta_batch_size} new tasks and "
               f"{config.rollouts_per_meta_task} paths per task")
    if config.num_inner_grad_steps == 0:
        return f"The policy returns {gain.before:.2f}: {samples}"
    interval = f"95% interval over tasks {gain.mean - gain.half_width:+.2f} to {gain.mean + gain.half_width:+.2f}"
    if config.meta_batch_size == 1:
        interval = "no interval over tasks, as there is one per iteration"
    return (f"Adaptation changes the return by {gain.mean:+.2f} ({interval}), from {gain.before:.2f} to "
            f"{gain.after:.2f}: {samples}")


META_LEARNING = RunType(MetaConfig, SMOKE, record.load_in_own_graph, _draw, _describe, _summarize)
