"""The evaluator of a run folder."""
import inspect
from typing import Any, Dict, Mapping, Optional, Union

from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.evaluation.evaluator import MetaEvaluator
from meta_policy_search.meta_trainer import Part
from meta_policy_search.run_folder import innermost
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
    """Returns the evaluator of a run of a `Trainer`, which samples and adapts like the run.

    Loading runs code from the run folder.

    Args:
        run_folder: folder of the run.
        snapshot: `"last"`, the iteration of a snapshot, or None for a random initialization of the policy: the initial
            policy of the run, if that was the first object built after the seed was set.
        rollouts_per_meta_task: paths in each task after each number of steps; default None, as in the run.
        max_path_length: most steps of a path; default None, as in the run.
        env: environment of the tasks; default None, that of the run.
        render_mode: render mode of the environment, such as `"rgb_array"`; default None, as in the run.
        parallel: how to sample in parallel, see `MetaSampler`; default None, as in the run.

    Raises:
        SnapshotError: there is no such snapshot; the message lists the existing ones.
        ValueError: the snapshot lacks the arguments of a part, see `Trainer.from_snapshot`; or the environment does not
            support the render mode.
    """
    itr = None if snapshot in (LAST, None) else check_int_at_least("snapshot", snapshot, 0)
    with seeding.evaluation_seed(0), tf.Graph().as_default():  # building draws random numbers
        content = load_snapshot(run_folder, itr)
        parts: Mapping[str, Part] = content["state"].get("parts", {})
        if not {"algo", "sampler", "sample_processor"} <= set(parts):
            raise ValueError("run_folder: expected the run of a Trainer whose parts are of this package, with their "
                             f"constructor arguments, got {run_folder}")
        sampler, length = _named_arguments(parts["sampler"]), {}
        if max_path_length is not None:
            length = {"max_path_length": check_positive_int("max_path_length", max_path_length)}
        algo_part = _with_arguments(parts["algo"], **length)
        if snapshot is None:
            seeding.set_root(content["state"]["seeding"]["root"])
            algo = _build(_with_arguments(algo_part, policy=content["policy"].clone()))
        else:
            algo = _build(algo_part)
            algo.policy.switch_to_pre_update()
            algo.set_state(content["state"]["algo"])
        env = content["env"] if env is None else env
        if render_mode is not None:
            _set_render_mode(env, render_mode)
        rollouts = sampler["rollouts_per_meta_task"]
        if rollouts_per_meta_task is not None:
            rollouts = check_positive_int("rollouts_per_meta_task", rollouts_per_meta_task)
        envs_per_task = sampler.get("envs_per_task")
        return MetaEvaluator(
            algo, env, _build(_with_arguments(parts["sample_processor"], **length)), rollouts,
            max_path_length or sampler["max_path_length"], envs_per_task and min(envs_per_task, rollouts),
            sampler.get("parallel", False) if parallel is None else parallel,
            "random initialisation" if snapshot is None else f"{run_folder}, iteration {content['itr']}")


def _build(part: Part) -> Any:
    part_class, args, kwargs = part
    return part_class(*args, **kwargs)


def _named_arguments(part: Part) -> Dict[str, Any]:
    """Returns the given arguments of a part by name."""
    part_class, args, kwargs = part
    return {**inspect.signature(part_class).bind_partial(*args, **kwargs).arguments, **kwargs}


def _with_arguments(part: Part, **changes: Any) -> Part:
    """Returns a part with other values of those of its arguments that were given and are not None."""
    part_class, args, kwargs = part
    given = _named_arguments(part)
    changes = {name: value for name, value in changes.items() if given.get(name) is not None}
    names = list(inspect.signature(part_class).parameters)
    args = tuple(changes.pop(name, value) for name, value in zip(names, args)) + args[len(names):]
    return part_class, args, {**kwargs, **changes}


def _set_render_mode(env: Any, render_mode: str) -> None:
    """Makes an environment draw that was built without a render mode and is not in use yet."""
    inner = innermost(env)
    can_change = hasattr(inner, "_draw") and render_mode in inner.metadata["render_modes"]
    if not can_change and getattr(env, "render_mode", None) != render_mode:
        raise ValueError(f"render_mode: {type(inner).__name__} does not support render_mode={render_mode!r}")
    while can_change and env is not None:
        env.render_mode = render_mode
        env = vars(env).get("wrapped_env")
