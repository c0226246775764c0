"""The training loop: samples, adapts, samples again and performs a meta-update."""
import os
from collections import abc
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from meta_policy_search import registry
from meta_policy_search.envs.compat import log_diagnostics
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.meta_algos.base import MetaAlgo
from meta_policy_search.policies.base import MetaPolicy
from meta_policy_search.run_spec import RunSpec, spec_of
from meta_policy_search.samplers.base import SampleProcessor, Sampler
from meta_policy_search.samplers.meta_sample_processor import MetaSampleProcessor
from meta_policy_search.sessions import adopt_session
from meta_policy_search.tf_compat import tf
from meta_policy_search.training_loop import TrainingLoop
from meta_policy_search.types import TaskSamples, WithoutEffect
from meta_policy_search.utils import logger
from meta_policy_search.utils.callbacks import Callback, EarlyStopping
from meta_policy_search.utils.checks import (
    check_agrees,
    check_arguments,
    check_bool,
    check_int_at_least,
    check_not_replaced,
    check_positive_int,
    check_type,
)
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.snapshotter import BEST_FILE, state_of, write_snapshot
from meta_policy_search.utils.statistics import mean_interval, task_returns, worst_quarter
from meta_policy_search.utils.threads import training_lock
from meta_policy_search.utils.utils import timed

__all__ = ["EarlyStopping", "Trainer"]


class Trainer(TrainingLoop):
    """Trains a policy by meta-policy search.

    Pseudocode::

        for itr in range(start_itr, n_itr):
            sampler.update_tasks()
            policy.switch_to_pre_update()
            for step in range(num_inner_grad_steps):
                samples = sample_processor.process_samples(sampler.obtain_samples())  # current policy of each task
                algo.adapt(samples)
            samples = sample_processor.process_samples(sampler.obtain_samples())      # adapted policies
            algo.optimize_policy(samples of all steps)
            for callback in callbacks:
                callback(trainer, row)
            write the row, save the snapshot

    Every iteration logs one row (`utils.logger`) and saves a snapshot. After training, the policy remains usable in
    this process. It then acts with the pre-update parameters.

    Args:
        algo (MetaAlgo): the algorithm.
        env (MetaEnv): the environment, used for diagnostics. Snapshots contain the environment of the sampler.
        sampler (Sampler): collects the paths.
        sample_processor (SampleProcessor): computes samples from the paths.
        policy (MetaPolicy): the policy.
        n_itr (int): final iteration (exclusive), counted from 0, also if `start_itr` is above 0.
        start_itr (int): number of the first iteration; default 0.
        num_inner_grad_steps (int): adaptation steps per iteration; must equal `algo.num_inner_grad_steps`. Default 1.
        sess (tf.Session or None): session to run in, for example one with the parameters of a loaded policy. Default
            None: the session of the policy's graph.
        callbacks (sequence of callables): each is called as `callback(trainer, row)` at the end of every iteration,
            before its row is written; it can add columns with `logger.logkv`. If a callback returns True, training
            stops. See `utils.callbacks`. Default: none.
        progress_bar (bool): whether to show a progress bar with the remaining time, on a terminal or in a notebook
            (`utils.progress`); default False.
        diagnostics (bool): whether to log gradient diagnostics before each meta-update: the noise of the meta-gradient
            and the effect of the adaptation steps on gradients (`MAMLAlgo.compute_diagnostics`). They take about as
            long as two gradient steps on the meta-objective. Default False.

    Attributes:
        itr (int): number of the current iteration, in callbacks too; between iterations, number of the next one.
        stopped (bool): whether a callback stopped the run.
        is_best (bool): whether the snapshot of the current iteration is also saved as `best.pkl`; set by an
            `EvalCallback`.

    Raises:
        TypeError: an argument has the wrong type, or a method of a part was replaced on the object.
        ValueError: a number is out of range, or differs between trainer, algorithm, sampler and policy. Also if
            `diagnostics` is True and the algorithm has no diagnostics, or the meta-batch has only one task.
    """

    assignable_arguments = (*TrainingLoop.assignable_arguments, "n_itr")
    is_best = False

    def __init__(self, algo: MetaAlgo, env: MetaEnv, sampler: Sampler, sample_processor: MetaSampleProcessor,
                 policy: MetaPolicy, n_itr: int, start_itr: int = 0, num_inner_grad_steps: int = 1,
                 sess: Optional[tf.Session] = None, callbacks: Sequence[Callback] = (),
                 progress_bar: WithoutEffect[bool] = False, diagnostics: WithoutEffect[bool] = False) -> None:
        self.algo = _check_part("algo", algo, MetaAlgo)
        self._env = env
        self.sampler = _check_part("sampler", sampler, Sampler)
        self.sample_processor = _check_part("sample_processor", sample_processor, SampleProcessor)
        if type(sample_processor) is SampleProcessor:
            raise TypeError("sample_processor: expected a MetaSampleProcessor, got a SampleProcessor, which is for one "
                            "task")
        check_arguments(f"{type(sample_processor).__name__}.process_samples", sample_processor.process_samples,
                        "(paths_meta_batch, log, log_prefix)", None, log="all", log_prefix="")
        self._parts = {"algo": self.algo, "sampler": self.sampler, "sample_processor": self.sample_processor}
        self.policy = policy
        self.start_itr, self.n_itr = check_int_at_least("start_itr", start_itr, 0), n_itr
        if self.start_itr >= self.n_itr:
            raise ValueError(f"start_itr: expected less than n_itr={self.n_itr}, got {self.start_itr}")
        for name, part in (("algo", algo), ("sampler", sampler)):
            if part.policy is not None and part.policy is not policy:
                raise ValueError(f"policy: expected the same object as {name}.policy")
        self.num_inner_grad_steps = check_agrees(
            "num_inner_grad_steps", check_int_at_least("num_inner_grad_steps", num_inner_grad_steps, 0),
            "algo.num_inner_grad_steps", algo.num_inner_grad_steps)
        if self.sampler.batch_size is not None:
            self.algo.check_batch(self.sampler.batch_size)
        if sess is not None:
            if not isinstance(sess, tf.Session):
                raise TypeError(f"sess: expected a tf.Session or None, got {sess!r}")
            if any(variable.graph is not sess.graph for variable in algo.policy.get_params().values()):
                raise ValueError("sess: expected a session of the graph of the policy, got one of another graph")
            adopt_session(sess)
        self.sess = sess
        super().__init__(callbacks, progress_bar, self.start_itr)
        self.diagnostics = check_bool("diagnostics", diagnostics)
        if self.diagnostics:
            self.algo.build_diagnostics()
        self.spec = spec_of(registry.name_of(type(algo)), env, ("algo", "sampler", "sample_processor"),
                            sample_processor=sample_processor, policy=policy, algo=algo, sampler=sampler, trainer=self)

    @classmethod
    def from_snapshot(cls, snapshot: Dict[str, Any], **arguments: Any) -> "Trainer":
        """Builds a trainer that resumes training from a snapshot.

        Policy and environment come from the snapshot. Algorithm, sampler and sample processor are built from their
        saved arguments in the default graph. Load the snapshot in the same graph, and configure the logger with
        `resume_at=trainer.itr`.

        Args:
            snapshot: return value of `utils.snapshotter.load_snapshot`.
            **arguments: arguments of the trainer that replace the saved ones, such as `n_itr`.

        Returns:
            A trainer whose next iteration is the one after the snapshot.

        Raises:
            ValueError: the snapshot was saved by another version of this package.
        """
        trainer = cls.build_like(snapshot, **arguments)
        trainer.restore(snapshot)
        return trainer

    @classmethod
    def build_like(cls, snapshot: Dict[str, Any], **arguments: Any) -> "Trainer":
        """Builds a trainer like the one that saved a snapshot, but before its first iteration; see `from_snapshot`."""
        spec: RunSpec = state_of(snapshot)["spec"]
        parts = {name: spec.build(name) for name in ("algo", "sampler", "sample_processor")}
        numbers = {name: spec.settings[name] for name in ("n_itr", "start_itr")}
        return cls(**parts, env=snapshot["env"], policy=snapshot["policy"],
                   **{**spec.arguments["trainer"], **numbers, **arguments})

    @property
    def n_itr(self) -> int:
        """Final iteration (exclusive). It can be assigned, for example by a callback."""
        return self._n_itr

    @n_itr.setter
    def n_itr(self, value: int) -> None:
        self._n_itr = check_positive_int("n_itr", value)

    @training_lock()
    def train(self) -> None:
        """Trains until iteration `n_itr` (exclusive).

        If these iterations are complete, it trains for `n_itr - start_itr` more.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed. The iteration is rolled back.
            RuntimeError: another thread of this process is training or evaluating.
        """
        more = 0 if self.itr < self.n_itr else self.itr - self.start_itr
        self.stopped, self._recorded_in = False, None
        with self._recording(self.itr - self.start_itr), self._running(), self._bar(self.n_itr + more) as bar:
            while self.itr < self.n_itr + more and not self.stopped:
                self._iterate()
                bar.update()

    def _current_settings(self) -> Dict[str, Any]:
        return {"n_itr": self.n_itr, "start_itr": self.start_itr}

    @training_lock()
    def train_itr(self) -> Row:
        """Performs one iteration with its callbacks, row and snapshot; returns the logged row."""
        with self._recording(self.itr - self.start_itr), self._running():
            return self._iterate()

    def _iterate(self) -> Row:
        self.is_best = False
        self.sampler.start_at(self.itr)
        self._before["state"]["sampler"] = self.sampler.get_state()  # without tasks: a rollback must not set them
        self.perform_itr()
        return self._finish_iteration()

    def perform_itr(self) -> List[np.ndarray]:
        """Performs one iteration and logs its columns.

        The caller calls the callbacks, writes the row, saves the snapshot and increments `itr`.

        Returns:
            A list of `num_inner_grad_steps + 1` arrays, float64 `[M]`, with the mean return in each task before
            adaptation and after each adaptation step.
        """
        all_samples: List[Sequence[TaskSamples]] = []
        returns: List[np.ndarray] = []
        times: Dict[str, float] = {}
        with timed(times, "Time-TotalInner"):
            self.sampler.start_at(self.itr)
            self.sampler.update_tasks()
            self.policy.switch_to_pre_update()
            for step in range(self.num_inner_grad_steps + 1):
                prefix = f"Step_{step}-"
                with timed(times, "Time-Sampling"):
                    paths = self.sampler.obtain_samples(log=True, log_prefix=prefix)
                with timed(times, "Time-SampleProc"):
                    samples = self.sample_processor.process_samples(paths, log="all", log_prefix=prefix)
                    check_type("process_samples", samples, abc.Sequence, "a list with the samples of each task")
                    all_paths = [path for task_paths in paths.values() for path in task_paths]
                    log_diagnostics(self.env, all_paths, prefix)
                    log_diagnostics(self.policy, all_paths, prefix)
                if step == 0:
                    pre_update_paths = all_paths
                if step < self.num_inner_grad_steps:
                    with timed(times, "Time-InnerStep"):
                        self.algo.adapt(samples)
                    if (kl := self.algo.adaptation_kl) is not None:
                        logger.logkv(f"{prefix}AdaptationKL", float(kl.mean()))
                all_samples.append(samples)
                returns.append(task_returns(paths))
            with timed(times, "Time-SampleProc"):
                self.sample_processor.train_baseline(pre_update_paths)
        self.sampler.observe_returns(returns[-1])
        if self.diagnostics:
            with timed(times, "Time-Diagnostics"):
                logger.logkvs(self.algo.compute_diagnostics(all_samples))
            logger.logkv("Time-Diagnostics", times["Time-Diagnostics"])  # its column follows the diagnostics
        with timed(times, "Time-OuterStep"):
            self.algo.optimize_policy(all_samples)
            self.policy.switch_to_pre_update()
        gain, half_width = mean_interval(returns[-1] - returns[0])  # over tasks, Student's t
        logger.logkvs({
            "AdaptationGain": float(gain), "AdaptationGainCI95": float(half_width),
            "WorstQuarterReturn": float(worst_quarter(returns[-1])), "Itr": self.itr,
            "n_timesteps": self.sampler.total_timesteps_sampled, **times,
            "Time-MAMLSteps": times.get("Time-InnerStep", 0.0) + times["Time-OuterStep"],
            "ItrTime": times["Time-TotalInner"] + times.get("Time-Diagnostics", 0.0) + times["Time-OuterStep"],
            "Time": self._elapsed()})
        return returns

    def _get_state(self) -> Dict[str, Any]:
        return self.get_itr_snapshot(self.itr - 1)

    def _set_state(self, state: Dict[str, Any]) -> None:
        self.restore(state)

    def _save(self) -> Dict[str, Any]:
        snapshot, folder = self._get_state(), logger.get_dir()
        if self.is_best and folder is not None:
            write_snapshot(os.path.join(folder, BEST_FILE), self.itr - 1, snapshot)
        logger.save_itr_params(self.itr - 1, snapshot)
        return snapshot

    def get_itr_snapshot(self, itr: int) -> Dict[str, Any]:
        """Returns the snapshot of an iteration.

        Args:
            itr: number of the iteration.

        Returns:
            Dict with the keys `itr`, `policy`, `env`, `baseline` and `state`. `state` holds everything else that
            `restore` needs so that the resumed run equals an uninterrupted run.
        """
        return {
            "itr": itr, "policy": self.policy, "env": self.sampled_env, "baseline": self.sample_processor.baseline,
            "state": {
                "algo": self.algo.get_state(), "sampler": self.sampler.get_state(),
                "sample_processor": self.sample_processor.get_state(),
                "assigned": {name: {key: getattr(part, key) for key in part.assignable_arguments}
                             for name, part in self._parts.items()},
                "policy_params": self.policy.get_param_values(), "policy": self.policy.get_state(),
                "spec": self.get_spec(), **self._loop_state()}}

    def restore(self, snapshot: Dict[str, Any]) -> None:
        """Restores a snapshot; the next `train` resumes after its iteration.

        This trainer must have been built with the same arguments as the trainer that saved the snapshot. The caller
        configures the logger with `resume_at=trainer.itr`.

        Args:
            snapshot: return value of `get_itr_snapshot` or `utils.snapshotter.load_snapshot`.

        Raises:
            ValueError: the trainer that saved the snapshot was built with different arguments (arguments that do not
                change the data, such as `parallel`, may differ), or by another version of this package.
        """
        state = state_of(snapshot)
        if differing := state["spec"].differences(self.spec, ("snapshot", "trainer")):
            raise ValueError(f"snapshot: settings differ: {differing}. To train its weights with others: "
                             "policy.set_params(snapshot['state']['policy_params'])")
        self.policy.set_params(state["policy_params"])
        self.policy.switch_to_pre_update()
        self.policy.set_state(state["policy"])
        self.algo.set_state(state["algo"])
        self._restore_env(snapshot)
        if state["sampler"] is not None:
            self.sampler.set_state(state["sampler"])
        self.sample_processor.set_state(state["sample_processor"])
        for name, part in self._parts.items():
            for key, value in state["assigned"][name].items():
                setattr(part, key, value)
        self._restore_loop(snapshot)


def _check_part(name: str, part: Any, interface: type) -> Any:
    return check_not_replaced(name, check_type(name, part, interface, f"a {interface.__name__}"), interface)
