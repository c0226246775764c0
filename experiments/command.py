"""The command line of a script that trains: starts or resumes a run, trains, and returns an exit status.

A script defines its settings and builds its algorithm, and passes both to `run`. Settings come from the defaults of
the script, `--config_file`, `--smoke` and flags; each overrides the ones before.
"""
import argparse
import contextlib
import dataclasses
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple, Optional, Sequence

from experiments import record, times
from experiments.flags import Parser, given_settings, make_training_parser
from experiments.settings import SMOKE, ConfigT, MetaConfig, RunConfig, make_config
from meta_policy_search import run_folder
from meta_policy_search.plotting import mean_gain, plot_diagnostics, plot_learning_curve, read_progress
from meta_policy_search.samplers.errors import EnvWorkerError
from meta_policy_search.samplers.executors.worker import exit_after_parent
from meta_policy_search.utils import logger
from meta_policy_search.utils.files import FolderLock
from meta_policy_search.utils.log_outputs import check_formats
from meta_policy_search.utils.snapshotter import SnapshotError

if TYPE_CHECKING:
    from meta_policy_search.meta_trainer import Trainer

INTERRUPTED = 130  # exit status after Ctrl-C, as in shells
SWEEP = "META_POLICY_SEARCH_SWEEP"  # environment variable: descriptor of a pipe whose other end the sweep holds
MISTAKES = (EnvWorkerError, FloatingPointError, ImportError, OSError, SnapshotError, TypeError, ValueError)
"""What a wrong flag, file or setting raises; its message becomes the one line that the user reads."""


class RunType(NamedTuple):
    """What the scripts of a family have in common: those that meta-learn, or those that learn a single task."""

    config_class: type[RunConfig]  # the settings that all of them have
    smoke: Mapping[str, Any]  # settings of a run that takes seconds
    load: Callable[[str], dict[str, Any]]  # reads the last snapshot in a run folder
    restore: Callable[[Any, dict[str, Any], Any], None]  # restores a snapshot, given trainer, snapshot and settings
    train: Callable[[Any, Any], None]  # trains to the last iteration, given trainer and settings
    draw: Callable[[str, Any], None]  # draws pictures into a run folder, given the settings
    describe: Callable[[Any, Any], str]  # describes in a few words what is trained, given trainer and settings
    summarize: Callable[[Any, Any], str]  # describes the result, given trainer and settings


class Experiment(NamedTuple):
    """A script."""

    path: str  # its file
    name: str  # the name of the file, without `.py`
    config_class: type[RunConfig]
    build: Callable[[Any], "Trainer"]
    run_type: RunType


def run(
    config_class: type[ConfigT],
    build: Callable[[ConfigT], "Trainer"],
    argv: Optional[Sequence[str]] = None,
    run_type: Optional[RunType] = None,
) -> int:
    """Runs a script with the flags of its command line.

    Args:
        config_class: its settings; the module that defines them is the script.
        build: makes the trainer from the settings.
        argv: flags; by default those of this process.
        run_type: what the script trains; by default a meta-learning algorithm.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.

    Raises:
        SystemExit: with status 2 after a mistake in flags, files or settings, and one line about it; with status 1 if
            rows or snapshots can no longer be written.
    """
    module = sys.modules[config_class.__module__]
    path = os.path.abspath(str(module.__file__))
    name = os.path.splitext(os.path.basename(path))[0]
    experiment = Experiment(path, name, config_class, build, run_type or META_LEARNING)
    argv = sys.argv[1:] if argv is None else argv
    parser = make_training_parser(path, module.__doc__, config_class, experiment.run_type.config_class)
    arguments = vars(parser.parse_args(argv))
    _end_with_sweep()
    try:
        try:
            prepare = _resume if "resume" in arguments else _start
            trainer, config = prepare(experiment, arguments, [sys.executable, path, *argv])
        except MISTAKES as error:
            parser.error(str(error))
        try:
            _train(experiment, trainer, config)
        except (SnapshotError, logger.LogFileError) as error:  # a full disk, for example
            parser.exit(1, f"{parser.prog}: error: {error}\n{record.resume_hint(path, logger.get_dir())}\n")
    except KeyboardInterrupt:
        logger.log(record.resume_hint(path, arguments.get("resume", logger.get_dir())))
        return INTERRUPTED
    finally:
        logger.reset()
    return 0


def _end_with_sweep() -> None:
    """Ends a run of a sweep when the sweep ends, even if the sweep was killed."""
    pipe = os.environ.pop(SWEEP, None)
    if pipe is not None:
        threading.Thread(target=exit_after_parent, args=(int(pipe), 0.0), daemon=True).start()


def run_tool(
    parser: Parser, work: Callable[[argparse.Namespace], Optional[int]], argv: Optional[Sequence[str]] = None
) -> int:
    """Runs a script that does not train.

    Args:
        parser: reads its flags.
        work: does the work; is given the flags, returns the exit status, None for 0.
        argv: flags; by default those of this process.

    Returns:
        The exit status, 130 after Ctrl-C.

    Raises:
        SystemExit: with status 2 after a mistake in flags or files, and one line about it.
    """
    arguments = parser.parse_args(argv)
    try:
        return work(arguments) or 0
    except MISTAKES as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED


def _start(experiment: Experiment, arguments: dict[str, Any], command: list[str]) -> tuple["Trainer", RunConfig]:
    """Starts a run."""
    if os.environ.get("SMOKE", "0") not in ("", "0"):
        arguments["smoke"] = True
    config = make_config(experiment.config_class, given_settings(arguments, experiment.run_type.smoke))
    check_formats(config.log_formats, "log_formats")  # before the folder is made
    folder = arguments.get("dump_path") or run_folder.make_run_folder(experiment.name, config.env, config.seed)
    record.check_is_unused(folder)
    _configure_logger(folder, config)
    trainer = experiment.build(config)
    _write_params(folder, config, {"script": experiment.name, "settings": {}, **record.describe_process(command),
                                   "resumed": []})
    return trainer, config


def _resume(experiment: Experiment, arguments: dict[str, Any], command: list[str]) -> tuple["Trainer", RunConfig]:
    """Resumes a run, with its folder locked against other processes."""
    folder = arguments["resume"]
    for name in ("dump_path", "smoke"):
        if name in arguments:
            raise ValueError(f"--{name}: expected no such flag with --resume, which keeps folder and sizes of the run")
    record.read_resumable_params(folder, experiment.name)  # raises if there is no run to lock
    with FolderLock(folder):  # the logger takes it over
        params = record.read_resumable_params(folder, experiment.name)
        config = record.resumed_config(experiment.config_class, params["settings"], given_settings(arguments, {}))
        trainer = _restore(experiment, folder, config)
        process = record.describe_process(command)
        params.pop("ended", None)
        resumed = [*params["resumed"], {"itr": trainer.itr, **process}]
        _write_params(folder, config, {**params, "stopped": False, "resumed": resumed})
        logger.log(f"Resuming at iteration {trainer.itr} in {logger.get_dir()}")
        return trainer, config


def _restore(experiment: Experiment, folder: str, config: RunConfig) -> "Trainer":
    """Returns the trainer of a run after its last snapshot; changes no file before it is sure that this is possible."""
    if record.ended_before_first_snapshot(folder, config.snapshot_mode):
        trainer = experiment.build(config)
        _configure_logger(folder, config, overwrite=True)
        return trainer
    snapshot = experiment.run_type.load(folder)
    if snapshot["itr"] + 1 >= config.n_itr:
        raise ValueError(f"--resume: the run in {folder} has done its {snapshot['itr'] + 1} iterations; to "
                         "continue, give a larger --n_itr")
    trainer = experiment.build(config)
    try:
        experiment.run_type.restore(trainer, snapshot, config)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"--resume: the snapshot in {folder} does not fit the settings in its "
                         f"{record.PARAMS_FILE}: {error}") from error
    _configure_logger(folder, config, positions=snapshot["state"]["outputs"])
    return trainer


def _configure_logger(folder: str, config: RunConfig, **how: Any) -> None:
    logger.configure(folder, config.log_formats, config.snapshot_mode, config.snapshot_gap, **how)


def _write_params(folder: str, config: RunConfig, params: dict[str, Any]) -> None:
    """Writes `params.json` with the settings, and logs them."""
    settings = dataclasses.asdict(config)
    run_folder.write_params(folder, {**params, "settings": settings})
    logger.log_settings({"script": params["script"], **settings})


def _train(experiment: Experiment, trainer: "Trainer", config: RunConfig) -> None:
    """Trains to the last iteration; prints what is trained and the result."""
    folder, run_type = str(logger.get_dir()), experiment.run_type
    trainer.writes_params = False  # `params.json` exists already
    number = config.n_itr - trainer.itr
    logger.log(f"{config.env}, seed {config.seed}: {number} iteration{'s' * (number != 1)} of "
               f"{run_type.describe(trainer, config)}")
    logger.log(f"Writing to {record.shortest(folder)}")
    first, began = trainer.itr, time.monotonic()

    def after_iteration(_: Any, row: logger.Row) -> None:
        took, left = time.monotonic() - began, config.n_itr - trainer.itr
        if trainer.itr == first + 1 and left:
            logger.log(f"The first iteration took {took:.1f} s, start-up included; up to "
                       f"{times.duration(left * took)} for the {left} left")
        if config.plot_gap and trainer.itr % config.plot_gap == 0:
            with _warning("could not draw the learning curve"):
                run_type.draw(folder, config)

    trainer.callbacks.append(after_iteration)
    try:
        run_type.train(trainer, config)
    finally:
        trainer.sampler.close()
        with _warning("could not record the end of the run"):
            run_folder.record_end(folder, trainer.stopped)
    with _warning("could not draw the learning curve"):
        run_type.draw(folder, config)
    with _warning("could not summarize the run"):
        logger.log(run_type.summarize(trainer, config))
    logger.log(f"Run folder: {folder}")


@contextlib.contextmanager
def _warning(what: str) -> Iterator[None]:
    """Turns an error within a `with` block into a warning, as the run itself is not affected."""
    try:
        yield
    except Exception as error:  # a full disk, for example, or a file that another program has changed
        logger.warn(f"{what}: {error if isinstance(error, MISTAKES) else repr(error)}")


def _draw(folder: str, config: MetaConfig) -> None:
    plot_learning_curve(folder)
    if config.diagnostics:
        plot_diagnostics(folder)


def _describe(trainer: "Trainer", config: MetaConfig) -> str:
    """Describes the algorithm and the number of samples per iteration."""
    number = config.num_inner_grad_steps
    when = "without adaptation" if number == 0 else "before and after 1 adaptation step" if number == 1 else \
        f"before and after each of {number} adaptation steps"
    size = f"{config.meta_batch_size} tasks x {config.rollouts_per_meta_task} paths x {config.max_path_length} steps"
    return f"{type(trainer.algo).__name__} with {size}, {when}"


def _summarize(trainer: "Trainer", config: MetaConfig) -> str:
    """Returns a sentence about the gain from adaptation in the last iterations or, without it, about the return."""
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


META_LEARNING = RunType(
    MetaConfig, SMOKE, record.load_in_own_graph, lambda trainer, snapshot, config: trainer.restore(snapshot),
    lambda trainer, config: trainer.train(), _draw, _describe, _summarize)
