"""Builds an evaluator from a run folder."""
from typing import Optional, Union

from meta_policy_search.envs.compat import check_meta_env, copy_env, set_render_mode
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.envs.normalized_env import check_wrapped_like, get_averages, set_averages
from meta_policy_search.envs.trial_env import TrialEnv
from meta_policy_search.evaluation.evaluator import MetaEvaluator
from meta_policy_search.evaluation.trial_evaluator import check_adapts, make_evaluator
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.run_spec import RunSpec
from meta_policy_search.samplers.ray_executor import Parallel
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_int_at_least
from meta_policy_search.utils.files import PathLike
from meta_policy_search.utils.snapshotter import BEST, LAST, load_snapshot, state_of


def load_evaluator(run_folder: PathLike, snapshot: Union[int, str, None] = LAST,
                   rollouts_per_meta_task: Optional[int] = None, max_path_length: Optional[int] = None,
                   env: Optional[MetaEnv] = None, render_mode: Optional[str] = None,
                   parallel: Optional[Parallel] = None) -> MetaEvaluator:
    """Builds an evaluator for a run of a `Trainer`. It samples and adapts with the settings of the run.

    Loading executes code from the run folder.

    Args:
        run_folder: folder of the run.
        snapshot: `"last"`, `"best"` (saved by an `EvalCallback`), the iteration of a snapshot, or None for a randomly
            initialized policy. With None, the weights equal the run's initial weights if the policy was the first
            object built after the seed was set. Default `"last"`.
        rollouts_per_meta_task: number of paths of each task, before adaptation and again after each adaptation step.
            Default None: the value of the run.
        max_path_length: maximum number of steps of a path, for RL2 of an episode. Default None: the value of the run.
        env: environment of the tasks, wrapped as in training. A copy of it receives the run's averages of observations
            and rewards, if these are normalized. Default None: the environment of the run.
        render_mode: render mode of the environment, such as `"rgb_array"`. Default None: the mode of the run.
        parallel: how to sample in parallel, see `MetaSampler`. Default None: the value of the run.

    Returns:
        The evaluator.

    Raises:
        SnapshotError: the snapshot is missing or damaged; the message lists the existing snapshots.
        TypeError: the algorithm of the run learns a single task.
        ValueError: the environment does not support the render mode, has another action space than that of the run, or
            does not normalize the same quantities; see also `Trainer.from_snapshot`.
    """
    itr = None if snapshot == LAST else snapshot
    if itr not in (None, BEST):
        if isinstance(itr, str):
            raise ValueError(f"snapshot: expected {LAST!r}, {BEST!r}, the number of an iteration or None, got {itr!r}")
        check_int_at_least("snapshot", itr, 0)
    with seeding.evaluation_seed(0), tf.Graph().as_default():  # building draws random numbers
        content = load_snapshot(run_folder, itr)
        check_adapts(content.get("algo"))
        spec: RunSpec = state_of(content)["spec"]
        lengths = {} if max_path_length is None else {"max_path_length": max_path_length}
        content["state"]["spec"] = spec.with_arguments({"parallel": False, **lengths})  # its sampler is not used
        trainer = Trainer.build_like(content)
        if snapshot is None:
            seeding.set_root(content["state"]["seeding"]["root"])
            trainer.policy.set_params(trainer.policy.clone().get_param_values())
            trainer.policy.switch_to_pre_update()
        else:
            trainer.restore(content)
        run_env = trainer.env
        if env is not None:
            check_meta_env(env)
            if isinstance(env, TrialEnv) != isinstance(run_env, TrialEnv):
                raise ValueError(f"env: expected {'a' if isinstance(run_env, TrialEnv) else 'no'} TrialEnv for the "
                                 f"policy in {run_folder}, got {type(env).__name__}; RL2 cannot be compared with other "
                                 "methods here")
            check_wrapped_like(env, run_env, f"the run in {run_folder}")
            if averages := get_averages(run_env):
                env = copy_env(env)
                set_averages(env, averages)
        elif isinstance(run_env, TrialEnv) and max_path_length is not None:
            env = TrialEnv(run_env.wrapped_env, run_env.episodes_per_trial, max_path_length)
        replaced = {"rollouts_per_meta_task": rollouts_per_meta_task, "max_path_length": max_path_length, "env": env,
                    "parallel": spec.arguments.get("sampler", {}).get("parallel") if parallel is None else parallel}
        name = "random initialization" if snapshot is None else f"{run_folder}, iteration {content['itr']}"
        evaluator = make_evaluator(
            trainer, name=name, **{name: value for name, value in replaced.items() if value is not None})
        if render_mode is not None:
            set_render_mode(evaluator.env, render_mode)
        return evaluator
