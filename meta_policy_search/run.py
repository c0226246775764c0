"""High-level API: one function call each to train, load, evaluate, plot or resume a run."""
import contextlib
import copy
import inspect
import os
from typing import Any, Dict, Optional, Sequence, Tuple, Type, Union

import numpy as np

from meta_policy_search import baselines
from meta_policy_search.envs import MetaEnv, NormalizedEnv, TrialEnv, find_env, make_env, normalize
from meta_policy_search.envs.gym_compat import name_of_env
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.evaluation import Evaluation
from meta_policy_search.evaluation.adapted_policy import AdaptedPolicy, adapt_with
from meta_policy_search.evaluation.trial_evaluator import make_evaluator
from meta_policy_search.meta_algos import DICEMAML, RL2, VPG_DICEMAML, MAMLAlgo
from meta_policy_search.meta_algos.exploring import UNBIASED
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.plotting import plot_learning_curve, read_progress
from meta_policy_search.plotting.style import Figure
from meta_policy_search.policies import (
    CategoricalGRUPolicy,
    GaussianGRUPolicy,
    GRUPolicy,
    MetaCategoricalMLPPolicy,
    MetaGaussianMLPPolicy,
    MetaPolicy,
    Policy,
)
from meta_policy_search.registry import find_algorithm, get_algorithm, name_of
from meta_policy_search.run_folder import make_run_folder
from meta_policy_search.samplers import DiceMetaSampleProcessor, MetaSampleProcessor, MetaSampler, TrialSampleProcessor
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Task
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.callbacks import Callback
from meta_policy_search.utils.checks import check_choice, check_positive_int, did_you_mean
from meta_policy_search.utils.files import PathLike
from meta_policy_search.utils.log_outputs import check_formats
from meta_policy_search.utils.serializable import argument_names
from meta_policy_search.utils.snapshotter import BEST, load_snapshot, snapshot_paths
from meta_policy_search.utils.threads import one_thread
from meta_policy_search.utils.utils import set_seed

TRAIN_DEFAULTS = {"meta_batch_size": 20, "rollouts_per_meta_task": 20, "max_path_length": 100,
                  "hidden_sizes": (64, 64), "normalize_adv": True, "progress_bar": True}
"""Settings of `train` that differ from the defaults of the classes."""
_LOG_FORMATS = ("line", "log", "csv")
_GIVEN = {"env", "policy", "algo", "sampler", "sample_processor", "obs_dim", "action_dim", "name", "n_itr", "start_itr",
          "sess", "callbacks"}  # arguments that `make_trainer` passes to the classes


@one_thread()
def train(env: Union[str, MetaEnv], algo: Union[str, Type[MAMLAlgo], Type[RL2]] = "promp", n_itr: int = 100,
          seed: int = 1, dump_path: Optional[PathLike] = None, callbacks: Sequence[Callback] = (),
          log_formats: Sequence[str] = _LOG_FORMATS, policy: Union[Policy, Type[Policy], None] = None,
          **settings: Any) -> "Run":
    """Trains a policy that adapts to the tasks of an environment.

    In a new graph, the function builds the normalized environment (`normalize`), a policy for the environment's spaces,
    a `MetaSampler`, a sample processor, the algorithm and a `Trainer`.

    Args:
        env: environment, or the name of one (`available_envs`).
        algo: `"promp"`, `"trpo_maml"`, `"e_maml"` (TRPO-MAML with `exploration=True`), `"vpg_maml"`, `"dice_maml"`,
            `"vpg_dice_maml"`, another name registered with `register_algorithm`, or a subclass of `MAMLAlgo`. Case,
            hyphens and underscores are ignored. Default `"promp"`. `"rl2"` (or a subclass of `RL2`) trains a recurrent
            policy on trials of `episodes_per_trial` episodes; a `TrialEnv`, a policy such as `CategoricalGRUPolicy` and
            a `TrialSampleProcessor` replace the classes above, and `max_path_length` is the length of an episode.
        n_itr: number of iterations, each with one meta-update; default 100.
        seed: root seed of all random generators; default 1.
        dump_path: run folder. Default None: `data/<algorithm>/<environment>/<time>_seed<seed>`.
        callbacks: called after every iteration, see `Trainer`; default none.
        log_formats: outputs, see `utils.logger`. Default: one line per iteration on the terminal, `log.txt` and
            `progress.csv`.
        policy: the policy, or its class. Training changes a copy of the policy, which starts with its weights and
            becomes `run.policy`; a class is built with `for_env` and the settings. Default None: a class for the
            environment's spaces, such as `MetaGaussianMLPPolicy`.
        **settings: arguments of the classes above by name, such as `inner_lr`, `hidden_sizes` or `discount`. Each
            argument is passed to every class that has it. The defaults are the defaults of the classes, with these
            exceptions: 20 tasks (`meta_batch_size`), 20 paths per task (`rollouts_per_meta_task`), at most 100 steps
            per path (`max_path_length`), two hidden layers with 64 units (`hidden_sizes`), normalized advantages
            (`normalize_adv`), a progress bar, and as `baseline` a `LinearFeatureBaseline` (for DiCE a
            `LinearTimeBaseline`, for RL2 the policy's value head). A baseline is an object, which is copied, or the
            name of a class. The documentation page "Default settings" compares the defaults with the published
            settings.

    Returns:
        The run. After Ctrl-C (in a notebook: the stop button), it has the completed iterations, and a message says how
        to resume it. A loop over several calls continues after Ctrl-C; press it again to end the loop.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed before the first iteration was complete.
        TypeError: a setting is not an argument of any of the classes (the message suggests the closest name), or the
            policy does not fit the algorithm.
        ValueError: the name of the environment or algorithm is unknown, the folder holds a run, or a setting is out of
            range, or the policy does not fit the environment.
        RuntimeError: another thread of this process is training or evaluating.
    """
    algo_class = get_algorithm(algo) if isinstance(algo, str) else algo
    if not (isinstance(algo_class, type) and issubclass(algo_class, (MAMLAlgo, RL2))):
        raise TypeError(f"algo: expected a subclass of MAMLAlgo or RL2, or its name, got {algo!r}")
    if isinstance(algo, str) and find_algorithm(algo) == "e_maml":
        settings = {"exploration": True, **settings}
    if dump_path is not None and os.path.isdir(dump_path) and snapshot_paths(dump_path):
        earlier = os.fspath(dump_path)
        raise ValueError(f"dump_path: expected a folder without an earlier run, got {earlier}. Choose another folder, "
                         f"or resume the earlier run: mps.load_run({earlier!r}).resume(n_itr=...)")
    env_name = find_env(env) if isinstance(env, str) else name_of_env(env)
    formats = check_formats(log_formats, "log_formats")
    if isinstance(policy, (MetaPolicy, GRUPolicy)):
        settings.setdefault("meta_batch_size", policy.meta_batch_size)
    with tf.Graph().as_default():
        set_seed(seed)
        trainer = make_trainer(make_env(env) if isinstance(env, str) else env, algo_class, n_itr, callbacks, settings,
                               policy)
        folder = make_run_folder(name_of(trainer.algo), env_name, seed) if dump_path is None else dump_path
        with logger.scoped_configure(folder, formats):
            count = f"{n_itr} iteration{'s' * (n_itr != 1)}"
            logger.log(f"{env_name}, seed {seed}: {count} of {algo_class.__name__}, written to {folder}")
            return Run(trainer, folder)._train()


def make_trainer(env: MetaEnv, algo_class: Type[Any], n_itr: int, callbacks: Sequence[Callback],
                 settings: Dict[str, Any], policy: Any = None) -> Trainer:
    """Builds policy, sampler, sample processor, algorithm and trainer; see `train`."""
    if issubclass(algo_class, RL2):
        return _make_rl2_trainer(env, algo_class, n_itr, callbacks, settings, policy)
    is_dice = issubclass(algo_class, DICEMAML)
    default = MetaCategoricalMLPPolicy if is_discrete(env.action_space) else MetaGaussianMLPPolicy
    policy = _check_policy(policy or default, MetaPolicy)
    processor_class = DiceMetaSampleProcessor if is_dice else MetaSampleProcessor
    classes = (env if isinstance(env, NormalizedEnv) else NormalizedEnv, policy, MetaSampler, processor_class,
               algo_class, Trainer)
    baseline = baselines.LinearTimeBaseline() if is_dice else baselines.LinearFeatureBaseline()
    given = _split_settings(classes, algo_class, settings, baseline=baseline)
    if not is_dice and settings.get("inner_type") not in UNBIASED:  # the others do not depend on it
        given[algo_class].pop("max_path_length", None)
    env = env if isinstance(env, NormalizedEnv) else normalize(env, **given[NormalizedEnv])
    if issubclass(algo_class, VPG_DICEMAML):
        given[processor_class].setdefault("return_baseline", baselines.LinearFeatureBaseline())
    policy = _build_policy(policy, env, given)
    algo = algo_class(policy=policy, **given[algo_class])
    given[Trainer].setdefault("num_inner_grad_steps", algo.num_inner_grad_steps)
    return Trainer(algo, env, MetaSampler(env, policy, **given[MetaSampler]), processor_class(**given[processor_class]),
                   policy, n_itr, callbacks=callbacks, **given[Trainer])


def _make_rl2_trainer(env: Any, algo_class: Type[RL2], n_itr: int, callbacks: Sequence[Callback],
                      settings: Dict[str, Any], policy: Any) -> Trainer:
    default = CategoricalGRUPolicy if is_discrete(env.action_space) else GaussianGRUPolicy
    policy = _check_policy(policy or default, GRUPolicy)
    wrappers: Tuple[type, ...] = (NormalizedEnv, TrialEnv)
    if isinstance(env, TrialEnv):
        wrappers = ()
        if "max_path_length" in settings:
            raise TypeError("max_path_length: expected no value for a TrialEnv, which has its own, got "
                            f"{settings['max_path_length']!r}")
    elif isinstance(env, NormalizedEnv):
        wrappers = (TrialEnv,)
    given = _split_settings((*wrappers, policy, MetaSampler, TrialSampleProcessor, algo_class, Trainer), algo_class,
                            settings)
    for wrapper in wrappers:
        env = wrapper(env, **given[wrapper])
    given[MetaSampler]["max_path_length"] = env.trial_length
    policy = _build_policy(policy, env, given)
    algo = algo_class(policy=policy, **given[algo_class])
    given[Trainer].setdefault("num_inner_grad_steps", 0)
    sampler = MetaSampler(env, policy, **given[MetaSampler])
    num_trials = sampler.meta_batch_size * sampler.rollouts_per_meta_task
    if algo.optimizer.num_minibatches > num_trials:
        raise ValueError(f"num_minibatches: expected at most the number of trials in an iteration, {num_trials}, got "
                         f"{algo.optimizer.num_minibatches}")
    return Trainer(algo, env, sampler, TrialSampleProcessor(**given[TrialSampleProcessor]), policy, n_itr,
                   callbacks=callbacks, **given[Trainer])


def _check_policy(policy: Any, kind: type) -> Any:
    """Returns a policy or policy class; raises `TypeError` if it is of another kind."""
    policy_class = policy if isinstance(policy, type) else type(policy)
    if not issubclass(policy_class, kind):
        raise TypeError(f"policy: expected a {kind.__name__} or a subclass of it, got {policy_class.__name__}")
    return policy


def _build_policy(policy: Any, env: MetaEnv, given: Dict[type, Dict[str, Any]]) -> Any:
    """Builds a policy of a class for an environment, or copies a policy into the default graph."""
    return policy.for_env(env, **given[policy]) if policy in given else copy.deepcopy(policy)


def _split_settings(classes: Sequence[Any], algo_class: type, settings: Dict[str, Any],
                    **defaults: Any) -> Dict[type, Dict[str, Any]]:
    """Returns the settings, defaults included, that each class takes; raises `TypeError` if none takes one.

    Objects among the classes, which the caller has built, take no settings. Baselines are copied, because training
    changes them; names of baselines are replaced by objects.
    """
    taken = {cls: argument_names(cls) - _GIVEN for cls in classes if isinstance(cls, type)}
    known = set().union(*taken.values())
    for name in settings.keys() - known:
        raise TypeError(f"train: unknown argument {name!r} for {algo_class.__name__}"
                        f"{did_you_mean(name, {*known, *inspect.signature(train).parameters})}")
    settings = {**TRAIN_DEFAULTS, **defaults, **settings}
    for name in settings.keys() & {"baseline", "return_baseline"}:
        given = settings[name]
        settings[name] = (vars(baselines)[check_choice(name, given, baselines.BASELINES)]() if isinstance(given, str)
                          else copy.deepcopy(given))
    return {cls: {key: value for key, value in settings.items() if key in names} for cls, names in taken.items()}


def load_run(folder: PathLike, itr: Union[int, str, None] = None) -> "Run":
    """Loads a run of a `Trainer` from a snapshot. Loading executes code from the folder.

    Args:
        folder: run folder.
        itr: iteration of the snapshot, or `"best"` for the best policy of an `EvalCallback`. Default None: the last
            snapshot.

    Returns:
        The run in its state after that iteration.

    Raises:
        SnapshotError: the snapshot is missing or damaged.
        ValueError: the snapshot lacks the constructor arguments of a part, see `Trainer.from_snapshot`.
    """
    with seeding.evaluation_seed(0), tf.Graph().as_default():  # keeps the caller's random generators unchanged
        trainer = Trainer.from_snapshot(load_snapshot(folder, itr), progress_bar=TRAIN_DEFAULTS["progress_bar"])
        trainer.sampler.close()
        return Run(trainer, folder)


class Run:
    """A training run: a trainer and its run folder. Returned by `train` and `load_run`.

    Attributes:
        trainer (Trainer): the trainer with all its parts.
        folder (str): absolute path of the run folder.
    """

    def __init__(self, trainer: Trainer, folder: PathLike) -> None:
        self.trainer, self.folder = trainer, os.path.abspath(os.fspath(folder))

    @property
    def policy(self) -> MetaPolicy:
        """The policy, with its pre-update parameters."""
        return self.trainer.policy

    @property
    def best(self) -> "Run":
        """The run in the state with the best policy that an `EvalCallback` saved.

        Raises:
            SnapshotError: the folder has no `best.pkl`.
        """
        return load_run(self.folder, BEST)

    @property
    def env(self) -> MetaEnv:
        """The environment."""
        return self.trainer.env

    @property
    def progress(self) -> Dict[str, np.ndarray]:
        """The columns of `progress.csv` by name; see `plotting.read_progress`."""
        return read_progress(self.folder)

    def to_dataframe(self) -> Any:
        """Returns `progress` as a `pandas.DataFrame` with one row per iteration.

        Raises:
            ImportError: pandas is not installed; the message contains the command that installs it.
            ValueError: see `plotting.read_progress`.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_dataframe requires the package pandas: run `pip install pandas`") from error
        return pandas.DataFrame(self.progress)

    def act(self, observation: Any, deterministic: bool = False) -> Any:
        """Returns the action of the pre-update policy for an observation; see `policy.act`."""
        return self.policy.act(observation, deterministic)

    def evaluate(self, tasks: Union[int, Sequence[Task]] = 40, num_steps: Optional[int] = None,
                 step_sizes: Optional[Sequence[float]] = None, seeds: Sequence[int] = (1,)) -> Evaluation:
        """Measures returns after 0, 1, ... steps; see `MetaEvaluator.evaluate` and `TrialEvaluator.evaluate`."""
        evaluator = make_evaluator(self.trainer, name=os.path.basename(self.folder))
        return evaluator.evaluate(tasks, num_steps, step_sizes, seeds)

    def adapt(self, task: Task = None, num_steps: Optional[int] = None, rollouts: int = 20,
              seed: int = 1) -> AdaptedPolicy:
        """Adapts the policy to one task, with the settings of the run. The run does not change.

        Args:
            task: the task. Default None: a task sampled with the seed.
            num_steps: number of adaptation steps, at least 1; for RL^2, number of episodes before the policy acts.
                Default None: as in training.
            rollouts: number of paths per adaptation step; for RL^2, number of trials that `returns` is the mean of.
                Default 20.
            seed: seed of all random generators; default 1.

        Returns:
            The adapted policy. It acts, measures its return (`evaluate`) and records a video (`record`).

        Raises:
            ValueError: a number is out of range, or the environment rejects the task.
            FloatingPointError: an adaptation step would produce parameters that are not finite.
        """
        return adapt_with(make_evaluator(self.trainer, rollouts_per_meta_task=rollouts), task, num_steps, seed)

    def plot(self, path: Optional[PathLike] = None, ax: Any = None) -> Figure:
        """Draws the learning curve; see `plotting.plot_learning_curve`."""
        return plot_learning_curve(self.folder, path, ax=ax)

    def resume(self, n_itr: int, log_formats: Sequence[str] = _LOG_FORMATS, callbacks: Sequence[Callback] = ()
               ) -> "Run":
        """Resumes training from the last snapshot. The resumed run equals an uninterrupted run.

        Existing log files are always continued, even if `log_formats` does not contain their format.

        Args:
            n_itr: total number of iterations, including the completed ones.
            log_formats: outputs, see `utils.logger`. Default as for `train`.
            callbacks: called after every iteration, see `Trainer`. Default none: snapshots do not contain callbacks.

        Returns:
            This run; after Ctrl-C, with the completed iterations.

        Raises:
            SnapshotError: the snapshot is missing or damaged.
            ValueError: the run already has at least `n_itr` iterations, or its snapshot lacks the constructor arguments
                of a part.
        """
        formats = check_formats(log_formats, "log_formats")
        with tf.Graph().as_default():
            snapshot = load_snapshot(self.folder)
            if check_positive_int("n_itr", n_itr) <= snapshot["itr"] + 1:
                raise ValueError(f"n_itr: expected more than {snapshot['itr'] + 1} (completed iterations), got "
                                 f"{n_itr}")
            self.trainer = Trainer.from_snapshot(snapshot, n_itr=n_itr, callbacks=callbacks,
                                                 progress_bar=self.trainer.progress_bar)
            with logger.scoped_configure(self.folder, formats, resume_at=self.trainer.itr):
                return self._train()

    def _train(self) -> "Run":
        with contextlib.closing(self.trainer.sampler):
            try:
                self.trainer.train()
            except KeyboardInterrupt:
                if self.trainer.itr == 0:
                    raise
                logger.log(f"To resume: run.resume(n_itr={self.trainer.n_itr}), or in another process "
                           f"mps.load_run({self.folder!r}).resume(n_itr={self.trainer.n_itr})")
        return self

    def __repr__(self) -> str:
        return f"<Run of {self.trainer.itr} iterations in {self.folder}>"
