"""Actors of policies whose networks are written for NumPy and TensorFlow (see `ops.networks`)."""
import copy
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.ops.networks import NUMPY
from meta_policy_search.types import Infos, Params

Network = Callable[[Any, Mapping[str, Any], Any], Dict[str, Any]]
"""Function `network(xp, params, observations)` that returns the parameters of the distribution over actions by name."""

Sample = Callable[[Infos, np.ndarray], np.ndarray]
"""Function that computes actions `[M, R, A]` from the output of a `Network` and noise `[M, R, noise_dim]`."""


class NetworkActor(Actor):
    """Computes the network of `M` tasks in NumPy and samples actions from its outputs.

    Args:
        network: see `Network`. Workers import the module of this function.
        params: float32 parameters stacked over tasks, each `[M, ...]`.
        sample: see `Sample`, such as `ops.networks.gaussian_action`.
        info_specs: name and shape (without the axes of tasks and paths) of the outputs that become agent infos.
        noise_dim: number of random numbers per action. Default: 0.
        uniform_noise: whether the noise is uniform in `[0, 1)` instead of standard normal. Default: False.
    """

    can_divide = True

    def __init__(self, network: Network, params: Params, sample: Sample,
                 info_specs: Sequence[Tuple[str, Tuple[int, ...]]], noise_dim: int = 0,
                 uniform_noise: bool = False) -> None:
        self._network, self._params, self._sample, self._info_specs = network, params, sample, info_specs
        self.noise_dim, self.uniform_noise = noise_dim, uniform_noise

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Computes the network at `observations` and samples actions; see `Actor.act`."""
        outputs = self._network(NUMPY, self._params, np.asarray(observations, np.float32))
        infos = {name: np.broadcast_to(outputs[name], observations.shape[:2] + shape)
                 for name, shape in self._info_specs}
        return self._sample(outputs, noise), infos

    def for_tasks(self, start: int, stop: int) -> "NetworkActor":
        """Returns an actor for the tasks from `start` (inclusive) to `stop` (exclusive), sharing parameter memory."""
        part = copy.copy(self)
        part._params = {name: values[start:stop] for name, values in self._params.items()}
        return part


class RecurrentActor(NetworkActor):
    """A `NetworkActor` with a recurrent cell before the network, and the same parameters in all tasks.

    Args:
        step: step of the cell; see `ops.networks.Cell`.
        state_size: size of the recurrent state.
        network, sample, info_specs, noise_dim, uniform_noise: see `NetworkActor`; the inputs of the network are the
            outputs of the cell.
        params: float32 parameters by name, without a task axis.

    Attributes:
        states: float32 `[M, R, state_size]`; None if all paths are at their start.
    """

    def __init__(self, step: Callable[..., Tuple[Any, Any]], state_size: int, *args: Any) -> None:
        super().__init__(*args)
        self._step, self._state_size = step, state_size
        self.states: Optional[np.ndarray] = None

    def start_paths(self, is_starting: np.ndarray) -> None:
        """Resets the states of the selected paths to zero; see `Actor.start_paths`."""
        if self.states is None:
            self.states = np.zeros((*is_starting.shape, self._state_size), np.float32)
        self.states[is_starting] = 0.0

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Advances the states by one step and samples actions; see `Actor.act`."""
        if self.states is None:
            self.start_paths(np.ones(observations.shape[:2], bool))
        outputs, self.states = self._step(NUMPY, self._params, observations.astype(np.float32), self.states)
        return super().act(outputs, noise)

    def for_tasks(self, start: int, stop: int) -> "RecurrentActor":
        """Returns an actor for the tasks from `start` (inclusive) to `stop` (exclusive), without states."""
        part = copy.copy(self)
        part.states = None
        return part
