"""Data types, and the names of the array axes.

Axes, as used in shapes throughout the documentation:

====  =====================================================
axis  meaning
====  =====================================================
`M`   tasks of a meta-batch
`P`   paths (trajectories, rollouts) of a task
`T`   steps of a path
`N`   samples of a task: its concatenated paths (sum of `T`)
`O`   size of an observation
`A`   size of an action; discrete actions have no such axis
`D`   parameters of a policy
`K`   adaptation steps
`B`   observations (or paths) of one call
`F`   features of a baseline
====  =====================================================

`theta` denotes the parameters before adaptation, `theta_prime` the parameters after adaptation. This module does not
import TensorFlow.
"""
from typing import Annotated, Any, Dict, List, Mapping, NamedTuple, Optional, TypedDict, TypeVar, Union

import numpy as np

T = TypeVar("T")
NO_EFFECT = "no effect on the result of a run"
WithoutEffect = Annotated[T, NO_EFFECT]
"""Type hint of an argument that does not change the rows and weights of a run, for example `WithoutEffect[bool]`.
Runs that differ only in such arguments belong together, and a resumed run may change them."""

NumThreads = WithoutEffect[Optional[int]]
"""Number of native threads of a vectorized environment; None means one per core."""

RenderMode = WithoutEffect[Optional[str]]
"""Render mode of an environment, such as `"rgb_array"`; None means no rendering."""

Task = Any
"""A task of a meta-environment: `sample_tasks` returns a list of tasks, `set_task` takes one."""

Rows = Union[slice, np.ndarray]
"""Selected rows of an array, as a slice or an integer index array `[k]`."""

Params = Mapping[str, np.ndarray]
"""Ordered mapping from parameter name (such as `mean_network/hidden_0/kernel`) to a float32 array."""

Infos = Dict[str, np.ndarray]
"""Mapping from the name of a quantity to its values. The leading axis is `T` in a path and `N` in samples."""


class Path(TypedDict, total=False):
    """One rollout: the steps from a reset to the end of the episode, at most `max_path_length`."""

    observations: np.ndarray  # [T, O], input of the policy at each step
    actions: np.ndarray  # [T, A], output of the policy, before the environment clips it; discrete: int [T]
    rewards: np.ndarray  # [T], in the reward unit of the environment
    env_infos: Infos  # each [T, ...]
    agent_infos: Infos  # each [T, ...]; Gaussian: `mean`, `log_std` [T, A], categorical: `log_prob` [T, n]
    last_observation: np.ndarray  # [O], observation after the last action
    terminated: bool  # True if the task ended the path, False if a time limit did
    returns: np.ndarray  # [T], discounted sums of future rewards; added by a sample processor
    advantages: np.ndarray  # [T]; added by a sample processor
    discounted_rewards: np.ndarray  # [T]; added by a DiCE sample processor


PathsMetaBatch = Dict[int, List[Path]]
"""Return type of `MetaSampler.obtain_samples`: dict from task index to the list of paths in that task."""


class TaskSamples(TypedDict, total=False):
    """The processed samples of one task, as returned by a sample processor."""

    observations: np.ndarray  # [N, O]
    actions: np.ndarray  # [N, A]; discrete: int [N]
    rewards: np.ndarray  # [N]
    returns: np.ndarray  # [N]
    advantages: np.ndarray  # [N]
    env_infos: Infos  # each [N, ...]
    agent_infos: Infos  # each [N, ...]
    path_lengths: np.ndarray  # int [P], sums to N
    adj_avg_rewards: np.ndarray  # [N], rewards standardized over all tasks; used by E-MAML
    mask: np.ndarray  # [P, T], 1 for steps, 0 for padding; DiCE only (DiCE processors pad all entries)
    adjusted_rewards: np.ndarray  # [P, T]; DiCE only
    adjusted_rewards_after_end: np.ndarray  # [P]; DiCE only


class BatchedStep(NamedTuple):
    """Result of one step of a vectorized environment with `n` copies."""

    observations: np.ndarray  # float64 [n, O]
    rewards: np.ndarray  # float64 [n]
    terminated: np.ndarray  # bool [n], True if the task has ended
    truncated: np.ndarray  # bool [n], True if a time limit of the environment was reached
    env_infos: Infos  # each [n, ...]
