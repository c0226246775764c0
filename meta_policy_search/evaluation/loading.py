"""The evaluator of a run, by its folder."""
from typing import Any, Mapping, Optional, Union

from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.evaluation.evaluator import MetaEvaluator
from meta_policy_search.samplers import RayOptions
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_int_at_least, check_positive_int
from meta_policy_search.utils.files import PathLike
from meta_policy_search.utils.snapshotter import load_snapshot

LAST = "last"


def load_evaluator(
    run_folder: PathLike,
    snapshot: Union[int, str, None] = LAST,
    rollouts_per_meta_task: Optional[int] = None,
    max_path_length: Optional[int] = None,
    env: Optional[MetaEnv] = None,
    render_mode: Optional[str] = None,
    parallel: Union[bool, str, RayOptions, None] = None,
) -> MetaEvaluator:
    """Returns the evaluator of a run of a `Trainer`, which samples and adapts as the run did.

    This runs code from the run folder.

    Args:
        run_folder: folder of the run.
        snapshot: `"last"`, the iteration of a snapshot, or None for a random initialisation of the policy: that which
            the run began from, if its policy was the first to be built after the seed was set.
        rollouts_per_meta_task: paths in each task after each number of steps; default None, as in the run.
        max_path_length: most steps of a path; default None, as in the run.
        env: environment that the tasks belong to; default None, that of the run.
        render_mode: what the environment is to draw, such as `"rgb_array"`; default None, as in the run.
        parallel: how to sample in parallel, see `MetaSampler`; default None, as in the run.

    Raises:
        SnapshotError: there is no such snapshot; lists those there are.
        ValueError: the snapshot does not say how its parts were built, see `Trainer.from_snapshot`; or there are no
            such pictures of the environment.
    """
    itr = None if snapshot in (LAST, None) else check_int_at_least("snapshot", snapshot, 0)
    with seeding.evaluation_seed(0), tf.Graph().as_default():  # building draws random numbers
        content = load_snapshot(run_folder, itr)
        parts: Mapping[str, Any] = content["state"].get("parts", {})
        if not {"algo", "sampler", "sample_processor"} <= set(parts):
            raise ValueError(f"run_folder: expected the run of a Trainer whose parts are of this package, and say how "
                             f"they were built, got {run_folder}")
        name = f"{run_folder}, iteration {content['itr']}"
        recipe, processor, sampler = parts["algo"], parts["sample_processor"], dict(parts["sampler"].arguments)
        if rollouts_per_meta_task is not None:
            sampler["rollouts_per_meta_task"] = check_positive_int("rollouts_per_meta_task", rollouts_per_meta_task)
        if max_path_length is not None:
            sampler["max_path_length"] = check_positive_int("max_path_length", max_path_length)
            recipe, processor = (_with_length(part, max_path_length) for part in (recipe, processor))
        if snapshot is None:
            name = "random initialisation"
            seeding.set_root(content["state"]["seeding"]["root"])
            recipe = recipe._replace(arguments={**recipe.arguments, "policy": content["policy"].clone()})
        algo = recipe.build()
        if snapshot is not None:
            algo.policy.switch_to_pre_update()
            algo.set_state(content["state"]["algo"])
        env = content["env"] if env is None else env
        if render_mode is not None:
            _draw(env, render_mode)
        rollouts = sampler["rollouts_per_meta_task"]
        envs_per_task = sampler.get("envs_per_task")
        return MetaEvaluator(
            algo, env, processor.build(), rollouts, sampler["max_path_length"],
            envs_per_task and min(envs_per_task, rollouts),
            sampler.get("parallel", False) if parallel is None else parallel, name)


def _with_length(recipe: Any, max_path_length: int) -> Any:
    """Returns the recipe of an object with another length of paths, where it was given one, as those of DiCE are."""
    if recipe.arguments.get("max_path_length") is None:
        return recipe
    return recipe._replace(arguments={**recipe.arguments, "max_path_length": max_path_length})


def _draw(env: Any, render_mode: str) -> None:
    """Has an environment that was made without pictures, and is not in use yet, draw some."""
    innermost = getattr(env, "unwrapped", env)
    can_change = hasattr(innermost, "_draw") and render_mode in innermost.metadata["render_modes"]
    if not can_change and getattr(env, "render_mode", None) != render_mode:
        raise ValueError(f"render_mode: there are no pictures ({render_mode}) of {type(innermost).__name__}")
    while can_change and env is not None:
        env.render_mode = render_mode
        env = vars(env).get("wrapped_env")
