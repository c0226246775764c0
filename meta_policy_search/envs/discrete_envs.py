"""Environments with a few actions to choose from, small enough to solve by hand: the experiments of RL^2.

Duan et al. 2016, "RL^2: Fast Reinforcement Learning via Slow Reinforcement Learning" (arXiv:1611.02779, section 3).
"""
from typing import Any, Callable, List, Tuple

import numpy as np

from meta_policy_search.envs.spaces import as_array
from meta_policy_search.envs.worlds import Rngs, WorldMetaEnv
from meta_policy_search.types import Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.utils import draw_index

__all__ = ["MetaBernoulliBanditEnv", "MetaTabularMDPEnv"]

_KEYS = ("transitions", "reward_means")  # of a task of `MetaTabularMDPEnv`
_TOLERANCE = 1e-6  # how far the sum of probabilities may be from one


class MetaBernoulliBanditEnv(WorldMetaEnv):
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

    def __init__(self, num_arms: int = 5) -> None:
        self.num_arms = check_positive_int("num_arms", num_arms)
        self.first_task = np.full(self.num_arms, 0.5)
        self.observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float64)
        self.action_space = gym.spaces.Discrete(self.num_arms)
        super().__init__()

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        return list(rng.uniform(size=(n_tasks, self.num_arms)))

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        probabilities = as_array(name, task, (self.num_arms,))
        if ((probabilities < 0.0) | (probabilities > 1.0)).any():
            raise ValueError(f"{name}: expected probabilities, from 0 to 1, got {task!r}")
        return probabilities

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        pays = _draw(np.random.Generator.random, ids, rngs) < tasks[ids, actions]
        return states, pays.astype(np.float64), np.zeros(len(ids), dtype=bool)

    def _observe(self, states: np.ndarray) -> np.ndarray:
        return np.ones((len(states), 1))


class MetaTabularMDPEnv(WorldMetaEnv):
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

    state_size = 1  # the number of the state

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
        """Returns a process as one array `[S, A, S + 1]`, the transitions followed by the mean of the reward."""
        if not isinstance(task, dict) or set(task) != set(_KEYS):
            raise ValueError(f"{name}: expected a dict with the keys {' and '.join(_KEYS)}, got {task!r}")
        pairs = (self.num_states, self.num_actions)
        transitions = as_array(f"{name}, transitions", task["transitions"], (*pairs, self.num_states))
        if (transitions < 0.0).any() or (np.abs(transitions.sum(axis=-1) - 1.0) > _TOLERANCE).any():
            raise ValueError(f"{name}, transitions: expected probabilities, at least 0, whose sum over next states is "
                             f"1, got {task['transitions']!r}")
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
    """Returns a number `[k]` for each of the environments `ids`, drawn from the generator of its path."""
    of_paths = [rngs[env_id] for env_id in ids]
    if None in of_paths:
        raise RuntimeError("step: call reset() first")
    return np.array([draw(rng) for rng in of_paths])
