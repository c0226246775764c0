"""Interface of algorithms that a `LocalRunner` runs."""
import abc
from typing import Any, Mapping, Tuple, Type, TypeVar

from meta_policy_search.utils.serializable import Configurable

A = TypeVar("A", bound="RLAlgorithm")


class RLAlgorithm(Configurable, abc.ABC):
    """Base class of algorithms that a `LocalRunner` runs.

    A snapshot contains the whole object. Everything that training depends on must therefore be an attribute that can be
    pickled.

    Attributes:
        sampler_cls: class of the sampler that `LocalRunner.setup` creates. Default: None, no sampler.
        policy: the policy, stored in snapshots. Default: None.
        baseline: the baseline, stored in snapshots. Default: None.
    """

    env_wrappers: Tuple[type, ...] = ()
    """Wrappers of the environment in a training with `meta_policy_search.train`."""

    default_settings: Mapping[str, Any] = {"env": "CartPole-v1", "n_itr": 100, "batch_size": 1000}
    """Settings of a training that have no default in their class, or another one. `env` applies to the command line."""

    sampler_cls: Any = None
    policy: Any = None
    baseline: Any = None

    @classmethod
    def for_env(cls: Type[A], env: Any, **settings: Any) -> A:
        """Builds the algorithm and its parts for an environment.

        Subclasses list the arguments of the parts explicitly; these are settings of `meta_policy_search.train`.

        Args:
            env: the environment, with all wrappers.
            **settings: arguments of the constructor.
        """
        raise NotImplementedError(f"{cls.__name__}.for_env: override this class method for meta_policy_search.train")

    @abc.abstractmethod
    def train(self, runner: Any) -> Any:
        """Obtains samples and trains, epoch by epoch.

        Args:
            runner (LocalRunner): provides `runner.obtain_samples()` and `runner.step_epochs()`, which also saves
                snapshots and controls the sampler. The algorithm increments `runner.step_itr`, which is 0 at the start
                of training and above 0 when training is resumed.

        Returns:
            The return value of `LocalRunner.train`.
        """

    def get_state(self) -> Any:
        """Returns the state that an epoch changes, for rollback; None (default) if it cannot be rolled back."""

    def set_state(self, state: Any) -> None:
        """Restores the state that `get_state` returned at the start of the epoch; not called for None."""
