"""The training loop: samples, adapts, samples again, and takes a meta-update."""
import contextlib
import os
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np

from meta_policy_search import run_folder
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.meta_algos.base import MetaAlgo
from meta_policy_search.optimizers.base import Optimizer
from meta_policy_search.optimizers.conjugate_gradient_optimizer import HessianVectorProduct
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.samplers.base import SampleProcessor, Sampler
from meta_policy_search.sessions import adopt_session
from meta_policy_search.tf_compat import tf
from meta_policy_search.training_loop import TrainingLoop
from meta_policy_search.types import PathsMetaBatch, TaskSamples
from meta_policy_search.utils import logger
from meta_policy_search.utils.callbacks import Callback, EarlyStopping
from meta_policy_search.utils.checks import (
    OfPart,
    check_bool,
    check_int_at_least,
    check_positive_int,
    check_same,
    given_or_of_part,
)
from meta_policy_search.utils.duck_typing import call_optional
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.progress import progress_bar
from meta_policy_search.utils.serializable import Configurable, given_arguments, present_arguments
from meta_policy_search.utils.snapshotter import check_same_version
from meta_policy_search.utils.statistics import mean_interval, task_returns
from meta_policy_search.utils.utils import timed

__all__ = ["EarlyStopping", "Trainer"]

_MOMENT = 1.0  # seconds of sampling, after which it gets a progress bar


class _Recipe(NamedTuple):
    """How a part is built: the class and the arguments, optimizers among them as recipes, as these hold tensors."""

    part_class: type
    arguments: Dict[str, Any]

    @classmethod
    def of(cls, part: Configurable) -> "_Recipe":
        """Returns how a part was built."""
        return cls(type(part), {
            name: cls.of(value) if isinstance(value, (Optimizer, HessianVectorProduct)) else value
            for name, value in given_arguments(part).items()})

    def build(self) -> Any:
        """Builds the part again."""
        return self.part_class(**{name: value.build() if isinstance(value, _Recipe) else value
                                  for name, value in self.arguments.items()})


class Trainer(TrainingLoop):
    """Performs steps of meta-policy search.

    Pseudocode::

        for itr in n_itr:
            sampler.update_tasks()
            for step in num_inner_grad_steps:
                sampler.obtain_samples(), with each task's policy
                algo.adapt()
            sampler.obtain_samples(), with the adapted policies
            algo.optimize_policy()

    Every iteration logs one row (`utils.logger`) and saves a snapshot. After training, the policy goes on working in
    this process, acting with the parameters before adaptation.

    Args:
        algo (MetaAlgo): the algorithm.
        env (MetaEnv): the environment, for snapshots and diagnostics.
        sampler (Sampler): collects the paths.
        sample_processor (SampleProcessor): turns paths into samples.
        policy (MetaPolicy): the policy.
        n_itr (int): number of the iteration to end before; iterations count from 0.
        start_itr (int): number of the first iteration, if some were done before; default 0.
        num_inner_grad_steps (int or None): inner steps per iteration; by default, and for None, the algorithm's.
        sess (tf.Session or None): session to run in, with the parameters of a policy that was loaded, say. By
            default the session of the policy's graph.
        callbacks (sequence of callables): each is called as `callback(trainer, row)` after every iteration, `row`
            being what was logged; training stops after an iteration for which one of them returns True.
        progress_bar (bool): whether to show a bar with the remaining time, and one for sampling where that takes
            longer than a moment, on a terminal or in a notebook (`utils.progress`); default False.
        diagnostics (bool): whether to log before each meta-update how noisy its gradient is, and what the inner steps
            do to gradients (`MAMLAlgo.compute_diagnostics`), which takes about as long as two gradient
            steps on the meta-objective; default False.

    Attributes:
        itr (int): number of the next iteration.

    Raises:
        ValueError: a number out of range, or one that differs between trainer, algorithm, sampler and policy; or
            `diagnostics` with an algorithm that has none, or with a single task.
    """

    writes_params: bool = True
    """Whether training writes `params.json` into the run folder, where there is one; the scripts write their own."""

    def __init__(
        self,
        algo: MetaAlgo,
        env: MetaEnv,
        sampler: Sampler,
        sample_processor: SampleProcessor,
        policy: MetaPolicy,
        n_itr: int,
        start_itr: int = 0,
        num_inner_grad_steps: Optional[int] = OfPart(1),
        sess: Optional[tf.Session] = None,
        callbacks: Sequence[Callback] = (),
        progress_bar: bool = False,
        diagnostics: bool = False,
    ) -> None:
        self.algo = algo
        self.env = env
        self.sampler: Any = sampler
        self.sample_processor: Any = sample_processor
        self.policy = policy
        self.n_itr = check_positive_int("n_itr", n_itr)
        self.start_itr = check_int_at_least("start_itr", start_itr, 0)
        if self.start_itr >= self.n_itr:
            raise ValueError(f"start_itr: expected less than n_itr={self.n_itr}, got {self.start_itr}")
        self.num_inner_grad_steps = given_or_of_part(
            "num_inner_grad_steps", num_inner_grad_steps, "algo.num_inner_grad_steps", algo.num_inner_grad_steps, 0)
        self._check_agreement()
        if sess is not None:
            if not isinstance(sess, tf.Session):
                raise TypeError(f"sess: expected a tf.Session or None, got {sess!r}")
            adopt_session(sess)
        super().__init__(callbacks, progress_bar, self.start_itr)
        self.diagnostics = check_bool("diagnostics", diagnostics)
        if self.diagnostics:
            getattr(type(algo), "build_diagnostics", MetaAlgo.build_diagnostics)(algo)
        self._written_in: Optional[str] = None  # the folder with this run's `params.json`
        parts = {"algo": algo, "sampler": sampler, "sample_processor": sample_processor}
        self._parts = {name: _Recipe.of(part) for name, part in parts.items() if isinstance(part, Configurable)}

    @classmethod
    def from_snapshot(cls, snapshot: Dict[str, Any], **arguments: Any) -> "Trainer":
        """Returns a trainer that goes on from a snapshot, built as the one that took it.

        Policy and environment are those of the snapshot, the other parts are built anew in the default graph. Load the
        snapshot there, too, and configure the logger with `positions=snapshot["state"]["outputs"]`.

        Args:
            snapshot: what `utils.snapshotter.load_snapshot` read.
            **arguments: of the trainer, in place of those it had, such as `n_itr`.

        Raises:
            ValueError: the snapshot does not say how its parts were built, or is of another version of this package.
        """
        state = snapshot["state"]
        check_same_version("snapshot: the run", state.get("version"))
        missing = {"algo", "sampler", "sample_processor", "trainer"} - set(state.get("parts", ()))
        if missing:
            raise ValueError(f"snapshot: expected one that says how {', '.join(sorted(missing))} were built, as those "
                             "of a Trainer do whose parts are of this package")
        own = {**state["parts"]["trainer"], **arguments}
        parts = {name: part.build() for name, part in state["parts"].items() if name != "trainer"}
        trainer = cls(env=snapshot["env"], policy=snapshot["policy"], **parts, **own)
        trainer.restore(snapshot)
        return trainer

    def _check_agreement(self) -> None:
        """Checks that what is given twice is the same everywhere."""
        for name in ("algo", "sampler"):
            size = getattr(getattr(self, name), "meta_batch_size", self.policy.meta_batch_size)
            check_same(f"{name}.meta_batch_size", size, "policy.meta_batch_size", self.policy.meta_batch_size)
            if getattr(getattr(self, name), "policy", self.policy) is not self.policy:
                raise ValueError(f"policy: expected the same object as {name}.policy")

    def train(self) -> None:
        """Trains until iteration `n_itr`; called again after that, goes on for as many iterations again.

        Raises:
            KeyboardInterrupt: Ctrl-C; the iteration is taken back, and a message says what was saved last.
        """
        end = self.n_itr if self.itr < self.n_itr else self.itr + self.n_itr - self.start_itr
        self._write_params()
        try:
            with self._running(), contextlib.closing(self._iterations(end)) as iterations:
                for _ in iterations:
                    self.perform_itr()
        finally:
            if self._written_in is not None and os.path.isdir(self._written_in):
                run_folder.record_end(self._written_in, self.stopped)

    def _write_params(self) -> None:
        """Writes `params.json`, where the logger has a folder that does not have it yet of this run."""
        folder = logger.get_dir()
        if folder is None or folder == self._written_in or not self.writes_params:
            return
        env = getattr(self.env, "unwrapped", self.env)
        changed = present_arguments(env, only_changed=True) if isinstance(env, Configurable) else {}
        settings = run_folder.settings_of(self.env, self.sample_processor, self.policy, self.algo, self.sampler, self)
        for part in ("policy", "sampler", "sample_processor", "callbacks", "sess"):
            settings.pop(part, None)
        settings.update(env=type(env).__name__, env_kwargs=run_folder.as_json(changed), seed=self._root,
                        snapshot_mode=logger.get_snapshot_mode())
        run_folder.record_start(folder, type(self.algo).__name__, settings, self.itr - self.start_itr)
        logger.log_settings({"script": type(self.algo).__name__, **settings})
        self._written_in = folder

    def train_itr(self) -> Row:
        """Performs one iteration and saves its snapshot.

        Returns:
            The row that was logged.
        """
        self._write_params()
        with self._running():
            self._begin()
            self.perform_itr()
            return self._commit()

    def perform_itr(self) -> List[np.ndarray]:
        """Performs one iteration and logs its figures; row, snapshot and count of iterations are left to the caller.

        Returns:
            The mean return in each task, float64 `[M]`, before adaptation and after each inner step.
        """
        if self._started is None:
            self._start_clock()
        all_samples: List[Sequence[TaskSamples]] = []
        returns: List[np.ndarray] = []
        times: Dict[str, float] = {}
        with timed(times, "Time-TotalInner"):
            self._begin_iteration()
            for step in range(self.num_inner_grad_steps + 1):
                prefix = f"Step_{step}-"
                with timed(times, "Time-Sampling"), self._sampling_bar(step):
                    paths = self.sampler.obtain_samples(log=True, log_prefix=prefix)
                with timed(times, "Time-SampleProc"):
                    samples = self.sample_processor.process_samples(paths, log="all", log_prefix=prefix)
                    self._log_diagnostics(paths, prefix)
                if step < self.num_inner_grad_steps:
                    with timed(times, "Time-InnerStep"):
                        self.algo.adapt(samples)
                    kl = getattr(self.algo, "adaptation_kl", MetaAlgo.adaptation_kl)
                    if kl is not None:
                        logger.logkv(prefix + "AdaptationKL", float(kl.mean()))
                all_samples.append(samples)
                returns.append(task_returns(paths))
        if self.diagnostics:
            with timed(times, "Time-Diagnostics"):
                logger.logkvs(self.algo.compute_diagnostics(all_samples))
            logger.logkv("Time-Diagnostics", times["Time-Diagnostics"])  # its column is beside those of the figures
        with timed(times, "Time-OuterStep"):
            self.algo.optimize_policy(all_samples)
            self.policy.switch_to_pre_update()
        _log_gain(returns)
        logger.logkvs({
            "Itr": self.itr,
            "n_timesteps": getattr(self.sampler, "total_timesteps_sampled", Sampler.total_timesteps_sampled),
            **times,
            "Time-MAMLSteps": times.get("Time-InnerStep", 0.0) + times["Time-OuterStep"],
            "ItrTime": times["Time-TotalInner"] + times.get("Time-Diagnostics", 0.0) + times["Time-OuterStep"],
            "Time": self._elapsed(),
        })
        return returns

    def _begin_iteration(self) -> None:
        call_optional(self.sampler, "start_at", self.itr)
        self.sampler.update_tasks()
        self.policy.switch_to_pre_update()

    @contextlib.contextmanager
    def _sampling_bar(self, step: int) -> Iterator[None]:
        """Shows in a `with` block how far sampling is, if the sampler says it."""
        total = getattr(self.sampler, "max_steps", Sampler.max_steps)
        if not self.progress_bar or not total:
            yield
            return
        with progress_bar(True, total, f"sampling, step {step}", "step", leave=False, delay=_MOMENT) as bar:
            lock = threading.Lock()

            def count(num_steps: int) -> None:
                with lock:
                    bar.update(num_steps)

            self.sampler.on_steps = count
            try:
                yield
            finally:
                self.sampler.on_steps = None

    def _log_diagnostics(self, paths: PathsMetaBatch, prefix: str) -> None:
        all_paths = [path for task_paths in paths.values() for path in task_paths]
        call_optional(self.env, "log_diagnostics", all_paths, prefix)
        self.policy.log_diagnostics(all_paths, prefix)

    def _get_state(self) -> Dict[str, Any]:
        call_optional(self.sampler, "start_at", self.itr)  # so that its state is without tasks, which would be set
        return self.get_itr_snapshot(self.itr - 1)

    def _set_state(self, state: Dict[str, Any]) -> None:
        self.restore(state)

    def _save(self, itr: int) -> None:
        logger.save_itr_params(itr, self.get_itr_snapshot(itr))

    def get_itr_snapshot(self, itr: int) -> Dict[str, Any]:
        """Returns what is saved of an iteration.

        Args:
            itr: number of the iteration.

        Returns:
            Dict of `itr`, `policy`, `env` and `baseline`, and `state`: all else that `restore` needs for the run to go
            on as if it had not been stopped.
        """
        return {
            "itr": itr,
            "policy": self.policy,
            "env": self.env,
            "baseline": self.sample_processor.baseline,
            "state": {
                "algo": call_optional(self.algo, "get_state"),
                "sampler": call_optional(self.sampler, "get_state"),
                "policy_params": self.policy.get_param_values(),
                "policy": call_optional(self.policy, "get_state"),
                "parts": {**self._parts, "trainer": {
                    "n_itr": self.n_itr, "start_itr": self.start_itr, "diagnostics": self.diagnostics}},
                **self._loop_state(),
            },
        }

    def restore(self, snapshot: Dict[str, Any]) -> None:
        """Goes on from a snapshot of a trainer that was built like this one.

        The logger is configured by the caller, with `positions=snapshot["state"]["outputs"]`.

        Args:
            snapshot: what `get_itr_snapshot` returned, or `utils.snapshotter.load_snapshot` read.

        Raises:
            ValueError: the snapshot does not fit the policy or the algorithm, or is of another version of this package.
        """
        state = snapshot["state"]
        check_same_version("snapshot: the run", state.get("version"))
        self.policy.set_params(state["policy_params"])
        self.policy.switch_to_pre_update()
        for name in ("policy", "algo", "sampler"):
            if state[name] is not None:
                getattr(self, name).set_state(state[name])
        baseline_params = call_optional(snapshot["baseline"], "get_param_values")
        if baseline_params is not None:
            self.sample_processor.baseline.set_params(baseline_params)
        self._restore_loop(snapshot)


def _log_gain(returns: Sequence[np.ndarray]) -> None:
    """Logs what adaptation gained: mean over tasks, and half the width of its 95% interval (Student's t)."""
    mean, half_width = mean_interval(returns[-1] - returns[0])
    logger.logkvs({"AdaptationGain": float(mean), "AdaptationGainCI95": float(half_width)})
