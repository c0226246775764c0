"""NumPy implementation of recurrent policies with gated recurrent units (GRU)."""
import copy
from collections import OrderedDict
from typing import Callable, Optional, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.types import Infos, Params


class GRUActor(Actor):
    """Actor of a recurrent policy that has the same parameters in all `M` tasks.

    The actor stores one hidden state per path. `start_paths` resets it to zero. The agent infos of `act` are those that
    `sample` returns, and `value`, float32 `[M, R]`, the output of the value head.

    Args:
        params: float32 arrays `gru/input_kernel` `[O, 3H]`, `gru/recurrent_kernel` `[H, 3H]`, `gru/bias` `[3H]`,
            `action/kernel` `[H, A]`, `action/bias` `[A]`, `value/kernel` `[H, 1]` and `value/bias` `[1]`; see
            `ops.recurrent.gru`. Further arrays `[1, ...]` are passed to `sample`.
        sample: function that is called with the outputs of the action head `[M, R, A]`, the noise `[M, R, noise_dim]`
            and `params`. It returns actions and infos like `Actor.act`; see `actors.stacked_mlp` for examples.
        noise_dim: number of random numbers per action.
        uniform_noise: whether the noise is uniform in `[0, 1)` instead of standard normal. Default: False.
    """

    can_divide = True

    def __init__(self, params: Params, sample: Callable[..., Tuple[np.ndarray, Infos]], noise_dim: int,
                 uniform_noise: bool = False) -> None:
        self._params, self._sample = params, sample
        self.noise_dim, self.uniform_noise = noise_dim, uniform_noise
        self.states: Optional[np.ndarray] = None

    def start_paths(self, is_starting: np.ndarray) -> None:
        """Resets the hidden states of the selected paths to zero; see `Actor.start_paths`."""
        if self.states is None:
            size = len(self._params["gru/recurrent_kernel"])
            self.states = np.zeros((*is_starting.shape, size), np.float32)
        self.states[is_starting] = 0.0

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Advances the hidden states by one step and samples actions; see `Actor.act`.

        There is one matrix product per task, so the results do not depend on how tasks are divided among workers.
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

    def for_tasks(self, start: int, stop: int) -> "GRUActor":
        """Returns an actor for the tasks from `start` (inclusive) to `stop` (exclusive), without hidden states."""
        part = copy.copy(self)
        part.states = None
        return part


def initial_gru_values(obs_dim: int, action_dim: int, hidden_size: int,
                       rng: np.random.Generator) -> "OrderedDict[str, np.ndarray]":
    """Draws initial parameters of a `GRUActor`, float32.

    Reset gate, update gate and candidate state each have a Glorot-uniform input kernel and an orthogonal recurrent
    kernel. The bias of the update gate is 1, so that hidden states change slowly; all other biases are zero. The
    kernels of both heads are Glorot-uniform, scaled by 0.01. The initial distribution of discrete actions is therefore
    close to uniform.
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
