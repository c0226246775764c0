"""Collects the paths of off-policy algorithms, for learning and for evaluation."""
from typing import Any, List, Optional, Union

from meta_policy_search.samplers.meta_sampler import ExecutorFactory
from meta_policy_search.samplers.single_task_sampler import SingleTaskSampler, count_paths
from meta_policy_search.types import Path
from meta_policy_search.utils.checks import check_positive_int

_EVALUATION = 1


class OffPolicySampler(SingleTaskSampler):
    """Collects paths for an `OffPolicyRLAlgorithm`, each from its start to its end.

    Args:
        algo (OffPolicyRLAlgorithm): its `exploration_policy` (if None, its `policy`) explores, in `rollout_batch_size`
            environments that step together; its `policy` is evaluated.
        env: as for `SingleTaskSampler`. Where `max_path_length` is None, one with a time limit of its own
            (`env.spec.max_episode_steps`).
        parallel (bool): whether environments are stepped in worker processes; see `MetaSampler`. Default: False.
        executor (str, callable or None): forces an executor; see `MetaSampler`.
    """

    def __init__(self, algo: Any, env: Any, parallel: bool = False,
                 executor: Union[str, ExecutorFactory, None] = None) -> None:
        super().__init__(algo, env, parallel=parallel, executor=executor)

    def obtain_samples(self, itr: int, batch_size: int) -> List[Path]:
        """Collects paths that explore; see `SingleTaskSampler.obtain_samples`.

        Raises:
            ValueError: also if the length of paths is not known.
        """
        algo = self._algo
        policy = algo.policy if algo.exploration_policy is None else algo.exploration_policy
        length = self._length("max_path_length", algo.max_path_length)
        num_paths = count_paths(batch_size, length)
        return self._collect_paths(policy, itr, num_paths, length, envs_at_once=min(algo.rollout_batch_size, num_paths))

    def obtain_evaluation_samples(self, itr: int, num_paths: int) -> List[Path]:
        """Collects `num_paths` paths of the policy itself, of at most `max_eval_path_length` steps.

        Random numbers belong to the iteration `itr`, and are not those of `obtain_samples`.
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
