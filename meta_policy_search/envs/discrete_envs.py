"""Environments with a few actions to choose from, small enough to solve by hand: the experiments of RL^2.

Duan et al. 2016, "RL^2: Fast Reinforcement Learning via Slow Reinforcement Learning" (arXiv:1611.02779, section 3).
"""
import abc
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from meta_policy_search.envs.interface import BatchableMetaEnv, BatchedEnv
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import BatchedStep, Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.utils import draw_index

__all__ = ["MetaBernoulliBanditEnv", "MetaTabularMDPEnv"]

_KEYS = ("transitions", "reward_means")  # of a task of `MetaTabularMDPEnv`
_TOLERANCE = 1e-6  # how far the sum of probabilities may be from one


class _BatchedDiscreteEnv(BatchedEnv):
    """`num_envs` environments in which one of a few actions is chosen at each step; a path never ends by itself.

    A subclass says where a path starts, what an action does and what is observed. Its methods work on the environments
    `ids`, draw by `_draw` only, and compute row by row, so that no row depends on the number of rows.

    Args:
        obs_dim: size of an observation, whose entries are between 0 and 1.
        num_actions: number of actions.
    """

    def __init__(self, num_envs: int, obs_dim: int, num_actions: int) -> None:
        super().__init__(num_envs)
        self.observation_space = gym.spaces.Box(0.0, 1.0, (obs_dim,), np.float64)
        self.action_space = gym.spaces.Discrete(num_actions)
        self._rngs: List[Optional[np.random.Generator]] = [None] * self.num_envs

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        for env_id, rng in zip(env_ids, rngs, strict=True):
            self._rngs[env_id] = rng
        self._start(env_ids)
        return self._observe(env_ids)

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """See `BatchedEnv.step`; actions are int `[k]`."""
        actions, ids = self._rows(actions, env_ids)
        rewards, never = self._act(actions, ids), np.zeros(len(ids), dtype=bool)
        return BatchedStep(self._observe(ids), rewards, terminated=never, truncated=never.copy(), env_infos={})

    def _draw(self, draw: Callable[[np.random.Generator], float], ids: np.ndarray) -> np.ndarray:
        """Returns a number `[k]` for each environment, drawn from its own generator."""
        rngs = [self._rngs[env_id] for env_id in ids]
        if None in rngs:
            raise RuntimeError("step: call reset() first")
        return np.array([draw(rng) for rng in rngs])

    @abc.abstractmethod
    def _start(self, ids: np.ndarray) -> None:
        """Puts environments in the state that a path starts in."""

    @abc.abstractmethod
    def _act(self, actions: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Takes a step by actions int64 `[k]`; returns the rewards, float64 `[k]`."""

    @abc.abstractmethod
    def _observe(self, ids: np.ndarray) -> np.ndarray:
        """Returns the observations, a new float64 `[k, obs_dim]`."""


class _BatchedMetaBernoulliBanditEnv(_BatchedDiscreteEnv):
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

    batched_class = _BatchedMetaBernoulliBanditEnv

    def __init__(self, num_arms: int = 5) -> None:
        super().__init__(num_arms=num_arms)


class _BatchedMetaTabularMDPEnv(_BatchedDiscreteEnv):
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

    batched_class = _BatchedMetaTabularMDPEnv

    def __init__(self, num_states: int = 10, num_actions: int = 5) -> None:
        super().__init__(num_states=num_states, num_actions=num_actions)
