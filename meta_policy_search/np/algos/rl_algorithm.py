"""The interface of the algorithms that a `LocalRunner` runs."""
import abc
from typing import Any

from meta_policy_search.utils.serializable import Configurable


class RLAlgorithm(Configurable, abc.ABC):
    """Base class for all the algorithms.

    A snapshot contains the whole object: everything that training depends on has to be an attribute that can be
    pickled.

    Attributes:
        sampler_cls: class of the sampler that `LocalRunner.setup` creates; None (default) for no sampler.
        policy: the policy in snapshots; default None.
        baseline: the baseline in snapshots; default None.
    """

    sampler_cls: Any = None
    policy: Any = None
    baseline: Any = None

    @abc.abstractmethod
    def train(self, runner: Any) -> Any:
        """Obtains samples and trains, epoch by epoch.

        Args:
            runner (LocalRunner): provides `runner.step_epochs()`, which also saves snapshots and controls the sampler,
                and `runner.obtain_samples()`. The algorithm increments `runner.step_itr`, which is 0 when training
                begins and above 0 when it is resumed.

        Returns:
            The value that `LocalRunner.train` returns.
        """

    def get_state(self) -> Any:
        """Returns what an epoch changes, so that it can be rolled back; None (default) if it cannot."""

    def set_state(self, state: Any) -> None:
        """Restores what `get_state` returned at the start of the epoch; not called for None."""
