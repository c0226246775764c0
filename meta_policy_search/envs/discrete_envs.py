"""Environments with few discrete actions: the bandit and tabular MDP experiments of RL^2, and Khazad-Dum.

Duan et al. 2016, "RL^2: Fast Reinforcement Learning via Slow Reinforcement Learning" (arXiv:1611.02779, section 3).
Greenberg et al. 2023, "Train Hard, Fight Easy: Robust Meta Reinforcement Learning" (arXiv:2301.11147).
"""
from typing import Any, Callable, List, Tuple

import numpy as np

from meta_policy_search.envs.interface import Rngs, WorldMetaEnv
from meta_policy_search.envs.scenery import Scenery, draw
from meta_policy_search.envs.spaces import as_array
from meta_policy_search.types import RenderMode, Task
from meta_policy_search.utils.checks import check_non_negative, check_positive_int
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.utils import draw_index

__all__ = ["KhazadDumEnv", "MetaBernoulliBanditEnv", "MetaTabularMDPEnv"]

_KEYS = ("transitions", "reward_means")  # keys of a task of `MetaTabularMDPEnv`
_CENTER = np.array([5.0, 4.0])  # of the map of `KhazadDumEnv`
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
        return as_array(name, task, (self.num_arms,), f"{self.num_arms} probabilities in [0, 1]",
                        lambda probabilities: (0.0 <= probabilities) & (probabilities <= 1.0))

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        pays = _draw_each(np.random.Generator.random, ids, rngs) < tasks[ids, actions]
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
        shape = (*pairs, self.num_states)
        transitions = as_array(
            f"{name}, transitions", task["transitions"], shape, f"probabilities of shape {shape} that sum to 1 over "
            "next states", lambda given: given.min() >= 0.0 and abs(given.sum(axis=-1) - 1.0).max() <= _TOLERANCE)
        reward_means = as_array(f"{name}, reward_means", task["reward_means"], pairs)
        return np.concatenate([transitions, reward_means[:, :, None]], axis=2)

    def _as_task(self, row: np.ndarray) -> Task:
        return dict(zip(_KEYS, (row[:, :, :-1], row[:, :, -1])))

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = tasks[ids, states[:, 0].astype(int), actions]
        rewards = rows[:, -1] + _draw_each(np.random.Generator.standard_normal, ids, rngs)
        after = draw_index(rows[:, :-1], _draw_each(np.random.Generator.random, ids, rngs))
        return after[:, None].astype(np.float64), rewards, np.zeros(len(ids), dtype=bool)

    def _observe(self, states: np.ndarray) -> np.ndarray:
        return np.eye(self.num_states)[states[:, 0].astype(int)]


class KhazadDumEnv(WorldMetaEnv):
    """An agent passes an abyss over a short bridge, where it may fall, or makes a detour over a safe bridge.

    ===============  ============================================================================
    observation      float64 `[99]`: bilinear weights of the position on the map of 11 x 9 cells,
                     a one-hot vector if the agent is at the center of a cell
    action           discrete: one step to the left (0), right (1), down (2) or up (3)
    task             standard deviation of the noise on the short bridge, exponentially
                     distributed with mean 0.1; `set_task` accepts any number of at least 0;
                     default 0.1
    start            uniform in `[0.5, 2.5]^2`, below the abyss
    reward           see below
    end of episode   never; the sampler ends a path after `max_path_length` steps (32)
    ===============  ============================================================================

    Cell `(i, j)` contains the positions that round to `(i, j)`. The outermost cells are walls. A step into a wall has
    no effect. The abyss fills the rows 3 to 5, except for the short bridge in column 2 and the safe bridge in columns 7
    to 9. The goal is the cell (2, 7). A step that starts on the short bridge (`2.5 < y < 5.5` and `x < 3`) adds normal
    noise to both coordinates. The agent stays in the abyss or at the goal.

    Reward per step, divided by 32: `max(-d / 5, -1)` with the L1 distance `d` between the position after the step and
    the point (2, 7), plus 5 in the step that reaches the goal, minus 3 times the task in a step with noise. Later steps
    earn 0 at the goal and -1 in the abyss.

    Args:
        render_mode: `"rgb_array"` to enable `render`; default None.

    References:
        Greenberg, Mannor, Chechik, Meirom: Train Hard, Fight Easy: Robust Meta Reinforcement Learning, 2023
        (arXiv:2301.11147), and `KhazadDum` in its public code with its default arguments
        (github.com/ido90/RobustMetaRL).
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    first_task = mean_task = 0.1
    task_dimensions = 1
    state_size = 3  # position (x, y); 0 until the agent falls (-1) or reaches the goal (1)
    goal = (2, 7)
    horizon = 32  # steps of a path
    steps = np.array([(-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0)])  # [4, 2]
    walls, abyss = np.ones((11, 9), dtype=bool), np.zeros((11, 9), dtype=bool)  # [11, 9]
    walls[1:-1, 1:-1] = False
    abyss[[1, 3, 4, 5, 6], 3:6] = True

    def __init__(self, *, render_mode: RenderMode = None) -> None:
        self.observation_space = gym.spaces.Box(0.0, 1.0, (self.walls.size,), np.float64)
        self.action_space = gym.spaces.Discrete(len(self.steps))
        super().__init__(render_mode=render_mode)

    @property
    def position(self) -> np.ndarray:
        """Current position relative to the center of the map, float64 `[2]`."""
        return self._batched.states[0, :2] - _CENTER

    def scenery(self) -> Scenery:
        """Returns the goal, the walls and the edges of the abyss for drawings, relative to the center of the map."""
        rectangles = (((0.5, 0.5), (9.5, 7.5)), ((0.5, 2.5), (1.5, 5.5)), ((2.5, 2.5), (6.5, 5.5)))  # opposite corners
        edges = [np.array([(x, y), (u, y), (u, v), (x, v), (x, y)]) - _CENTER for (x, y), (u, v) in rectangles]
        return Scenery(half_width=4.5, goal=np.array(self.goal) - _CENTER, walls=edges)

    def _draw(self) -> np.ndarray:
        if not self._batched.trail:
            raise RuntimeError("render: call reset() first")
        return draw(np.array(self._batched.trail)[:, :2] - _CENTER, self.scenery())

    def _draw_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        return rng.exponential(self.mean_task, n_tasks).tolist()

    def tasks_at(self, points: np.ndarray) -> List[Task]:
        """Returns the tasks at points of the unit interval, `[n, 1]`: quantiles of the exponential distribution."""
        return (-self.mean_task * np.log1p(-points[:, 0])).tolist()

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        return np.array(check_non_negative(name, task))

    def _as_task(self, row: np.ndarray) -> Task:
        return float(row)

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        return np.append(rng.uniform(0.5, 2.5, 2), 0.0)

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        places, ended, noise = states[:, :2], states[:, 2], tasks[ids]
        is_noisy = (ended == 0.0) & (2.5 < places[:, 1]) & (places[:, 1] < 5.5) & (places[:, 0] < 3.0)
        moved = places + self.steps[actions]
        normal = _draw_each(lambda rng: rng.standard_normal(2), ids[is_noisy], rngs).reshape(-1, 2)
        moved[is_noisy] += noise[is_noisy, None] * normal
        moved = np.clip(moved, 0.0, np.array(self.walls.shape) - 1.0)
        is_stopped = (ended != 0.0) | self.walls[_cells(moved)]
        moved = np.where(is_stopped[:, None], places, moved)
        reaches = (np.rint(moved) == self.goal).all(axis=1)
        away = np.abs(moved - self.goal)
        rewards = np.maximum(-(away[:, 0] + away[:, 1]) / 5.0, -1.0) - 3.0 * noise * is_noisy + 5.0 * reaches
        rewards = np.where(ended == 0.0, rewards, np.minimum(ended, 0.0)) / self.horizon
        ended = np.where(ended == 0.0, 1.0 * reaches - self.abyss[_cells(moved)], ended)
        return np.column_stack((moved, ended)), rewards, np.zeros(len(ids), dtype=bool)

    def _observe(self, states: np.ndarray) -> np.ndarray:
        corners, weights = states[:, :2].astype(int), np.zeros((len(states), *self.walls.shape))
        rest, rows = states[:, :2] - corners, np.arange(len(states))
        for i in (0, 1):
            for j in (0, 1):
                weights[rows, corners[:, 0] + i, corners[:, 1] + j] = (
                    (rest[:, 0] if i else 1.0 - rest[:, 0]) * (rest[:, 1] if j else 1.0 - rest[:, 1]))
        return weights.reshape(len(states), self.walls.size)


def _cells(places: np.ndarray) -> Tuple[np.ndarray, ...]:
    """Returns the indices of the cells that contain the positions `[k, 2]`."""
    return tuple(np.rint(places).astype(int).T)


def _draw_each(draw: Callable[[Any], Any], ids: np.ndarray, rngs: Rngs) -> np.ndarray:
    """Returns random numbers for each copy in `ids`, float64 `[k, ...]`, drawn from the generators of their paths."""
    of_paths = [rngs[env_id] for env_id in ids]
    if None in of_paths:
        raise RuntimeError("step: call reset() first")
    return np.array([draw(rng) for rng in of_paths])
