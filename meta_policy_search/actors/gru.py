"""Gated recurrent units on NumPy: one policy acts in all tasks and keeps a hidden state for each path."""
import copy
from collections import OrderedDict
from typing import Callable, Optional, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.types import Infos, Params


class GRUActor(Actor):
    """A recurrent policy with the same parameters in `M` tasks.

    It keeps the hidden state of each path, from zero at its start. Besides the infos of `sample`, it returns `value`,
    float32 `[M, R]`, the output of the value head.

    Args:
        params: float32 arrays `gru/input_kernel` `[O, 3H]`, `gru/recurrent_kernel` `[H, 3H]`, `gru/bias` `[3H]`,
            `action/kernel` `[H, A]`, `action/bias` `[A]`, `value/kernel` `[H, 1]` and `value/bias` `[1]`; see
            `ops.recurrent.gru`. Further arrays `[1, ...]` are passed to `sample`.
        sample: function of the outputs of the action head `[M, R, A]`, the noise `[M, R, noise_dim]` and `params`;
            returns what `Actor.act` returns. See `actors.stacked_mlp`.
        noise_dim: number of random numbers per action.
        uniform_noise: whether they are uniform in `[0, 1)` instead of standard normal.
    """

    can_divide = True

    def __init__(self, params: Params, sample: Callable[..., Tuple[np.ndarray, Infos]], noise_dim: int,
                 uniform_noise: bool = False) -> None:
        self._params, self._sample = params, sample
        self.noise_dim = noise_dim
        self._uniform_noise = uniform_noise
        self.states: Optional[np.ndarray] = None

    def start_paths(self, is_starting: np.ndarray) -> None:
        """Sets the hidden states of the paths that begin to zero."""
        if self.states is None:
            size = len(self._params["gru/recurrent_kernel"])
            self.states = np.zeros((*is_starting.shape, size), np.float32)
        self.states[is_starting] = 0.0

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Advances the hidden states by one step and samples actions; see `Actor.act`.

        Each task's rows are multiplied separately, so numbers do not depend on how tasks are distributed over workers.
        """
        if self.states is None:
            self.start_paths(np.ones(observations.shape[:2], bool))
        params, states = self._params, self.states
        assert states is not None, "start_paths has set them"
        size = states.shape[-1]
        of_input = np.matmul(observations.astype(np.float32), params["gru/input_kernel"])
        of_input += params["gru/bias"]
        of_state = np.matmul(states, params["gru/recurrent_kernel"])
        gates = 0.5 * np.tanh(0.5 * (of_input[..., :2 * size] + of_state[..., :2 * size])) + 0.5
        candidate = np.tanh(of_input[..., 2 * size:] + gates[..., :size] * of_state[..., 2 * size:])
        self.states = states = candidate + gates[..., size:] * (states - candidate)
        outputs = np.matmul(states, params["action/kernel"]) + params["action/bias"]
        values = np.matmul(states, params["value/kernel"]) + params["value/bias"]
        actions, infos = self._sample(outputs, noise, params)
        return actions, OrderedDict(infos, value=values[..., 0])

    def draw_noise(self, rng: np.random.Generator, out: np.ndarray) -> None:
        """Fills `out`, float32 `[T, noise_dim]`."""
        draw = rng.random if self._uniform_noise else rng.standard_normal
        draw(dtype=np.float32, out=out)

    def for_tasks(self, start: int, stop: int) -> "GRUActor":
        """Returns the actor of the tasks from `start` to before `stop`, with the same parameters and no states yet."""
        part = copy.copy(self)
        part.states = None
        return part


def initial_gru_values(obs_dim: int, action_dim: int, hidden_size: int,
                       rng: np.random.Generator) -> "OrderedDict[str, np.ndarray]":
    """Draws initial parameters of a `GRUActor`, float32.

    Input kernels are Glorot-uniform and recurrent kernels orthogonal, one for each gate. The biases of update gates are
    1, so that states last; all others are zero. The heads start at a hundredth of Glorot-uniform kernels: first actions
    are close to uniform.
    """

    def glorot(fan_in: int, fan_out: int) -> np.ndarray:
        limit = np.sqrt(6.0 / (fan_in + fan_out))
        return rng.uniform(-limit, limit, (fan_in, fan_out))

    recurrent = [np.linalg.qr(rng.standard_normal((hidden_size, hidden_size)))[0] for _ in range(3)]
    values = OrderedDict((
        ("gru/input_kernel", np.concatenate([glorot(obs_dim, hidden_size) for _ in range(3)], axis=1)),
        ("gru/recurrent_kernel", np.concatenate(recurrent, axis=1)),
        ("gru/bias", np.repeat([0.0, 1.0, 0.0], hidden_size)),
        ("action/kernel", 0.01 * glorot(hidden_size, action_dim)), ("action/bias", np.zeros(action_dim)),
        ("value/kernel", 0.01 * glorot(hidden_size, 1)), ("value/bias", np.zeros(1))))
    return OrderedDict((name, value.astype(np.float32)) for name, value in values.items())
