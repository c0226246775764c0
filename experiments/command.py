"""Command line of the training scripts: starts or resumes a run, trains, and returns an exit status.

A script defines `Config` (its settings), a function `build` and `main = make_main(Config)`. The sources of settings are
the defaults of the script, `--config_file`, `--smoke` and flags. Later sources override earlier sources.
"""
import argparse
import contextlib
import dataclasses
import os
import sys
import threading
from typing import Any, Callable, Iterator, Optional, Sequence

from experiments import record
from experiments.flags import Parser, given_settings, make_training_parser
from experiments.settings import RunConfig, make_config
from meta_policy_search import run_folder
from meta_policy_search.plotting import mean_gain, plot_diagnostics, plot_learning_curve, read_progress
from meta_policy_search.samplers.errors import EnvWorkerError, WorkerDiedError
from meta_policy_search.samplers.vectorized_env_executor.worker import exit_after_parent
from meta_policy_search.utils import logger
from meta_policy_search.utils.files import lock_folder
from meta_policy_search.utils.log_outputs import check_formats
from meta_policy_search.utils.snapshotter import SnapshotError

INTERRUPTED = 130  # exit status after Ctrl-C, as in shells
SWEEP = "META_POLICY_SEARCH_SWEEP"  # environment variable: descriptor of a pipe that closes when the sweep ends
MISTAKES = (EnvWorkerError, FloatingPointError, ImportError, OSError, SnapshotError, TypeError, ValueError)
"""Errors of wrong flags, files or settings, which are reported in one line without a traceback."""


class Experiment:
    """A meta-learning script: builds, restores and runs its trainer.

    `single_task.SingleTask` is the counterpart for single-task scripts.

    Args:
        config_class: settings class of the script. Its module also defines the function `build`, which builds the
            trainer from the settings.
    """

    def __init__(self, config_class: type[RunConfig]) -> None:
        module: Any = sys.modules[config_class.__module__]
        self.config_class, self.build, self.doc = config_class, module.build, module.__doc__
        self.path = os.path.abspath(str(module.__file__))
        self.name = os.path.splitext(os.path.basename(self.path))[0]

    def load(self, folder: str) -> dict[str, Any]:
        """Loads the last snapshot of a run folder."""
        return record.load_in_own_graph(folder)

    def restore(self, trainer: Any, snapshot: dict[str, Any], config: Any) -> None:
        """Restores the state of a trainer from a snapshot."""
        trainer.restore(snapshot)

    def train(self, trainer: Any, config: Any) -> None:
        """Trains until the final iteration."""
        trainer.train()

    def draw(self, folder: str, config: Any) -> None:
        """Plots the learning curve and, with the setting `diagnostics`, the gradient diagnostics."""
        plot_learning_curve(folder)
        if config.diagnostics:
            plot_diagnostics(folder)

    def summarize(self, trainer: Any, config: Any) -> str:
        """Returns a sentence about the adaptation gain in the last iterations."""
        gain = mean_gain(read_progress(str(logger.get_dir())))
        samples = (f"mean of the last {gain.num_itr} iterations, each with {config.meta_batch_size} new tasks and "
                   f"{config.rollouts_per_meta_task} paths per task")
        low, high = gain.mean - gain.half_width, gain.mean + gain.half_width
        return (f"Adaptation changes the return by {gain.mean:+.2f} (95% interval over tasks {low:+.2f} to {high:+.2f})"
                f", from {gain.before:.2f} to {gain.after:.2f}: {samples}")


def make_main(
    config_class: type[RunConfig], experiment_class: type[Experiment] = Experiment
) -> Callable[[Optional[Sequence[str]]], int]:
    """Returns a function `main(argv=None)` that runs a training script; see `run`."""
    return lambda argv=None: run(experiment_class(config_class), argv)


def run(experiment: Experiment, argv: Optional[Sequence[str]] = None) -> int:
    """Runs a training script.

    Args:
        experiment: the script.
        argv: command line flags; default None, the flags of this process.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.

    Raises:
        SystemExit: with status 2 and a one-line message if a flag, file or setting is wrong; with status 1 if rows or
            snapshots can no longer be written, a worker process dies or numbers are no longer finite.
    """
    argv = sys.argv[1:] if argv is None else argv
    parser = make_training_parser(experiment.path, experiment.doc, experiment.config_class)
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
        except (SnapshotError, logger.LogFileError, WorkerDiedError, FloatingPointError) as error:
            hint = record.resume_hint(experiment.path, logger.get_dir())
            parser.exit(1, f"{parser.prog}: error: {error}\n{hint}\n")
    except KeyboardInterrupt:
        logger.log(record.resume_hint(experiment.path, arguments.get("resume", logger.get_dir())))
        return INTERRUPTED
    finally:
        logger.reset()
    return 0


def _end_with_sweep() -> None:
    """Makes a run of a sweep end when the sweep ends, even if the sweep is killed."""
    pipe = os.environ.pop(SWEEP, None)
    if pipe is not None:
        threading.Thread(target=exit_after_parent, args=(int(pipe), 0.0), daemon=True).start()


def run_tool(
    parser: Parser, work: Callable[[argparse.Namespace], Optional[int]], argv: Optional[Sequence[str]] = None
) -> int:
    """Runs a script that does not train.

    Args:
        parser: parser of the flags.
        work: function that receives the parsed flags and returns the exit status, or None for 0.
        argv: command line flags; default None, the flags of this process.

    Returns:
        The exit status; 130 after Ctrl-C.

    Raises:
        SystemExit: with status 2 and a one-line message if a flag or file is wrong.
    """
    arguments = parser.parse_args(argv)
    try:
        return work(arguments) or 0
    except MISTAKES as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED


def _start(experiment: Experiment, arguments: dict[str, Any], command: list[str]) -> tuple[Any, RunConfig]:
    """Starts a run."""
    if os.environ.get("SMOKE", "0") not in ("", "0"):
        arguments["smoke"] = True
    config = make_config(experiment.config_class, given_settings(arguments, experiment.config_class.smoke))
    check_formats(config.log_formats, "log_formats")  # checked before the folder is created
    folder = arguments.get("dump_path") or run_folder.make_run_folder(experiment.name, config.env, config.seed)
    record.check_is_unused(folder)
    _configure_logger(folder, config)
    trainer = experiment.build(config)
    _write_params(folder, config, {"script": experiment.name, "settings": {}, **record.describe_process(command),
                                   "resumed": []})
    return trainer, config


def _resume(experiment: Experiment, arguments: dict[str, Any], command: list[str]) -> tuple[Any, RunConfig]:
    """Resumes a run while its folder is locked against other processes."""
    folder = arguments["resume"]
    record.read_resumable_params(folder, experiment.name)  # raises an error if there is no run to lock
    with lock_folder(folder):  # the logger then also locks the folder
        params = record.read_resumable_params(folder, experiment.name)
        given = given_settings(arguments, experiment.config_class.smoke)
        config = record.resumed_config(experiment.config_class, params["settings"], given)
        trainer = _restore(experiment, folder, config)
        process = record.describe_process(command)
        run_folder.warn_of_changes(params, process)
        params.pop("ended", None)
        resumed = [*params["resumed"], {"itr": trainer.itr, **process}]
        _write_params(folder, config, {**params, "stopped": False, "resumed": resumed})
        logger.log(f"Resuming at iteration {trainer.itr} in {logger.get_dir()}")
        return trainer, config


def _restore(experiment: Experiment, folder: str, config: RunConfig) -> Any:
    """Returns the trainer of a run after its last snapshot. Files are changed only after all checks have passed."""
    if record.ended_before_first_snapshot(folder, config.snapshot_mode):
        trainer = experiment.build(config)
        _configure_logger(folder, config, overwrite=True)
        return trainer
    snapshot = experiment.load(folder)
    if snapshot["state"].get("settings") is not None:  # `params.json` can be edited
        record.resumed_config(experiment.config_class, snapshot["state"]["settings"], dataclasses.asdict(config))
    if snapshot["itr"] + 1 >= config.n_itr:
        raise ValueError(f"--resume: the run in {folder} has completed all {snapshot['itr'] + 1} iterations. To "
                         "continue, pass a larger --n_itr")
    trainer = experiment.build(config)
    experiment.restore(trainer, snapshot, config)
    _configure_logger(folder, config, positions=snapshot["state"]["outputs"])
    return trainer


def _configure_logger(folder: str, config: RunConfig, **how: Any) -> None:
    logger.configure(folder, config.log_formats, config.snapshot_mode, config.snapshot_gap, **how)


def _write_params(folder: str, config: RunConfig, params: dict[str, Any]) -> None:
    """Writes `params.json` with the current settings."""
    settings = dataclasses.asdict(config)
    run_folder.write_params(folder, {**params, "settings": settings})


def _train(experiment: Experiment, trainer: Any, config: RunConfig) -> None:
    """Trains until the final iteration; logs the settings of the run and its result."""
    folder = str(logger.get_dir())
    trainer.writes_params, trainer.settings = False, dataclasses.asdict(config)  # `params.json` exists already
    logger.log(f"{config.env}, seed {config.seed}: {config.n_itr - trainer.itr} iterations of "
               f"{type(trainer.algo).__name__}, written to {record.shortest(folder)}")

    def draw_sometimes(_: Any, row: logger.Row) -> None:
        if config.plot_gap and trainer.itr % config.plot_gap == 0:
            with _warning("could not draw the learning curve"):
                experiment.draw(folder, config)

    trainer.callbacks.append(draw_sometimes)
    try:
        experiment.train(trainer, config)
    finally:
        trainer.sampler.close()
        with _warning("could not record the end of the run"):
            run_folder.record_end(folder, trainer.stopped)
    with _warning("could not draw the learning curve"):
        experiment.draw(folder, config)
    with _warning("could not summarize the run"):
        logger.log(experiment.summarize(trainer, config))
    logger.log(f"Run folder: {folder}")


@contextlib.contextmanager
def _warning(what: str) -> Iterator[None]:
    """Logs an exception from a `with` block as a warning that begins with `what`. Training results are not affected."""
    try:
        yield
    except Exception as error:  # for example a full disk, or a file that another program has changed
        logger.warn(f"{what}: {error if isinstance(error, MISTAKES) else repr(error)}")
