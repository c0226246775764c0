"""The nouns and axes of the library, declared once and used everywhere.

Axes, as they appear in shapes throughout the documentation:

====  =====================================================
axis  meaning
====  =====================================================
`M`   tasks of a meta-batch
`P`   paths (trajectories, rollouts) of a task
`T`   steps of a path
`N`   samples of a task, all paths stacked (sum of `T`)
`O`   size of an observation
`A`   size of an action; no axis where actions are discrete
====  =====================================================

`theta` are the parameters before, `theta_prime` those after adaptation. Nothing here imports TensorFlow.
"""
from typing import Any, Dict, List, Mapping, NamedTuple, TypedDict, Union

import numpy as np

Task = Any
"""A task of a meta-environment: whatever `sample_tasks` returns and `set_task` takes."""

Rows = Union[slice, np.ndarray]
"""Some rows of an array: a slice of them, or their indices, int `[k]`."""

Params = Mapping[str, np.ndarray]
"""Ordered mapping of parameter name (such as `mean_network/hidden_0/kernel`) to its value; float32."""

Infos = Dict[str, np.ndarray]
"""Mapping of a quantity's name to its values, the leading axis being `T` (in a path) or `N` (stacked)."""


class Path(TypedDict, total=False):
    """One rollout, from a reset until the end of the episode or until `max_path_length`."""

    observations: np.ndarray  # [T, O], what the policy saw before each action
    actions: np.ndarray  # [T, A], what the policy asked for (before any clipping by the environment); discrete: int [T]
    rewards: np.ndarray  # [T], in the environment's reward unit
    env_infos: Infos  # each [T, ...]
    agent_infos: Infos  # each [T, ...]; Gaussian: `mean`, `log_std` [T, A], categorical: `log_prob` [T, n]
    last_observation: np.ndarray  # [O], the observation after the last action
    terminated: bool  # whether the task ended the path (False: cut off by a time limit)
    returns: np.ndarray  # [T], discounted sums of rewards to come; added by a sample processor
    advantages: np.ndarray  # [T]; added by a sample processor


PathsMetaBatch = Dict[int, List[Path]]
"""What a `MetaSampler` returns, the list of a task's paths by the task's index."""


class TaskSamples(TypedDict, total=False):
    """The processed samples of one task: what a sample processor returns for it."""

    observations: np.ndarray  # [N, O]
    actions: np.ndarray  # [N, A]; discrete: int [N]
    rewards: np.ndarray  # [N]
    returns: np.ndarray  # [N]
    advantages: np.ndarray  # [N]
    env_infos: Infos  # each [N, ...]
    agent_infos: Infos  # each [N, ...]
    path_lengths: np.ndarray  # int [P], sums to N
    adj_avg_rewards: np.ndarray  # [N], rewards standardized over all tasks; used by E-MAML
    mask: np.ndarray  # [P, T], one for steps that were taken; these are of DiCE, where all entries are so padded
    discounted_rewards: np.ndarray  # [P, T]
    adjusted_rewards: np.ndarray  # [P, T]
    adjusted_rewards_after_end: np.ndarray  # [P]


class BatchedStep(NamedTuple):
    """What `n` environments answer to one step, as arrays."""

    observations: np.ndarray  # float64 [n, O]
    rewards: np.ndarray  # float64 [n]
    terminated: np.ndarray  # bool [n], the task itself has ended
    truncated: np.ndarray  # bool [n], cut off by a time limit of the environment
    env_infos: Infos  # each [n, ...]
