"""Actors, which choose the actions while paths are sampled."""
import abc
import copy
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.ops.networks import NUMPY
from meta_policy_search.types import Infos, Params


class Actor(abc.ABC):
    """Acts in `M` tasks at once, with parameters that are fixed at construction.

    In each round of sampling, a sampler creates an actor from the policy (`from_policy.actor_from_policy`). When a path
    begins, the sampler draws the noise of all its steps from the random generator of the path (`draw_noise`). It then
    calls `act` once per step, with one row for each of the `R` paths of a task. Rows of paths that have ended, or have
    not begun, are passed as well, and their actions are ignored. If actions depend only on observation and noise, they
    do not depend on which paths are sampled together.

    A subclass implements `act`. It sets `noise_dim` if actions are random. It sets `uniform_noise`, or overrides
    `draw_noise`, if the noise is not standard normal. It sets `can_divide` and overrides `for_tasks` if the tasks can
    be divided among several actors.

    Attributes:
        noise_dim (int): number of random numbers per action. Default: 0.
        uniform_noise (bool): whether the noise is uniform in `[0, 1)` instead of standard normal. Default: False.
        can_divide (bool): whether `for_tasks` may be called. The resulting actors run in parallel: in threads of this
            process or, after pickling, in processes without TensorFlow. Sampling on Ray requires True. Default: False,
            so that one thread of this process acts for all tasks.
    """

    noise_dim: int = 0
    uniform_noise: bool = False
    can_divide: bool = False

    @abc.abstractmethod
    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Chooses an action for each row.

        Args:
            observations: float64 `[M, R, O]`, read-only.
            noise: float32 `[M, R, noise_dim]`, drawn by `draw_noise`.

        Returns:
            Tuple of actions `[M, R, A]` (integers `[M, R]` if actions are discrete) and a dict of agent infos
            `[M, R, ...]`.
        """

    def draw_noise(self, rng: np.random.Generator, out: np.ndarray) -> None:
        """Draws the noise of the steps of a path.

        Args:
            rng: random generator of the path.
            out: float32 `[T, noise_dim]`, output array. For very long paths, the method is called again with more rows;
                the first rows must be the same.
        """
        draw = rng.random if self.uniform_noise else rng.standard_normal
        draw(dtype=np.float32, out=out)

    def start_paths(self, is_starting: np.ndarray) -> None:
        """Called before `act` when paths begin, bool `[M, R]`; resets the states of an actor that has any."""

    def for_tasks(self, start: int, stop: int) -> "Actor":
        """Returns an actor for the tasks from `start` (inclusive) to `stop` (exclusive); requires `can_divide`."""
        raise TypeError(f"{type(self).__name__} acts for all tasks together (can_divide is False)")


Network = Callable[[Any, Mapping[str, Any], Any], Dict[str, Any]]
"""Function `network(xp, params, observations)` that returns the parameters of the distribution over actions by name."""

Sample = Callable[[Infos, np.ndarray], np.ndarray]
"""Function that computes actions `[M, R, A]` from the output of a `Network` and noise `[M, R, noise_dim]`."""


class NetworkActor(Actor):
    """Computes the network of `M` tasks in NumPy and samples actions from its outputs.

    Args:
        network: see `Network`. Workers import the module of this function.
        params: float32 parameters stacked over tasks, each `[M, ...]`; without the axis of tasks if there is a cell.
        sample: see `Sample`, such as `ops.networks.gaussian_action`.
        info_specs: name and shape (without the axes of tasks and paths) of the outputs that become agent infos.
        noise_dim: number of random numbers per action. Default: 0.
        uniform_noise: whether the noise is uniform in `[0, 1)` instead of standard normal. Default: False.
        step: step of a recurrent cell (see `ops.networks.Cell`), whose outputs are the inputs of the network. Default:
            None, no cell.
        state_size: size of the state of the cell. Default: 0.

    Attributes:
        states: states of the cell, float32 `[M, R, state_size]`; None if all paths are at their start.
    """

    can_divide = True

    def __init__(self, network: Network, params: Params, sample: Sample,
                 info_specs: Sequence[Tuple[str, Tuple[int, ...]]], noise_dim: int = 0, uniform_noise: bool = False,
                 step: Optional[Callable[..., Tuple[Any, Any]]] = None, state_size: int = 0) -> None:
        self._network, self._params, self._sample, self._info_specs = network, params, sample, info_specs
        self.noise_dim, self.uniform_noise = noise_dim, uniform_noise
        self._step, self._state_size = step, state_size
        self.states: Optional[np.ndarray] = None

    def start_paths(self, is_starting: np.ndarray) -> None:
        """Resets the states of the selected paths to zero; see `Actor.start_paths`."""
        if self.states is None:
            self.states = np.zeros((*is_starting.shape, self._state_size), np.float32)
        self.states[is_starting] = 0.0

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Advances the states by one step, computes the network and samples actions; see `Actor.act`."""
        inputs = np.asarray(observations, np.float32)
        if self._step is not None:
            if self.states is None:
                self.start_paths(np.ones(observations.shape[:2], bool))
            inputs, self.states = self._step(NUMPY, self._params, inputs, self.states)
        try:
            outputs = self._network(NUMPY, self._params, inputs)
            infos = broadcast_outputs(outputs, self._info_specs, observations.shape[:2])
        except NotImplementedError as error:
            raise ValueError("make_network: expected a network that uses operations of xp, got one with operations of "
                             f"TensorFlow: {error}") from error
        return self._sample(outputs, noise), infos

    def for_tasks(self, start: int, stop: int) -> "NetworkActor":
        """Returns an actor for the tasks from `start` (inclusive) to `stop` (exclusive), without states."""
        part = copy.copy(self)
        part.states = None
        if self._step is None:
            part._params = {name: values[start:stop] for name, values in self._params.items()}
        return part


def check_output(name: str, found: Sequence[Optional[int]], ndim: int, shape: Sequence[int]) -> None:
    """Raises `ValueError` unless an output of a network, of shape `found`, has `ndim` leading axes and then `shape`.

    Unknown sizes (None) are not checked. An output that is equal for all samples may have fewer leading axes, which
    must have size 1.
    """
    leading = len(found) - len(shape)
    if not (0 <= leading <= ndim and all(size in (None, number) for size, number in zip(found[leading:], shape))
            and (leading == ndim or {*found[:leading]} <= {1})):
        raise ValueError(f"make_network: expected a network that returns {name} of shape {[None] * ndim + [*shape]}, "
                         f"got {list(found)}")


def broadcast_outputs(outputs: Infos, specs: Sequence[Tuple[str, Tuple[int, ...]]], leading: Tuple[int, ...]) -> Infos:
    """Returns the outputs of a network as agent infos `[*leading, *shape]`; `specs` contains their names and shapes."""
    for name, shape in specs:
        if (found := np.shape(outputs[name]))[len(leading):] != shape:  # saves time: called in each step of sampling
            check_output(name, found, len(leading), shape)
    return {name: np.broadcast_to(outputs[name], (*leading, *shape)) for name, shape in specs}
