"""Starts or resumes a run from the command line, trains, and returns an exit status.

The sources of settings are the defaults of the settings class, `--config_file`, `--smoke` and flags. Later sources
override earlier sources.
"""
import argparse
import contextlib
import dataclasses
import os
import signal
import sys
import threading
from typing import Any, Callable, Iterator, Optional, Sequence

import meta_policy_search as mps
from meta_policy_search import run_folder
from meta_policy_search.cli import record
from meta_policy_search.cli.algorithms import RL2Config, build_trainer
from meta_policy_search.cli.flags import Parser, given_settings, make_training_parser
from meta_policy_search.cli.settings import RunConfig, make_config
from meta_policy_search.cli.single_task import Config as SingleTaskConfig
from meta_policy_search.cli.single_task import summarize_final_policy
from meta_policy_search.plotting import (
    mean_gain,
    plot_diagnostics,
    plot_learning_curve,
    plot_returns,
    read_progress,
)
from meta_policy_search.samplers.errors import EnvWorkerError, WorkerDiedError
from meta_policy_search.samplers.vectorized_env_executor.worker import exit_after_parent
from meta_policy_search.utils import logger
from meta_policy_search.utils.files import lock_folder
from meta_policy_search.utils.snapshotter import BEST, BEST_FILE, SnapshotError, load_snapshot

PROG = "meta-policy-search"  # name of the command
INTERRUPTED = 130  # exit status after Ctrl-C, as in shells
SWEEP = "META_POLICY_SEARCH_SWEEP"  # environment variable: descriptor of a pipe that closes when the sweep ends
MISTAKES = (EnvWorkerError, FloatingPointError, ImportError, OSError, SnapshotError, TypeError, ValueError)
"""Errors of wrong flags, files or settings, which are reported in one line without a traceback."""


class Experiment:
    """Builds, restores and runs the trainer of a run.

    Args:
        config_class: settings class.
    """

    def __init__(self, config_class: type[RunConfig]) -> None:
        self.config_class = config_class

    def build(self, config: Any) -> Any:
        """Builds the trainer."""
        return build_trainer(config)

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
        if vars(config).get("diagnostics"):
            plot_diagnostics(folder)

    def summarize(self, trainer: Any, config: Any) -> str:
        """Returns a sentence about the adaptation gain in the last iterations."""
        gain = mean_gain(read_progress(str(logger.get_dir())))
        samples = (f"mean of the last {gain.num_itr} iterations, each with {config.meta_batch_size} sampled tasks and "
                   f"{config.rollouts_per_meta_task} paths per task")
        low, high = gain.mean - gain.half_width, gain.mean + gain.half_width
        return (f"Adaptation changes the return by {gain.mean:+.2f} (95% interval over tasks {low:+.2f} to {high:+.2f})"
                f", from {gain.before:.2f} to {gain.after:.2f}: {samples}")


class TrialExperiment(Experiment):
    """Experiment without inner gradient steps: summarizes returns instead of adaptation gains."""

    def summarize(self, trainer: Any, config: Any) -> str:
        """Returns a sentence with the mean return of trials, first and last episodes over the last iterations."""
        progress = read_progress(str(logger.get_dir()))
        last = slice(-10, None)
        names = ("AverageReturn", "FirstEpisodeReturn", "LastEpisodeReturn")
        whole, first, end = (progress[f"Step_0-{name}"][last].mean() for name in names)
        return (f"The return of a trial is {whole:.2f}, that of its first episode {first:.2f}, of its last {end:.2f}: "
                f"mean of the last {len(progress['Itr'][last])} iterations")


class SingleTask(Experiment):
    """Experiment that trains for a single task with a `LocalRunner`."""

    def build(self, config: Any) -> Any:
        """Builds the runner."""
        return config.build()

    def load(self, folder: str) -> dict[str, Any]:
        """Loads the last snapshot of a run folder."""
        return load_snapshot(folder)

    def restore(self, trainer: Any, snapshot: dict[str, Any], config: Any) -> None:
        """Restores a snapshot; parallel sampling follows `config`, not the snapshot."""
        state = snapshot["state"]
        state = {**state, "sampler_args": {**state["sampler_args"], "parallel": config.parallel_option()}}
        trainer.restore_snapshot({**snapshot, "state": state})

    def train(self, trainer: Any, config: Any) -> None:
        """Trains until the final iteration; resumes a restored run."""
        if trainer.epoch:
            trainer.resume(config.n_itr)
        else:
            trainer.train(config.n_itr, config.batch_size)

    def draw(self, folder: str, config: Any) -> None:
        """Plots the returns into the run folder."""
        plot_returns(folder)

    def summarize(self, trainer: Any, config: Any) -> str:
        """Evaluates the final policy with new paths; returns a sentence about its undiscounted return."""
        return summarize_final_policy(trainer, config.max_path_length)


def make_main(
    config_class: type[RunConfig], path: str, description: Optional[str]
) -> Callable[[Optional[Sequence[str]]], int]:
    """Returns the function `main(argv=None)` of a training script; see `run`.

    Args:
        config_class: settings class of the script.
        path: path of the script.
        description: first part of the help text.
    """
    def main(argv: Optional[Sequence[str]] = None) -> int:
        return run(config_class, argv, os.path.basename(path), description)

    return main


def run(config_class: type[RunConfig], argv: Optional[Sequence[str]], prog: str, description: Optional[str]) -> int:
    """Runs a training command.

    Args:
        config_class: settings class.
        argv: command line flags; None for the flags of this process.
        prog: name of the command in messages.
        description: first part of the help text.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.

    Raises:
        SystemExit: with status 2 and a one-line message if a flag, file or setting is wrong; with status 1 if rows or
            snapshots can no longer be written, a worker process dies or numbers are no longer finite.
    """
    argv = sys.argv[1:] if argv is None else argv
    kinds = {RL2Config: TrialExperiment, SingleTaskConfig: SingleTask}
    kind = next((kind for base, kind in kinds.items() if issubclass(config_class, base)), Experiment)
    experiment = kind(config_class)
    parser = make_training_parser(prog, description, config_class)
    arguments = vars(parser.parse_args(argv))
    _end_with_sweep()
    try:
        try:
            prepare = _resume if "resume" in arguments else _start
            trainer, config = prepare(experiment, arguments, [*prog.split(), *argv])
        except MISTAKES as error:
            parser.error(str(error))
        try:
            _train(experiment, trainer, config)
        except (SnapshotError, logger.LogFileError, WorkerDiedError, FloatingPointError) as error:
            parser.exit(1, f"{parser.prog}: error: {error}\n{record.resume_hint(logger.get_dir())}\n")
    except KeyboardInterrupt:
        logger.log(record.resume_hint(arguments.get("resume", logger.get_dir())))
        return INTERRUPTED
    finally:
        logger.reset()
    return 0


def _raise_on_interrupt() -> None:
    """Makes Ctrl-C raise `KeyboardInterrupt`; `__main__` lets Ctrl-C end the process before."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_with_sweep() -> None:
    """Makes a run of a sweep end when the sweep ends, even if the sweep is killed."""
    pipe = os.environ.pop(SWEEP, None)
    if pipe is not None:
        threading.Thread(target=exit_after_parent, args=(int(pipe), 0.0), daemon=True).start()


def run_tool(
    parser: Parser, work: Callable[[argparse.Namespace], Optional[int]], argv: Optional[Sequence[str]] = None
) -> int:
    """Runs a command that does not train.

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
    _raise_on_interrupt()
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
    if "dump_path" in arguments:
        record.check_is_unused(arguments["dump_path"])
    trainer = experiment.build(config)  # may raise an error, so no folder exists yet
    folder = arguments.get("dump_path") or run_folder.make_run_folder(config.algorithm, config.env, config.seed)
    _configure_logger(folder, config)
    run_folder.write_params(folder, {"algorithm": config.algorithm, "settings": dataclasses.asdict(config),
                                     **record.describe_process(command), "resumed": []})
    return trainer, config


def _resume(experiment: Experiment, arguments: dict[str, Any], command: list[str]) -> tuple[Any, RunConfig]:
    """Resumes a run while its folder is locked against other processes."""
    folder = arguments["resume"]
    algorithm = experiment.config_class.algorithm
    record.read_resumable_params(folder, algorithm)  # raises an error if there is no run to lock
    with lock_folder(folder):  # the logger then also locks the folder
        params = record.read_resumable_params(folder, algorithm)
        given = given_settings(arguments, experiment.config_class.smoke)
        config = record.resumed_config(experiment.config_class, params["settings"], given)
        trainer = _restore(experiment, folder, config)
        process = record.describe_process(command)
        run_folder.warn_of_changes(params, process)
        resumed = [*params["resumed"], {"itr": trainer.itr, **process}]
        run_folder.write_params(folder, {**run_folder.without_end(params), "settings": dataclasses.asdict(config),
                                         "resumed": resumed})
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
    _configure_logger(folder, config, resume_at=trainer.itr)
    return trainer


def _configure_logger(folder: str, config: RunConfig, **how: Any) -> None:
    """Opens the files of a run, the first step after which Ctrl-C must not end the process at once."""
    _raise_on_interrupt()
    logger.configure(folder, config.log_formats, config.snapshot_mode, config.snapshot_gap, **how)


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
    failure = None
    try:
        experiment.train(trainer, config)
    except Exception as error:
        failure = type(error).__name__
        raise
    finally:
        trainer.sampler.close()
        with _warning("could not record the end of the run"):
            run_folder.record_end(folder, trainer.stopped, failure)
    with _warning("could not draw the learning curve"):
        experiment.draw(folder, config)
    with _warning("could not summarize the run"):
        logger.log(experiment.summarize(trainer, config))
    if os.path.exists(os.path.join(folder, BEST_FILE)):
        with _warning("could not evaluate the best policy"):
            logger.log(_describe_best(folder))
    logger.log(f"Run folder: {folder}")


def _describe_best(folder: str) -> str:
    """Evaluates `best.pkl` in tasks other than those that selected it; returns a sentence about the adaptation gain."""
    evaluation = mps.load_evaluator(folder, BEST).evaluate(tasks=20)
    gain, half_width = (values[-1] for values in evaluation.gain)
    before, after = evaluation.mean_return.mean[[0, -1]]
    return (f"Adaptation changes the return of the best policy by {gain:+.2f} (95% interval over tasks "
            f"{gain - half_width:+.2f} to {gain + half_width:+.2f}), from {before:.2f} to {after:.2f}: "
            f"{evaluation.name.rpartition(', ')[2]}, {len(evaluation.task_returns)} sampled tasks")


@contextlib.contextmanager
def _warning(what: str) -> Iterator[None]:
    """Logs an exception from a `with` block as a warning that begins with `what`. Training results are not affected."""
    try:
        yield
    except Exception as error:  # for example a full disk, or a file that another program has changed
        logger.warn(f"{what}: {error if isinstance(error, MISTAKES) else repr(error)}")
