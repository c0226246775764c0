"""Environments with few discrete actions: the bandit and tabular MDP experiments of RL^2.

Duan et al. 2016, "RL^2: Fast Reinforcement Learning via Slow Reinforcement Learning" (arXiv:1611.02779, section 3).
"""
from typing import Any, Callable, List, Tuple

import numpy as np

from meta_policy_search.envs.interface import Rngs, WorldMetaEnv
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.utils import draw_index

__all__ = ["MetaBernoulliBanditEnv", "MetaTabularMDPEnv"]

_KEYS = ("transitions", "reward_means")  # keys of a task of `MetaTabularMDPEnv`
_TOLERANCE = 1e-6  # largest accepted difference between a sum of probabilities and one


class MetaBernoulliBanditEnv(WorldMetaEnv):
    """A multi-armed bandit with task-specific arm probabilities.

    ===============  ============================================================================
    observation      float64 `[1]`, always 1
    action           discrete: the arm to pull, from 0 to `num_arms - 1`
    task             float64 `[num_arms]`, the probability of a reward for each arm, independent and
                     uniform in [0, 1]; default 0.5 for each arm
    start            the environment has no state
    reward           1 with the probability of the pulled arm, otherwise 0
    end of episode   never; the sampler ends a path after `max_path_length` steps (pulls)
    ===============  ============================================================================

    The agent can find the best arm only from rewards. Without adaptation or memory, every policy earns 0.5 per pull on
    average over tasks. Always pulling the best arm earns `num_arms / (num_arms + 1)` per pull.

    Args:
        num_arms: number of arms, at least 1; default 5.

    References:
        Duan, Schulman, Chen, Bartlett, Sutskever, Abbeel: RL^2: Fast Reinforcement Learning via Slow Reinforcement
        Learning, 2016 (arXiv:1611.02779). The paper uses 5, 10 and 50 arms, and 10, 100 and 500 pulls.
    """

    def __init__(self, num_arms: int = 5) -> None:
        self.num_arms = check_positive_int("num_arms", num_arms)
        self.first_task, self.task_ranges = np.full(self.num_arms, 0.5), [(0.0, 1.0)] * self.num_arms
        self.observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float64)
        self.action_space = gym.spaces.Discrete(self.num_arms)
        super().__init__()

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        probabilities = as_array(name, task, (self.num_arms,))
        if ((probabilities < 0.0) | (probabilities > 1.0)).any():
            raise ValueError(f"{name}: expected probabilities in [0, 1], got {task!r}")
        return probabilities

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        pays = _draw(np.random.Generator.random, ids, rngs) < tasks[ids, actions]
        return states, pays.astype(np.float64), np.zeros(len(ids), dtype=bool)

    def _observe(self, states: np.ndarray) -> np.ndarray:
        return np.ones((len(states), 1))


class MetaTabularMDPEnv(WorldMetaEnv):
    """A random Markov decision process (MDP) with `S` states and `A` actions; each task is a different MDP.

    ===============  ============================================================================
    observation      float64 `[S]`, one-hot encoding of the state
    action           discrete: from 0 to `A - 1`
    task             dict with `transitions` `[S, A, S]`, the probabilities of the next state for
                     each state and action, drawn from a flat Dirichlet distribution, and
                     `reward_means` `[S, A]`, drawn from a normal distribution with mean 1 and
                     standard deviation 1; default: uniform transitions, all means 1
    start            state 0
    reward           normal with mean `reward_means[s, a]` and standard deviation 1
    end of episode   never; the sampler ends a path after `max_path_length` steps (10 in the paper)
    ===============  ============================================================================

    The agent does not observe the task and has to find good actions by trial and error. Without adaptation or memory,
    every policy earns 1 per step on average over tasks.

    Args:
        num_states: number of states `S`, at least 1; default 10.
        num_actions: number of actions `A`, at least 1; default 5.

    References:
        Duan, Schulman, Chen, Bartlett, Sutskever, Abbeel: RL^2: Fast Reinforcement Learning via Slow Reinforcement
        Learning, 2016 (arXiv:1611.02779).
    """

    state_size = 1  # the index of the state

    def __init__(self, num_states: int = 10, num_actions: int = 5) -> None:
        self.num_states = check_positive_int("num_states", num_states)
        self.num_actions = check_positive_int("num_actions", num_actions)
        pairs = (self.num_states, self.num_actions)
        self.first_task = dict(zip(_KEYS, (np.full((*pairs, self.num_states), 1.0 / self.num_states), np.ones(pairs))))
        self.observation_space = gym.spaces.Box(0.0, 1.0, (self.num_states,), np.float64)
        self.action_space = gym.spaces.Discrete(self.num_actions)
        super().__init__()

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        pairs = (n_tasks, self.num_states, self.num_actions)
        transitions = rng.dirichlet(np.ones(self.num_states), size=pairs)
        reward_means = rng.normal(1.0, 1.0, size=pairs)
        return [dict(zip(_KEYS, values)) for values in zip(transitions, reward_means)]

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        """Returns a task as an array `[S, A, S + 1]`: transition probabilities, followed by the reward mean."""
        if not isinstance(task, dict) or set(task) != set(_KEYS):
            raise ValueError(f"{name}: expected a dict with the keys {' and '.join(_KEYS)}, got {task!r}")
        pairs = (self.num_states, self.num_actions)
        transitions = as_array(f"{name}, transitions", task["transitions"], (*pairs, self.num_states))
        if (transitions < 0.0).any() or (np.abs(transitions.sum(axis=-1) - 1.0) > _TOLERANCE).any():
            raise ValueError(f"{name}, transitions: expected probabilities of at least 0 that sum to 1 over next "
                             f"states, got {task['transitions']!r}")
        reward_means = as_array(f"{name}, reward_means", task["reward_means"], pairs)
        return np.concatenate([transitions, reward_means[:, :, None]], axis=2)

    def _as_task(self, row: np.ndarray) -> Task:
        return dict(zip(_KEYS, (row[:, :, :-1], row[:, :, -1])))

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = tasks[ids, states[:, 0].astype(int), actions]
        rewards = rows[:, -1] + _draw(np.random.Generator.standard_normal, ids, rngs)
        after = draw_index(rows[:, :-1], _draw(np.random.Generator.random, ids, rngs))
        return after[:, None].astype(np.float64), rewards, np.zeros(len(ids), dtype=bool)

    def _observe(self, states: np.ndarray) -> np.ndarray:
        return np.eye(self.num_states)[states[:, 0].astype(int)]


def _draw(draw: Callable[[Any], float], ids: np.ndarray, rngs: Rngs) -> np.ndarray:
    """Returns a random number for each copy in `ids`, float64 `[k]`, drawn from the generator of its path."""
    of_paths = [rngs[env_id] for env_id in ids]
    if None in of_paths:
        raise RuntimeError("step: call reset() first")
    return np.array([draw(rng) for rng in of_paths])
