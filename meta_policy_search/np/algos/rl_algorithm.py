"""The interface of the algorithms that a `LocalRunner` runs."""
import abc
from typing import Any, Iterator, List, Optional, Protocol

import numpy as np

from meta_policy_search.types import Path
from meta_policy_search.utils.signatures import SharedArguments


class Runner(Protocol):
    """What an algorithm asks of the `LocalRunner` that trains it, which documents each of these."""

    env: Any
    sampler: Any
    step_itr: int
    step_path: Optional[List[Path]]
    total_timesteps_sampled: int

    def step_epochs(self) -> Iterator[int]:
        """Yields the number of each epoch."""

    def obtain_samples(self, itr: int, batch_size: Optional[int] = None) -> List[Path]:
        """Collects paths with the algorithm's policy as it is now."""

    def obtain_population_samples(self, itr: int, flat_params: np.ndarray,
                                  batch_size: Optional[int] = None) -> List[List[Path]]:
        """Collects paths for each of several sets of parameters."""


class RLAlgorithm(SharedArguments, abc.ABC):
    """Base class for all the algorithms.

    A snapshot holds the whole object: all that training depends on has to be among its attributes, and they have to be
    such that they can be pickled.

    Attributes:
        sampler_cls: where it is not None (the default), `LocalRunner.setup` makes a sampler of this class.
        policy: what a snapshot holds as the policy; default None.
        baseline: what a snapshot holds as the baseline; default None.
    """

    sampler_cls: Any = None
    policy: Any = None
    baseline: Any = None

    @abc.abstractmethod
    def train(self, runner: Runner) -> Any:
        """Obtains samples and trains, epoch by epoch.

        Args:
            runner (LocalRunner): gives access to `runner.step_epochs()`, which provides services such as snapshotting
                and sampler control, and to `runner.obtain_samples()`. Its `step_itr`, which the algorithm counts up,
                is 0 where training begins, and not where it goes on.

        Returns:
            What `LocalRunner.train` shall return.
        """

    def get_state(self) -> Any:
        """Returns what an epoch changes, for one that is interrupted to be taken back; None (default) if it cannot."""

    def set_state(self, state: Any) -> None:
        """Restores what `get_state` returned at the beginning of the epoch, where that is not None."""
