"""Multi-layer perceptrons of several policies, which act together: the actors of the library's policies."""
import copy
from collections import OrderedDict
from typing import Mapping, Optional, Tuple, TypeVar

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.nonlinearities import NONLINEARITIES
from meta_policy_search.types import Infos
from meta_policy_search.utils.utils import draw_index

S = TypeVar("S", bound="StackedMLP")


class StackedMLP:
    """`M` multi-layer perceptrons, one per task: what the actors below share.

    Each task's matrices multiply alone and always with the same number of rows, so an output depends neither on
    which tasks share a process nor on which rows are in use.

    Args:
        params: float32 parameters stacked over tasks, `<scope>/<layer>/kernel` `[M, in, out]` and
            `<scope>/<layer>/bias` `[M, out]`, layers named `hidden_0`, `hidden_1`, ..., `output`.
        scope: prefix of the parameter names.
        num_hidden_layers: number of hidden layers.
        hidden_nonlinearity: name of one of `NONLINEARITIES`, or None for the identity.
        output_nonlinearity: likewise, for the output.
    """

    can_divide = True

    def __init__(self, params: Mapping[str, np.ndarray], scope: str, num_hidden_layers: int,
                 hidden_nonlinearity: Optional[str], output_nonlinearity: Optional[str]) -> None:
        names = [f"hidden_{i}" for i in range(num_hidden_layers)] + ["output"]
        self._layers = [(params[f"{scope}/{name}/kernel"], params[f"{scope}/{name}/bias"][:, None, :])
                        for name in names]
        self._nonlinearities = [hidden_nonlinearity] * num_hidden_layers + [output_nonlinearity]

    def for_tasks(self: S, start: int, stop: int) -> S:
        """Returns the networks of the tasks from `start` to before `stop`, which share the parameters' memory."""
        part = copy.copy(self)
        part._layers = [(kernel[start:stop], bias[start:stop]) for kernel, bias in self._layers]
        return part

    def compute_output(self, observations: np.ndarray) -> np.ndarray:
        """Computes the networks' outputs, float32 `[M, R, out]`, at observations `[M, R, O]`."""
        x = observations.astype(np.float32)
        for (kernel, bias), nonlinearity in zip(self._layers, self._nonlinearities):
            x = np.matmul(x, kernel)
            x += bias
            if nonlinearity is not None:
                x = NONLINEARITIES[nonlinearity](x, x)
        return x


class StackedGaussianMLP(StackedMLP, Actor):
    """`M` Gaussian MLP policies, one per task.

    Args:
        params: as for `StackedMLP`, with the scope `mean_network`; and `log_std_network/log_std_var` `[M, A]`.
        num_hidden_layers, hidden_nonlinearity, output_nonlinearity: as for `StackedMLP`.
        min_log_std: smallest log standard deviation.
    """

    def __init__(self, params: Mapping[str, np.ndarray], num_hidden_layers: int, hidden_nonlinearity: Optional[str],
                 output_nonlinearity: Optional[str], min_log_std: float) -> None:
        super().__init__(params, "mean_network", num_hidden_layers, hidden_nonlinearity, output_nonlinearity)
        self._log_std = np.maximum(params["log_std_network/log_std_var"], np.float32(min_log_std))[:, None, :]
        self._std = np.exp(self._log_std)
        self.noise_dim = self._std.shape[-1]

    def for_tasks(self, start: int, stop: int) -> "StackedGaussianMLP":
        part = super().for_tasks(start, stop)
        part._log_std, part._std = self._log_std[start:stop], self._std[start:stop]
        return part

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Computes actions `mean + std * noise`, and agent infos `mean` and `log_std`, each float32 `[M, R, A]`.

        With `noise` zero, actions are the mean.
        """
        mean = self.compute_output(observations)
        log_std = np.broadcast_to(self._log_std, mean.shape)
        return mean + self._std * noise, OrderedDict(mean=mean, log_std=log_std)


class StackedCategoricalMLP(StackedMLP, Actor):
    """`M` categorical MLP policies, one per task.

    Args:
        params: as for `StackedMLP`, with the scope `logits_network`.
        num_hidden_layers, hidden_nonlinearity, output_nonlinearity: as for `StackedMLP`.
    """

    noise_dim = 1

    def __init__(self, params: Mapping[str, np.ndarray], num_hidden_layers: int, hidden_nonlinearity: Optional[str],
                 output_nonlinearity: Optional[str]) -> None:
        super().__init__(params, "logits_network", num_hidden_layers, hidden_nonlinearity, output_nonlinearity)

    def draw_noise(self, rng: np.random.Generator, out: np.ndarray) -> None:
        """Fills `out`, float32 `[T, 1]`, with numbers uniform in `[0, 1)`."""
        rng.random(dtype=np.float32, out=out)

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Draws actions, int64 `[M, R]`; the agent info `log_prob`, float32 `[M, R, n]`, is that of all actions."""
        logits = self.compute_output(observations)
        logits -= np.max(logits, axis=-1, keepdims=True)
        log_prob = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
        return draw_index(np.exp(log_prob), noise[..., 0]), OrderedDict(log_prob=log_prob)


class StackedDeterministicMLP(StackedMLP, Actor):
    """`M` deterministic MLP policies, one per task.

    Args:
        params: as for `StackedMLP`, with the scope `action_network`.
        num_hidden_layers, hidden_nonlinearity, output_nonlinearity: as for `StackedMLP`.
        is_discrete: whether an action is the index of the largest output, rather than the outputs.
    """

    def __init__(self, params: Mapping[str, np.ndarray], num_hidden_layers: int, hidden_nonlinearity: Optional[str],
                 output_nonlinearity: Optional[str], is_discrete: bool) -> None:
        super().__init__(params, "action_network", num_hidden_layers, hidden_nonlinearity, output_nonlinearity)
        self._is_discrete = is_discrete

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Computes actions, float32 `[M, R, A]`, or int64 `[M, R]` where they are discrete; no agent infos."""
        outputs = self.compute_output(observations)
        return (outputs.argmax(axis=-1) if self._is_discrete else outputs), {}

