"""Random Markov decision processes with a few states: the second experiment of RL^2 (arXiv:1611.02779, section 3.2)."""
from typing import Any, Dict, List, Sequence

import numpy as np

from meta_policy_search.envs.discrete_envs.base import BatchedDiscreteEnv
from meta_policy_search.envs.interface import BatchableMetaEnv
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.utils import draw_index

_KEYS = ("transitions", "reward_means")
_TOLERANCE = 1e-6  # how far the sum of probabilities may be from one


class BatchedMetaTabularMDPEnv(BatchedDiscreteEnv):
    """Many `MetaTabularMDPEnv`, stepped together; arguments as there."""

    def __init__(self, num_envs: int, num_states: int = 10, num_actions: int = 5) -> None:
        self.num_states = check_positive_int("num_states", num_states)
        self.num_actions = check_positive_int("num_actions", num_actions)
        super().__init__(num_envs, obs_dim=self.num_states, num_actions=self.num_actions)
        pairs = (self.num_envs, self.num_states, self.num_actions)
        self._transitions: np.ndarray = np.full((*pairs, self.num_states), 1.0 / self.num_states)
        self._reward_means: np.ndarray = np.ones(pairs)
        self._states = np.zeros(self.num_envs, dtype=int)

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Draws `n_tasks` processes, each a dict with `transitions` `[S, A, S]` and `reward_means` `[S, A]`."""
        pairs = (n_tasks, self.num_states, self.num_actions)
        transitions = rng.dirichlet(np.ones(self.num_states), size=pairs)
        reward_means = rng.normal(1.0, 1.0, size=pairs)
        return [dict(zip(_KEYS, values)) for values in zip(transitions, reward_means)]

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """See `BatchedEnv.set_tasks`; a task is a dict as `sample_tasks` returns it."""
        self._check_count(tasks)
        checked = [self._check_task(f"task {i}", task) for i, task in enumerate(tasks)]
        self._transitions, self._reward_means = (np.array([task[key] for task in checked]) for key in _KEYS)

    def get_tasks(self) -> List[Task]:
        return [dict(zip(_KEYS, values)) for values in zip(self._transitions.copy(), self._reward_means.copy())]

    def _check_task(self, name: str, task: Any) -> Dict[str, np.ndarray]:
        if not isinstance(task, dict) or set(task) != set(_KEYS):
            raise ValueError(f"{name}: expected a dict with the keys {' and '.join(_KEYS)}, got {task!r}")
        pairs = (self.num_states, self.num_actions)
        transitions = as_array(f"{name}, transitions", task["transitions"], (*pairs, self.num_states))
        if (transitions < 0.0).any() or (np.abs(transitions.sum(axis=-1) - 1.0) > _TOLERANCE).any():
            raise ValueError(f"{name}, transitions: expected probabilities, at least 0, whose sum over next states is "
                             f"1, got {task['transitions']!r}")
        reward_means = as_array(f"{name}, reward_means", task["reward_means"], pairs)
        return {"transitions": transitions, "reward_means": reward_means}

    def _start(self, ids: np.ndarray) -> None:
        self._states[ids] = 0

    def _act(self, actions: np.ndarray, ids: np.ndarray) -> np.ndarray:
        states = self._states[ids]
        rewards = self._reward_means[ids, states, actions] + self._draw(np.random.Generator.standard_normal, ids)
        uniform = self._draw(np.random.Generator.random, ids)
        self._states[ids] = draw_index(self._transitions[ids, states, actions], uniform)
        return rewards

    def _observe(self, ids: np.ndarray) -> np.ndarray:
        return np.eye(self.num_states)[self._states[ids]]


class MetaTabularMDPEnv(BatchableMetaEnv):
    """A random Markov decision process, in which every action leads to any state.

    ===============  ============================================================================
    observation      the state, one-hot: `num_states` zeros, but for a one at the state's number
    action           an integer from 0 to `num_actions - 1`
    task             a process: a dict with `transitions` `[S, A, S]`, the probabilities of the
                     next state for each state and action, from a flat Dirichlet distribution, and
                     `reward_means` `[S, A]`, normal with mean 1 and standard deviation 1; at first
                     all next states are equally likely and all means are 1
    start            state 0
    reward           normal, with the mean of state and action and standard deviation 1
    end of episode   never; the sampler's path length cuts it off (the paper's is 10)
    ===============  ============================================================================

    Good actions can only be found from rewards: a policy without adaptation or memory earns 1 a step on average over
    tasks, whatever it does.

    Args:
        num_states: number of states `S`, at least one; default 10.
        num_actions: number of actions `A`, at least one; default 5.

    References:
        Duan, Schulman, Chen, Bartlett, Sutskever, Abbeel: RL^2: Fast Reinforcement Learning via Slow Reinforcement
        Learning, 2016 (arXiv:1611.02779).
    """

    batched_class = BatchedMetaTabularMDPEnv

    def __init__(self, num_states: int = 10, num_actions: int = 5) -> None:
        super().__init__(num_states=num_states, num_actions=num_actions)
