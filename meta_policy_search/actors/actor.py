"""The interface of what acts while paths are sampled."""
import abc
from typing import Sequence, Tuple

import numpy as np

from meta_policy_search.types import Infos


class Actor(abc.ABC):
    """Acts in `M` tasks at once, on arrays, with parameters that are fixed when it is made.

    A sampler makes an actor from the policy (`of_policies.actor_of`) for each round of sampling. When a path begins,
    it draws the noise of all its steps from the path's own random numbers (`draw_noise`); then it calls `act` once for
    each step, with a row for each of the `R` paths of a task. Rows of paths that have ended, or that have not begun,
    are passed too, and their actions are ignored. If actions depend on observation and noise only, they do not depend
    on which paths are sampled together.

    A subclass supplies `act`. It sets `noise_dim` if actions are random, and overrides `draw_noise` if their noise is
    not standard normal. It sets `can_divide` and overrides `for_tasks` if tasks may act separately.

    Attributes:
        noise_dim (int): random numbers that an action takes. Default: 0.
        can_divide (bool): whether `for_tasks` may be called. Its results act at the same time, in threads of this
            process or, pickled, in other processes without TensorFlow; sampling on Ray needs that. Default: False, and
            all tasks act in one thread of this process.
    """

    noise_dim: int = 0
    can_divide: bool = False

    @abc.abstractmethod
    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Chooses an action for each row.

        Args:
            observations: float64 `[M, R, O]`; not to be written to.
            noise: float32 `[M, R, noise_dim]`, as `draw_noise` gives it.

        Returns:
            Actions `[M, R, A]`, or integers `[M, R]` where they are discrete; and agent infos, each `[M, R, ...]`.
        """

    def draw_noise(self, rng: np.random.Generator, out: np.ndarray) -> None:
        """Draws the noise of a path's steps; by default standard normal.

        Args:
            rng: the path's random numbers.
            out: float32 `[T, noise_dim]`, is filled. For a path of very many steps this is called again, with more
                rows, of which the first must be the same.
        """
        rng.standard_normal(dtype=np.float32, out=out)

    def start_paths(self, is_starting: np.ndarray) -> None:
        """Called before `act` when paths begin, bool `[M, R]`; resets the states of an actor that has any."""

    def for_tasks(self, start: int, stop: int) -> "Actor":
        """Returns an actor for the tasks from `start` to before `stop`; called only where `can_divide`."""
        raise TypeError(f"{type(self).__name__} acts for all tasks together (can_divide is False)")


def join_tasks(answers: Sequence[Tuple[np.ndarray, Infos]]) -> Tuple[np.ndarray, Infos]:
    """Returns what `act` gave for some tasks each (actions and infos) as one answer for all of them."""
    infos = {key: np.concatenate([infos[key] for _, infos in answers]) for key in answers[0][1]}
    return np.concatenate([actions for actions, _ in answers]), infos
