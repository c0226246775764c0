"""The interface of the algorithms that a `LocalRunner` runs."""
import abc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meta_policy_search.local_runner import LocalRunner

__all__ = ["RLAlgorithm"]


class RLAlgorithm(abc.ABC):
    """Base class for all the algorithms.

    A snapshot holds the whole object: all that training depends on has to be among its attributes, and they have to be
    such that they can be pickled.

    Note:
        If the attribute `sampler_cls` exists and is not None, `LocalRunner.setup` makes a sampler of that class.
    """

    @abc.abstractmethod
    def train(self, runner: "LocalRunner") -> Any:
        """Obtains samples and trains, epoch by epoch.

        Args:
            runner (LocalRunner): gives access to `runner.step_epochs()`, which provides services such as snapshotting
                and sampler control, and to `runner.obtain_samples()`. Its `step_itr`, which the algorithm counts up,
                is 0 where training begins, and not where it goes on.

        Returns:
            What `LocalRunner.train` shall return.
        """
