"""Collects paths that explore, and paths that show what has been learnt."""
from typing import Any, List, Optional, Union

from meta_policy_search.samplers.meta_sampler import ExecutorFactory
from meta_policy_search.samplers.single_task_sampler import SingleTaskSampler, count_paths
from meta_policy_search.types import Path
from meta_policy_search.utils.checks import check_positive_int

__all__ = ["OffPolicySampler"]

_EVALUATION = 1


class OffPolicySampler(SingleTaskSampler):
    """Collects paths for an `OffPolicyRLAlgorithm`, each from its start to its end.

    Args:
        algo (OffPolicyRLAlgorithm): whose `exploration_policy`, or if it is None `policy`, explores, in
            `rollout_batch_size` environments that step together, and whose `policy` is evaluated.
        env: as for `SingleTaskSampler`. Where `max_path_length` is None, one with a time limit of its own
            (`env.spec.max_episode_steps`).
        parallel (bool): whether environments are stepped in worker processes; see `MetaSampler`. Default: False.
        executor (str, callable or None): forces an executor; see `MetaSampler`.

    Raises:
        ValueError: the policy does not fit the environment's spaces.
        TypeError: `env` cannot be stepped, or an argument of the wrong type.
    """

    def __init__(
        self, algo: Any, env: Any, parallel: bool = False, executor: Union[str, ExecutorFactory, None] = None
    ) -> None:
        super().__init__(algo, env, parallel=parallel, executor=executor)

    def obtain_samples(self, itr: int, batch_size: int) -> List[Path]:
        """Collects paths that explore.

        Args:
            itr: iteration that random numbers are drawn for, at least 0.
            batch_size: environment steps, at least 1, if no path ends early; rounded up to whole paths.

        Returns:
            List of path dicts, see `types.Path`.

        Raises:
            ValueError: an observation, reward or action is not finite; or the length of paths is not known.
            EnvWorkerError: the environment failed, or a worker process died.
        """
        algo = self._algo
        policy = algo.policy if algo.exploration_policy is None else algo.exploration_policy
        length = self._length("max_path_length", algo.max_path_length)
        num_paths = count_paths(batch_size, length)
        return self._collect_paths(policy, itr, num_paths, length,
                                   envs_at_once=min(algo.rollout_batch_size, num_paths))

    def obtain_evaluation_samples(self, itr: int, num_paths: int) -> List[Path]:
        """Collects paths of the policy itself, with random numbers of their own.

        Args:
            itr: iteration that random numbers are drawn for, at least 0.
            num_paths: number of paths, at least 1.

        Returns:
            List of path dicts of at most `max_eval_path_length` steps.

        Raises:
            ValueError, EnvWorkerError: as in `obtain_samples`.
        """
        algo = self._algo
        limit = algo.max_path_length if algo.max_eval_path_length is None else algo.max_eval_path_length
        length = self._length("max_eval_path_length", limit)
        return self._collect_paths(algo.policy, itr, check_positive_int("num_paths", num_paths), length,
                                   purpose=_EVALUATION)

    def _length(self, name: str, length: Optional[int]) -> int:
        limit = getattr(getattr(self._env, "spec", None), "max_episode_steps", None) if length is None else length
        if limit is None:
            raise ValueError(f"{name}: expected a number of steps, as {type(self._env.unwrapped).__name__} has no time "
                             "limit of its own (env.spec.max_episode_steps), got None")
        return limit
