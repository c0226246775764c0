"""Types of data, and the axes of arrays.

Axes, as they appear in shapes throughout the documentation:

====  =====================================================
axis  meaning
====  =====================================================
`M`   tasks of a meta-batch
`P`   paths (trajectories, rollouts) of a task
`T`   steps of a path
`N`   samples of a task, paths concatenated (sum of `T`)
`O`   size of an observation
`A`   size of an action; no axis where actions are discrete
====  =====================================================

`theta` are the parameters before, `theta_prime` those after adaptation. Nothing here imports TensorFlow.
"""
from typing import Any, Dict, List, Mapping, NamedTuple, TypedDict, Union

import numpy as np

Task = Any
"""A task of a meta-environment, as `sample_tasks` returns and `set_task` takes it."""

Rows = Union[slice, np.ndarray]
"""Some rows of an array: a slice of them, or their indices, int `[k]`."""

Params = Mapping[str, np.ndarray]
"""Ordered mapping of parameter name (such as `mean_network/hidden_0/kernel`) to its value; float32."""

Infos = Dict[str, np.ndarray]
"""Mapping of a quantity's name to its values, the leading axis being `T` (in a path) or `N` (stacked)."""


class Path(TypedDict, total=False):
    """One rollout, from a reset until the end of the episode or until `max_path_length`."""

    observations: np.ndarray  # [T, O], the input of the policy at each step
    actions: np.ndarray  # [T, A], output of the policy, before the environment clips it; discrete: int [T]
    rewards: np.ndarray  # [T], in the environment's reward unit
    env_infos: Infos  # each [T, ...]
    agent_infos: Infos  # each [T, ...]; Gaussian: `mean`, `log_std` [T, A], categorical: `log_prob` [T, n]
    last_observation: np.ndarray  # [O], the observation after the last action
    terminated: bool  # whether the task ended the path (False: a time limit did)
    returns: np.ndarray  # [T], discounted sums of future rewards; added by a sample processor
    advantages: np.ndarray  # [T]; added by a sample processor


PathsMetaBatch = Dict[int, List[Path]]
"""Return value of `MetaSampler.obtain_samples`: the paths of each task, by the index of the task."""


class TaskSamples(TypedDict, total=False):
    """The processed samples of one task, as a sample processor returns them."""

    observations: np.ndarray  # [N, O]
    actions: np.ndarray  # [N, A]; discrete: int [N]
    rewards: np.ndarray  # [N]
    returns: np.ndarray  # [N]
    advantages: np.ndarray  # [N]
    env_infos: Infos  # each [N, ...]
    agent_infos: Infos  # each [N, ...]
    path_lengths: np.ndarray  # int [P], sums to N
    adj_avg_rewards: np.ndarray  # [N], rewards standardized over all tasks; used by E-MAML
    mask: np.ndarray  # [P, T], 1 for steps, 0 for padding; DiCE only, where all entries are padded
    discounted_rewards: np.ndarray  # [P, T]; DiCE only
    adjusted_rewards: np.ndarray  # [P, T]; DiCE only
    adjusted_rewards_after_end: np.ndarray  # [P]; DiCE only


class BatchedStep(NamedTuple):
    """Results of one step of `n` environments."""

    observations: np.ndarray  # float64 [n, O]
    rewards: np.ndarray  # float64 [n]
    terminated: np.ndarray  # bool [n], whether the task has ended
    truncated: np.ndarray  # bool [n], whether a time limit of the environment was reached
    env_infos: Infos  # each [n, ...]
