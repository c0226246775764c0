"""Bernoulli bandits: the first experiment of RL^2 (arXiv:1611.02779, section 3.1)."""
from typing import List, Sequence

import numpy as np

from meta_policy_search.envs.discrete_envs.base import BatchedDiscreteEnv
from meta_policy_search.envs.interface import BatchableMetaEnv
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import Task
from meta_policy_search.utils.checks import check_positive_int


class BatchedMetaBernoulliBanditEnv(BatchedDiscreteEnv):
    """Many `MetaBernoulliBanditEnv`, stepped together; arguments as there."""

    def __init__(self, num_envs: int, num_arms: int = 5) -> None:
        self.num_arms = check_positive_int("num_arms", num_arms)
        super().__init__(num_envs, obs_dim=1, num_actions=self.num_arms)
        self._probabilities: np.ndarray = np.full((self.num_envs, self.num_arms), 0.5)

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` bandits, each the probabilities float64 `[num_arms]` of its arms."""
        return list(rng.uniform(size=(n_tasks, self.num_arms)))

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """See `BatchedEnv.set_tasks`; a task is the probabilities `[num_arms]` that the arms pay."""
        self._check_count(tasks)
        probabilities = np.array([as_array(f"task {i}", task, (self.num_arms,)) for i, task in enumerate(tasks)])
        outside = ((probabilities < 0.0) | (probabilities > 1.0)).any(axis=1)
        if outside.any():
            i = int(np.argmax(outside))
            raise ValueError(f"task {i}: expected probabilities, from 0 to 1, got {tasks[i]!r}")
        self._probabilities = probabilities

    def get_tasks(self) -> List[Task]:
        return list(self._probabilities.copy())

    def _start(self, ids: np.ndarray) -> None:
        """There is no state."""

    def _act(self, actions: np.ndarray, ids: np.ndarray) -> np.ndarray:
        pays = self._draw(np.random.Generator.random, ids) < self._probabilities[ids, actions]
        return pays.astype(np.float64)

    def _observe(self, ids: np.ndarray) -> np.ndarray:
        return np.ones((len(ids), 1))


class MetaBernoulliBanditEnv(BatchableMetaEnv):
    """A slot machine whose arms each pay with a probability of their own.

    ===============  ============================================================================
    observation      always 1
    action           arm to pull, an integer from 0 to `num_arms - 1`
    task             probability of each arm, independent and uniform in `[0, 1]`; at first 0.5
    start            there is no state
    reward           1 with the probability of the arm that is pulled, else 0
    end of episode   never; the sampler's path length, the number of pulls, cuts it off
    ===============  ============================================================================

    The best arm can only be found from rewards. A policy without adaptation or memory earns 0.5 a pull on average over
    tasks, whatever it pulls; the best arm alone earns `num_arms / (num_arms + 1)`.

    Args:
        num_arms: number of arms, at least one; default 5.

    References:
        Duan, Schulman, Chen, Bartlett, Sutskever, Abbeel: RL^2: Fast Reinforcement Learning via Slow Reinforcement
        Learning, 2016 (arXiv:1611.02779), which has 5, 10 and 50 arms, and 10, 100 and 500 pulls.
    """

    batched_class = BatchedMetaBernoulliBanditEnv

    def __init__(self, num_arms: int = 5) -> None:
        super().__init__(num_arms=num_arms)
