"""Checks that samplers collect the same paths of an environment in every setting."""
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.compat import adapt_env
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.samplers.vectorized_env_executor.base import SteppingExecutor
from meta_policy_search.samplers.vectorized_env_executor.local import MetaIterativeEnvExecutor, make_local_executor
from meta_policy_search.utils.checks import check_int_at_least, check_positive_int

OTHER_PATHS = 20
"""Number of paths between a path and its repetition: some environments change only after several paths."""


def check_env(env: Any, num_steps: int = 50, seed: int = 0) -> None:
    """Checks that a path depends only on the task, the random numbers of its generator and the actions.

    Samplers step several copies of an environment, and each copy runs its paths sequentially. If the environment draws
    all random numbers from the generator that samplers set (`self.np_random`) and `reset` initializes all other state,
    samples do not depend on the number of copies or processes, and a resumed run equals an uninterrupted one.

    The check runs a path with random actions several times: in another copy, after other paths, together with other
    copies and, if the environment has `make_batched`, also without this method. All runs must give the same
    observations, rewards, ends and env_infos.

    Args:
        env: meta-environment; it is copied.
        num_steps: maximum number of steps of a path, at least 1; default 50.
        seed: seed of tasks, generators and actions, at least 0; default 0.

    Raises:
        ValueError: the path differed in a run. The message names the setting, the step, the value and the remedy.
        EnvWorkerError: the environment raised an error, or its values do not fit its spaces.
    """
    adapted = adapt_env(env)
    num_steps, seed = check_positive_int("num_steps", num_steps), check_int_at_least("seed", seed, 0)
    tasks = adapted.sample_tasks(2, np.random.default_rng(seed))

    def play(executor: SteppingExecutor, *env_ids: int, first_seed: int = 0) -> List[Dict[str, Any]]:
        seeds = [(seed, first_seed + i) for i in range(len(env_ids))]
        return _play(executor, env.action_space, env_ids, seeds, num_steps)

    with make_local_executor(env, 2, 2, num_steps) as executor:
        executor.set_tasks(tasks)
        expected = play(executor, 0)
        _compare(env, expected, play(executor, 1), "in another copy")
        for i in range(1, OTHER_PATHS + 1):
            play(executor, 0, first_seed=i)
        _compare(env, expected, play(executor, 0), "after other paths")
        executor.set_tasks(tasks[::-1])
        play(executor, 0)
        executor.set_tasks(tasks)
        _compare(env, expected, play(executor, 0), "after a path in another task")
        _compare(env, expected, play(executor, 0, 1, 2, 3), "together with other copies")
    if adapted.make_batched(1) is not None:
        with MetaIterativeEnvExecutor(env, 2, 1, num_steps) as executor:
            executor.set_tasks(tasks)
            _compare(env, expected, play(executor, 0), "without make_batched")


def _play(executor: SteppingExecutor, space: Any, env_ids: Sequence[int], seeds: Sequence[Tuple[int, int]],
          num_steps: int) -> List[Dict[str, Any]]:
    """Runs one path in each environment of `env_ids`.

    Returns the values of the first environment at the start and after each step.
    """
    ids = np.array(env_ids)
    rngs = dict(zip(env_ids, [np.random.default_rng((*seed, 1)) for seed in seeds]))  # generators of the actions
    observations = executor.reset_envs(ids, [np.random.default_rng((*seed, 0)) for seed in seeds])
    steps = [{"observation": observations[0].copy()}]
    while len(ids) and ids[0] == env_ids[0] and len(steps) <= num_steps:
        actions = [rngs[e].integers(space.n) if is_discrete(space) else
                   np.clip(rngs[e].standard_normal(space.shape), space.low, space.high) for e in ids.tolist()]
        answer = executor.step_envs(np.array(actions), ids)
        steps.append({"observation": answer.observations[0].copy(), "reward": answer.rewards[0],
                      "terminated": answer.terminated[0], "truncated": answer.truncated[0],
                      **{f"env_infos[{key!r}]": values[0] for key, values in answer.env_infos.items()}})
        ids = ids[~(answer.terminated | answer.truncated)]
    return steps


def _compare(env: Any, expected: List[Dict[str, Any]], steps: List[Dict[str, Any]], where: str) -> None:
    for step, (before, now) in enumerate(zip(expected, steps)):
        for key in before:
            try:
                np.testing.assert_equal(now.get(key), before[key])
            except AssertionError:
                raise ValueError(
                    f"{type(env).__name__}: expected identical paths for the same task, random numbers and actions, "
                    f"got a different path: {f'after {step} steps' if step else 'at the start'} the {key} is "
                    f"{now.get(key)} {where}, but was {before[key]} in the first run. Draw all random numbers from "
                    "self.np_random (vectorized: from the generators passed to reset), and initialize all other "
                    "state in reset") from None
