"""Trains the single-task algorithms of `np.algos`, with logging, snapshots and resuming."""
import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from meta_policy_search import registry
from meta_policy_search.np.algos.rl_algorithm import RLAlgorithm
from meta_policy_search.run_spec import spec_of
from meta_policy_search.training_loop import TrainingLoop
from meta_policy_search.types import Path, WithoutEffect
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.callbacks import Callback
from meta_policy_search.utils.checks import check_bool, check_choice, check_int_at_least, check_positive_int
from meta_policy_search.utils.files import PathLike, user_path
from meta_policy_search.utils.snapshotter import check_mode, list_snapshots, load_snapshot, state_of
from meta_policy_search.utils.threads import training_lock
from meta_policy_search.utils.utils import timed


class LocalRunner(TrainingLoop):
    """Trains a single-task algorithm in this process.

    Usage::

        runner = LocalRunner("data/my_run")
        runner.setup(algo, env)
        runner.train(n_epochs=100, batch_size=1000)

    To resume the run in another process::

        runner = LocalRunner("data/my_run")
        runner.restore("data/my_run")
        runner.resume(n_epochs=200)

    Every epoch logs one row (`utils.logger`) and then saves a snapshot. A resumed run equals an uninterrupted run bit
    for bit, except for the logged times.

    Args:
        snapshot_dir: run folder. The runner configures the logger for it (`utils.logger.configure`) when training
            begins or a run is restored. Default: None, the runner uses the outputs that the caller configured. A
            garage `snapshot_config` (an object with the attributes `snapshot_dir`, `snapshot_mode` and
            `snapshot_gap`) is also accepted.
        snapshot_mode (str): which epochs to save: `all`, `last`, `gap`, `last_gap` or `none`. Default: `last`.
        snapshot_gap (int): number of epochs between snapshots, at least 1; used by `gap` and `last_gap`. Default: 1.
        callbacks (sequence of callables): each is called as `callback(runner, row)` at the end of every epoch, before
            its row is written; it can add columns with `logger.logkv`. If a callback returns True, training stops. See
            `utils.callbacks`. Default: none.
        progress_bar (bool): whether to show a progress bar with the remaining time, on a terminal or in a notebook
            (`utils.progress`). Default: False.

    Attributes:
        algo (RLAlgorithm): the algorithm, or None before `setup`.
        env: the environment.
        sampler: the sampler; None if the algorithm has none.
        step_itr (int): number of completed iterations; the algorithm increments it.
        step_path (list of dict or None): paths of the current epoch; the algorithm sets it.
        total_timesteps_sampled (int): number of environment steps so far.

    Raises:
        ValueError: unknown snapshot mode, or `snapshot_gap` below 1.
        TypeError: an argument has the wrong type.
    """

    _unit = _short_unit = "epoch"
    _foreign_columns = ()

    def __init__(self, snapshot_dir: WithoutEffect[Optional[PathLike]] = None,
                 snapshot_mode: WithoutEffect[str] = "last", snapshot_gap: WithoutEffect[int] = 1,
                 callbacks: Sequence[Callback] = (), progress_bar: WithoutEffect[bool] = False) -> None:
        super().__init__(callbacks, progress_bar)
        if not (snapshot_dir is None or isinstance(snapshot_dir, (str, os.PathLike))):
            config: Any = snapshot_dir
            try:
                snapshot_dir, snapshot_mode = config.snapshot_dir, config.snapshot_mode
                snapshot_gap = config.snapshot_gap
            except AttributeError:
                raise TypeError("snapshot_dir: expected a path, None or a snapshot configuration, got "
                                f"{config!r}") from None
        self._snapshot_dir = None if snapshot_dir is None else os.path.abspath(
            user_path("snapshot_dir", snapshot_dir))
        self._snapshots = check_mode(snapshot_mode, snapshot_gap)
        self.algo: Optional[RLAlgorithm] = None
        self._plan: Optional[Dict[str, Any]] = None  # the arguments of `train`
        self._saved: Optional[Dict[str, int]] = None  # its snapshots in the run folder, if that holds this run
        self._is_restored = False  # whether `resume` removes the rows and snapshots of later epochs
        self._begin_counting()
        self._is_built = True

    def __enter__(self) -> "LocalRunner":
        """Returns the runner. Garage scripts use the runner in a `with` block."""
        return self

    def __exit__(self, *exc_info: Any) -> None:
        """Does nothing: `train` and `resume` shut down the workers."""

    def _begin_counting(self) -> None:
        self._before = self._started = None
        self.itr = self.step_itr = self.total_timesteps_sampled = 0
        self.step_path: Optional[List[Path]] = None
        self._times: Dict[str, float] = {}  # of the current epoch, in seconds

    @property
    def epoch(self) -> int:
        """Number of the current epoch, or of the next epoch between epochs; equals the number of completed epochs."""
        return self.itr

    def setup(self, algo: RLAlgorithm, env: Any, sampler_cls: Optional[Any] = None,
              sampler_args: Optional[Mapping[str, Any]] = None) -> None:
        """Sets the algorithm and the environment, and creates the sampler.

        Args:
            algo (RLAlgorithm): the algorithm.
            env: environment of gym 0.26, Gymnasium or classic gym (four-tuple `step`), or a `MetaEnv`.
            sampler_cls: class of the sampler, called as `sampler_cls(algo, env, **sampler_args)`; see
                `SingleTaskSampler`. It needs the methods `start_worker()`, `shutdown_worker()` and
                `obtain_samples(itr, batch_size)`, which returns a list of path dicts. CEM and CMA-ES also call
                `obtain_population_samples(itr, batch_size, flat_params)`. Off-policy algorithms also call
                `obtain_evaluation_samples(itr, num_paths)`. Default: `algo.sampler_cls`; if that is None, the runner
                has no sampler.
            sampler_args (dict): further arguments of `sampler_cls`. Default: none.

        Raises:
            TypeError: `algo` is not an `RLAlgorithm`, or `sampler_args` are given without a sampler class. Samplers
                also raise one if `env` cannot be stepped.
        """
        if not isinstance(algo, RLAlgorithm):
            raise TypeError(f"algo: expected an RLAlgorithm, got {algo!r}")
        sampler_cls = algo.sampler_cls if sampler_cls is None else sampler_cls
        sampler_args = dict(sampler_args or {})
        if sampler_cls is None and sampler_args:
            raise TypeError(f"sampler_args: expected none without a sampler_cls, got {sampler_args}")
        sampler = None if sampler_cls is None else sampler_cls(algo, env, **sampler_args)
        self._shut_down_workers()
        self._root, self._before, self._generators = seeding.chosen_root(), None, None
        self.algo, self._env, self.sampler = algo, env, sampler
        self._sampler_setup = {"sampler_cls": sampler_cls, "sampler_args": sampler_args}
        self.spec = spec_of(registry.name_of(type(algo)), env, policy=algo.policy, algo=algo, sampler=sampler,
                            trainer=self)

    @training_lock()
    def train(self, n_epochs: int, batch_size: Optional[int] = None, store_paths: bool = False) -> Any:
        """Trains for `n_epochs` epochs, starting at epoch 0 even if the runner has trained before.

        Args:
            n_epochs (int): number of epochs, at least 1.
            batch_size (int or None): environment steps per iteration, at least 1; `SingleTaskSampler` describes how
                they are divided into paths. Default: None, for runs without a sampler and for algorithms that pass
                their own batch size.
            store_paths (bool): whether a snapshot contains the paths of its epoch (`step_path`). Default: False.

        Returns:
            The return value of `algo.train`, such as the average return in the last epoch.

        Raises:
            RuntimeError: `setup` was not called, or another thread of this process is training or evaluating.
            ValueError: a number is below one, or the run folder holds an earlier run.
            KeyboardInterrupt: Ctrl-C was pressed. If the algorithm supports it (`RLAlgorithm.get_state`), the epoch is
                rolled back. `resume` handles Ctrl-C in the same way.
        """
        self._algo("train")
        plan = _check_plan(n_epochs, batch_size, store_paths)
        self._configure_logger(None)
        self._plan = plan
        self._begin_counting()
        return self._run()

    @training_lock()
    def resume(self, n_epochs: Optional[int] = None, batch_size: Optional[int] = None,
               store_paths: Optional[bool] = None) -> Any:
        """Resumes a restored run, or continues a run that this runner trained before.

        Args:
            n_epochs (int or None): total number of epochs, including the completed ones. Default: None, the value of
                the run.
            batch_size (int or None): see `train`. Default: None, the value of the run.
            store_paths (bool or None): see `train`. Default: None, the value of the run.

        Returns:
            The return value of `algo.train`.

        Raises:
            RuntimeError: there is no run to resume, or another thread of this process is training or evaluating.
            ValueError: `n_epochs` is below the number of completed epochs, or `batch_size` below one.
        """
        if self._plan is None:
            raise RuntimeError("resume: expected a run to resume; call restore() or train() first")
        given = {"n_epochs": n_epochs, "batch_size": batch_size, "store_paths": store_paths}
        plan = _check_plan(**{**self._plan, **{name: value for name, value in given.items() if value is not None}})
        if plan["n_epochs"] < self.epoch:
            raise ValueError(f"n_epochs: expected at least {self.epoch} (completed epochs), got {plan['n_epochs']}")
        self._plan = plan
        if self._is_restored or logger.get_dir() != self._snapshot_dir:
            self._configure_logger(None if self._saved is None else self.itr)
        return self._run()

    def _current_settings(self) -> Dict[str, Any]:
        plan = self._plan or {}
        size = {} if plan.get("batch_size") is None else {"batch_size": plan["batch_size"]}
        return {"n_itr": plan.get("n_epochs"), **size}

    def _run(self) -> Any:
        self._recorded_in = None
        try:
            with self._recording(self.itr), self._running():
                return self._algo("train").train(self)
        finally:
            self._shut_down_workers()
            self._saved = list_snapshots(self._snapshot_dir) if self._snapshot_dir else {}

    def step_epochs(self) -> Iterator[int]:
        """Yields the number of each epoch to the algorithm, which trains one epoch per value.

        The runner starts the sampler's workers before the first epoch. After each epoch, it calls the callbacks, logs
        the row and saves the snapshot. `train` and `resume` shut down the workers when they end.

        Raises:
            RuntimeError: the runner is not training.
        """
        if self._plan is None:
            raise RuntimeError("step_epochs: expected to be called by an algorithm in training; call train()")
        end = self._plan["n_epochs"]
        self.stopped = False
        if self.sampler is not None:
            self.sampler.start_worker()
        with self._bar(end) as bar:
            while self.itr < end and not self.stopped:
                self.step_path, self._times = None, {"Time-Sampling": 0.0}
                logger.logkv("Epoch", self.itr)
                with timed(self._times, "EpochTime"):
                    yield self.itr
                logger.logkvs({"Itr": self.step_itr, "n_timesteps": self.total_timesteps_sampled, **self._times,
                               "Time": self._elapsed()})
                self._finish_iteration()
                bar.update()

    def obtain_samples(self, itr: int, batch_size: Optional[int] = None) -> List[Path]:
        """Collects paths with the algorithm's current policy and counts their environment steps.

        Args:
            itr (int): iteration number, from which the random generators are derived.
            batch_size (int or None): environment steps; see `train`. Default: None, the value of the run.

        Returns:
            List of path dicts, see `types.Path`.

        Raises:
            RuntimeError: there is no sampler.
            ValueError: `batch_size` was given neither here nor to `train`, or is invalid.
        """
        sampler = self._check_sampler("obtain_samples")
        paths = self._sample(sampler.obtain_samples, itr, batch_size)
        self.total_timesteps_sampled += _count_steps(paths)
        return paths

    def obtain_population_samples(self, itr: int, flat_params: np.ndarray,
                                  batch_size: Optional[int] = None) -> List[List[Path]]:
        """Collects paths with the algorithm's policy for each candidate parameter vector.

        Args:
            itr (int): iteration of the first candidate; candidate `i` has iteration `itr + i`.
            flat_params: `[n, D]`, the parameter vectors of `n` candidates.
            batch_size (int or None): environment steps of each candidate; see `train`. Default: None, the value of the
                run.

        Returns:
            A list with one list of path dicts per candidate.

        Raises:
            RuntimeError, ValueError: as in `obtain_samples`.
        """
        sampler = self._check_sampler("obtain_population_samples")
        population = self._sample(sampler.obtain_population_samples, itr, batch_size, flat_params)
        self.total_timesteps_sampled += sum(map(_count_steps, population))
        return population

    def obtain_evaluation_samples(self, itr: int, num_paths: int) -> List[Path]:
        """Collects paths with the policy without exploration. Their environment steps are not counted.

        Args:
            itr (int): iteration number, from which the random generators are derived.
            num_paths (int): number of paths.

        Returns:
            List of `num_paths` path dicts.

        Raises:
            RuntimeError: there is no sampler.
        """
        sampler = self._check_sampler("obtain_evaluation_samples")
        with seeding.rooted(self._root):
            return sampler.obtain_evaluation_samples(itr, num_paths)

    def _check_sampler(self, method: str) -> Any:
        algo = self._algo(method)
        if self.sampler is None:
            raise RuntimeError(f"{method}: {type(algo).__name__} has no sampler; pass a sampler_cls to setup()")
        return self.sampler

    def _shut_down_workers(self) -> None:
        if self.sampler is not None:
            self.sampler.shutdown_worker()

    def _sample(self, obtain: Callable[..., List], itr: int, batch_size: Optional[int], *args: Any) -> List:
        """Calls a method of the sampler and measures its time."""
        batch_size = (self._plan or {}).get("batch_size") if batch_size is None else batch_size
        if batch_size is None:
            raise ValueError("batch_size: expected an integer of at least 1 here or in train(), got None")
        with timed(self._times, "Time-Sampling"), seeding.rooted(self._root):
            return obtain(itr, check_positive_int("batch_size", batch_size), *args)

    def save(self, epoch: int) -> Optional[str]:
        """Saves a snapshot if the logger's snapshot mode saves this epoch.

        Args:
            epoch (int): number of the last completed epoch.

        Returns:
            The path of the written file, or None.

        Raises:
            RuntimeError: `setup` was not called.
            SnapshotError: the snapshot cannot be written.
        """
        return logger.save_itr_params(check_int_at_least("epoch", epoch, 0), self.get_snapshot(epoch))

    def _get_state(self) -> Optional[Tuple]:
        state = self._algo("train").get_state()
        if state is None:
            return None
        loop = {"itr": self.itr - 1, "state": self._loop_state()}
        return state, self.step_itr, self.step_path, self.total_timesteps_sampled, loop

    def _set_state(self, state: Tuple) -> None:
        algo_state, self.step_itr, self.step_path, self.total_timesteps_sampled, loop = state
        self._algo("train").set_state(algo_state)
        self._restore_env(loop)
        self._restore_loop(loop)

    def _save(self) -> Optional[Tuple]:
        self.save(self.itr - 1)
        return self._get_state()

    def get_snapshot(self, epoch: int) -> Dict[str, Any]:
        """Returns the snapshot of an epoch.

        Args:
            epoch: number of the epoch.

        Returns:
            Dict with the keys `itr` (the epoch), `policy`, `env`, `baseline` (None if the algorithm has none), `algo`,
            `paths` (None unless `store_paths`) and `state` (everything else that `restore` needs).
        """
        algo, plan = self._algo("get_snapshot"), self._plan or _check_plan(epoch + 1, None, False)
        return {"itr": epoch, "policy": algo.policy, "env": self.sampled_env, "baseline": algo.baseline, "algo": algo,
                "paths": self.step_path if plan["store_paths"] else None,
                "state": {**self._sampler_setup, "plan": plan, "step_itr": self.step_itr,
                          "total_timesteps_sampled": self.total_timesteps_sampled, "spec": self.get_spec(),
                          **self._loop_state()}}

    def restore(self, from_dir: PathLike, from_epoch: Union[int, str] = "last") -> None:
        """Restores a run from a snapshot. Call `resume` afterwards.

        This restores algorithm, environment, sampler, counters and random generators. If `from_dir` is the runner's
        `snapshot_dir`, `resume` continues its files: it removes the rows and snapshots of later epochs. `restore`
        changes no file.

        Args:
            from_dir: run folder.
            from_epoch (int or str): number of a saved epoch, or `'first'` or `'last'` for the first or last saved
                epoch. Default: `'last'`.

        Raises:
            SnapshotError: the snapshot is missing or damaged.
            ValueError: `from_epoch` is invalid, or the snapshot was not saved by a `LocalRunner`.
        """
        from_dir = user_path("from_dir", from_dir)
        if not isinstance(from_epoch, str):
            itr: Optional[int] = check_int_at_least("from_epoch", from_epoch, 0)
        elif check_choice("from_epoch", from_epoch, ("last", "first")) == "first":
            itr = min(list_snapshots(from_dir).values(), default=None)
        else:
            itr = None  # the last one
        self.restore_snapshot(load_snapshot(from_dir, itr))
        self._is_restored, self._saved, folder = True, None, self._snapshot_dir
        if folder is not None and os.path.realpath(folder) == os.path.realpath(from_dir):
            self._saved = list_snapshots(folder)

    def restore_snapshot(self, snapshot: Mapping[str, Any]) -> None:
        """Restores a run from a loaded snapshot; does not configure the logger.

        To continue in the same folder, the caller configures the logger with `resume_at=runner.itr`.

        Args:
            snapshot: return value of `utils.snapshotter.load_snapshot`.

        Raises:
            ValueError: the snapshot was not saved by a `LocalRunner`, or was saved by another version of this package.
        """
        state = state_of(snapshot)
        if "plan" not in state:
            raise ValueError("snapshot: expected a snapshot of a LocalRunner, got that of a Trainer")
        recorded = state["spec"].arguments.get("sampler", {})  # `parallel` may have been replaced
        self.setup(snapshot["algo"], snapshot["env"], state["sampler_cls"],
                   {name: recorded.get(name, value) for name, value in state["sampler_args"].items()})
        self._plan = dict(state["plan"])
        self.step_itr, self.step_path = state["step_itr"], snapshot["paths"]
        self.total_timesteps_sampled = state["total_timesteps_sampled"]
        self._restore_loop(snapshot)

    def _algo(self, method: str) -> RLAlgorithm:
        if self.algo is None:
            raise RuntimeError(f"{method}: call setup() first")
        return self.algo

    def _configure_logger(self, resume_at: Optional[int]) -> None:
        """Opens the files of the run folder when training begins."""
        if self._snapshot_dir is not None:
            if resume_at is not None and self._saved != list_snapshots(self._snapshot_dir):
                raise ValueError(f"{self._snapshot_dir}: another runner changed the snapshots: call restore() again")
            logger.configure(self._snapshot_dir, None, *self._snapshots, resume_at)
        self._is_restored = False


def _check_plan(n_epochs: int, batch_size: Optional[int], store_paths: bool) -> Dict[str, Any]:
    return {"n_epochs": check_positive_int("n_epochs", n_epochs),
            "batch_size": None if batch_size is None else check_positive_int("batch_size", batch_size),
            "store_paths": check_bool("store_paths", store_paths)}


def _count_steps(paths: Sequence[Path]) -> int:
    return sum(len(path["rewards"]) for path in paths)
