"""Checks that an environment keeps what samplers rely on."""
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.gym_compat import check_meta_env, make_batched, sample_tasks
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor
from meta_policy_search.samplers.vectorized_env_executor.local import MetaIterativeEnvExecutor, make_local_executor
from meta_policy_search.utils.checks import check_int_at_least, check_positive_int

OTHER_PATHS = 20
"""Number of paths between a path and its repetition: some environments change only after several paths."""


def check_env(env: Any, num_steps: int = 50, seed: int = 0) -> None:
    """Checks that a path depends on task, random numbers and actions alone.

    Samplers step several copies of an environment, one path after the other in each. What they collect is the same for
    any number of copies and processes, and for a run that was resumed, if everything random comes from the generator
    that they set (`self.np_random`), and `reset` sets everything else anew. Here a path with random actions is repeated
    in another copy, after other paths, together with other copies and, where there is a batched form, without it.

    Args:
        env: meta-environment, which is copied.
        num_steps: most steps of a path. Default: 50.
        seed: of tasks, random numbers and actions. Default: 0.

    Raises:
        ValueError: a path was not the same again; says what differed and when, and what to do.
        EnvWorkerError: the environment failed, or what it returned does not fit its spaces.
    """
    check_meta_env(env)
    num_steps, seed = check_positive_int("num_steps", num_steps), check_int_at_least("seed", seed, 0)
    tasks = sample_tasks(env, 2, np.random.default_rng(seed))

    def play(executor: MetaEnvExecutor, *env_ids: int, first_seed: int = 0) -> List[Dict[str, Any]]:
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
    if make_batched(env, 1) is not None:
        with MetaIterativeEnvExecutor(env, 2, 1, num_steps) as executor:
            executor.set_tasks(tasks)
            _compare(env, expected, play(executor, 0), "without make_batched")


def _play(executor: MetaEnvExecutor, space: Any, env_ids: Sequence[int], seeds: Sequence[Tuple[int, int]],
          num_steps: int) -> List[Dict[str, Any]]:
    """Plays a path in each of some environments; returns what the first one gave, at its start and at each step."""
    ids = np.array(env_ids)
    rngs = dict(zip(env_ids, [np.random.default_rng((*seed, 1)) for seed in seeds]))  # of the actions
    observations = executor.reset_envs(ids, [np.random.default_rng((*seed, 0)) for seed in seeds])
    given = [{"observation": observations[0].copy()}]
    while len(ids) and ids[0] == env_ids[0] and len(given) <= num_steps:
        actions = [rngs[e].integers(space.n) if is_discrete(space) else
                   np.clip(rngs[e].standard_normal(space.shape), space.low, space.high) for e in ids.tolist()]
        answer = executor.step_envs(np.array(actions), ids)
        given.append({"observation": answer.observations[0].copy(), "reward": answer.rewards[0],
                      "terminated": answer.terminated[0], "truncated": answer.truncated[0],
                      **{f"env_infos[{key!r}]": values[0] for key, values in answer.env_infos.items()}})
        ids = ids[~(answer.terminated | answer.truncated)]
    return given


def _compare(env: Any, expected: List[Dict[str, Any]], given: List[Dict[str, Any]], where: str) -> None:
    for step, (before, now) in enumerate(zip(expected, given)):
        for key in before:
            try:
                np.testing.assert_equal(now.get(key), before[key])
            except AssertionError:
                raise ValueError(
                    f"{type(env).__name__}: expected a path to be the same for the same task, random numbers and "
                    f"actions, but {f'after {step} steps' if step else 'at its start'} the {key} is {now.get(key)} "
                    f"{where}, and was {before[key]} before. Draw everything random from self.np_random (batched: from "
                    "the generators that reset is given), and set everything else anew in reset") from None
