"""Base class of all policies of this library whose parameters can be represented as one flat vector."""
import abc
import os
from typing import Any, Optional, Sequence, Tuple, Type, TypeVar

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.parameters import check_params, flatten_params, read_npz
from meta_policy_search.envs.compat import check_has_spaces
from meta_policy_search.envs.spaces import EnvSpec, as_numbers, is_discrete
from meta_policy_search.types import Infos, Params, Path
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_bool, check_positive_int
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.files import PathLike, atomic_file, output_path
from meta_policy_search.utils.serializable import Configurable

P = TypeVar("P", bound="FlatPolicy")


class FlatPolicy(Configurable, abc.ABC):
    """A policy whose parameters can be represented as one flat vector.

    A subclass implements `get_flat_params` and `set_flat_params`, and either `get_actions` or the vectorized method
    `make_actors`, declared as::

        @replaces("get_action", "get_actions")
        def make_actors(self, flat_params): ...

    Args:
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; if actions are discrete, the number of actions.
    """

    @classmethod
    def for_env(cls: Type[P], env: Any, **arguments: Any) -> P:
        """Returns a policy for an environment, with the sizes of its observation and action space.

        Args:
            env: an environment, or an `EnvSpec`.
            **arguments: all other arguments of the class, by name.

        Raises:
            TypeError: `env` has no observation and action space.
            ValueError: the class does not support the spaces.
        """
        check_has_spaces(env)
        spec = EnvSpec.of(env)
        policy = cls(obs_dim=spec.obs_dim, action_dim=spec.action_dim, **arguments)
        check_spaces(policy, env)
        return policy

    def __init__(self, obs_dim: int, action_dim: int) -> None:
        self.obs_dim = check_positive_int("obs_dim", obs_dim)
        self.action_dim = check_positive_int("action_dim", action_dim)
        self._rng = seeding.next_rng(seeding.Stream.POLICY)

    @property
    def action_shape(self) -> Tuple[int, ...]:
        """Shape of an action: `(A,)`, or `()` if actions are discrete."""
        return (self.action_dim,)

    @abc.abstractmethod
    def get_flat_params(self) -> np.ndarray:
        """Returns a copy of the parameters, float32 `[D]`."""

    @abc.abstractmethod
    def set_flat_params(self, flat_params: np.ndarray) -> None:
        """Sets the parameters, `[D]`."""

    def get_param_values(self) -> Params:
        """Returns the parameters by name, in the form that `set_params` accepts. Default: one vector."""
        return {"flat_params": self.get_flat_params()}

    def set_params(self, policy_params: Params) -> None:
        """Sets all parameters; `policy_params` maps every parameter name to a finite array."""
        checked = check_params(policy_params, self.get_param_values(), "policy_params")
        self.set_flat_params(flatten_params(checked))

    def save_npz(self, path: PathLike) -> None:
        """Writes all parameters to an `.npz` file of arrays by name. The file contains no code; see `load_npz`."""
        with atomic_file(output_path(path)) as file:
            np.savez_compressed(file, **self.get_param_values())  # type: ignore[arg-type]

    def load_npz(self, path: PathLike) -> None:
        """Sets all parameters from a file that `save_npz` wrote; runs no code from the file.

        Args:
            path: the `.npz` file, of a policy with the same sizes.

        Raises:
            ValueError: the file has another format, names or shapes differ from those of this policy, or a value is not
                finite. The message names the file. The policy is unchanged.
            OSError: the file cannot be read.
        """
        params = read_npz(path)
        try:
            self.set_params(params)
        except (TypeError, ValueError) as error:
            raise ValueError(f"path: expected the parameters of this policy in {os.fspath(path)}: {error}") from error

    @replaces("get_action", "get_actions")
    def make_actors(self, flat_params: np.ndarray) -> Optional[Actor]:
        """Returns an actor for copies of this policy with other parameters, one copy per task.

        Args:
            flat_params: `[M, D]`, the parameters of each copy.

        Returns:
            An actor that runs without TensorFlow, or None (default) if the policy is not vectorized.
        """
        return None

    def get_action(self, observation: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Chooses an action.

        Args:
            observation: `[O]`.

        Returns:
            `(action [A], agent_info)`. If actions are discrete, the action is an int64. For stochastic policies, the
            info contains the parameters of the sampling distribution.
        """
        actions, infos = self.get_actions(self._check_observations("observation", observation, ndim=1)[None])
        return actions[0], {key: value[0] for key, value in infos.items()}

    def get_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Chooses an action for each observation.

        Args:
            observations: `[B, O]`.

        Returns:
            `(actions [B, A], agent_infos)`, each info with the leading axis `B`. If actions are discrete, they are
            int64 `[B]`.
        """
        observations = self._check_observations("observations", observations, ndim=2)
        actor = self.make_actors(self.get_flat_params()[None])
        if actor is None:
            raise NotImplementedError(f"{type(self).__name__}: expected a class that implements get_actions or "
                                      "make_actors, got neither")
        noise = np.empty((len(observations), actor.noise_dim), np.float32)
        actor.draw_noise(self._rng, noise)
        return act_in_one_task(actor, observations, noise)

    def act(self, observation: np.ndarray, deterministic: bool = False) -> Any:
        """Returns an action `[A]` (an integer if actions are discrete) for an observation `[O]`.

        The action is in the units of training. For policies from `train`, which applies the wrapper `normalize`
        (except with `cem` and `cma_es`), the bounds of the environment's actions are `-normalization_scale` and
        `normalization_scale` (default 10).

        Args:
            observation: `[O]`.
            deterministic: whether to return the mean, or the most probable action, instead of a sample from the
                policy's distribution. Default: False.
        """
        check_bool("deterministic", deterministic)  # first, because acting changes a recurrent state
        action, info = self.get_action(observation)
        return most_probable(action, info) if deterministic else action

    def _check_observations(self, argument: str, observations: Any, ndim: int) -> np.ndarray:
        observations = as_numbers(argument, observations)
        if observations.ndim != ndim or observations.shape[-1] != self.obs_dim:
            expected = f"({self.obs_dim},)" if ndim == 1 else "(" + "any, " * (ndim - 1) + f"{self.obs_dim})"
            raise ValueError(f"{argument}: expected shape {expected}, got {observations.shape}")
        if not (np.abs(observations) <= np.finfo(np.float32).max).all():  # policies compute in float32
            raise ValueError(f"{argument}: expected finite numbers, got {observations}")
        return observations

    def reset(self, dones: Any = None) -> None:
        """Resets the recurrent state of `get_actions` at the start of paths. Default: does nothing.

        Args:
            dones: bool `[B]` (`[M, B]` for a policy that acts in `M` tasks), True for the paths that start. Default
                None: all paths.
        """

    def log_diagnostics(self, paths: Sequence[Path], prefix: str = "") -> None:
        """Logs statistics of the policy on its paths, with `prefix` before each column name. Default: logs nothing."""


def act_in_one_task(actor: Actor, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
    """Returns actions and infos, each `[B, ...]`, of an actor for one task at observations `[B, O]`."""
    actions, infos = actor.act(observations[None], noise[None])
    return actions[0], {key: value[0] for key, value in infos.items()}


def most_probable(actions: Any, infos: Infos) -> Any:
    """Returns the means, or the most probable actions, of agent infos; `actions` if the infos contain neither."""
    if "mean" in infos:
        return infos["mean"]
    return np.argmax(infos["log_prob"], axis=-1) if "log_prob" in infos else actions


def sizes_of(policy: Any) -> Tuple[Optional[int], Optional[int], Optional[Tuple[int, ...]]]:
    """Returns the sizes of a policy (any object with `get_actions`, or a list of them); None for missing attributes.

    Returns:
        Tuple of `obs_dim`, `action_dim` and `action_shape`: `(A,)`, or `()` if actions are discrete.
    """
    if isinstance(policy, list):
        return sizes_of(policy[0])
    obs_dim, size, shape = (getattr(policy, name, None) for name in ("obs_dim", "action_dim", "action_shape"))
    if shape is None and size is not None:
        shape = (size,)
    return obs_dim, size, None if shape is None else tuple(shape)


def num_tasks_of(policy: Any) -> Optional[int]:
    """Returns the number of tasks of a meta-policy or a list of policies, one per task; None for other policies."""
    return len(policy) if isinstance(policy, list) else getattr(policy, "meta_batch_size", None)


def check_spaces(policy: Any, env: Any) -> None:
    """Raises `ValueError` unless the policy fits the observation and action space of an environment or `EnvSpec`.

    Sizes that the policy does not have as attributes (`obs_dim`, `action_dim`) are not checked.
    """
    (obs_dim, action_dim, action_shape), space = sizes_of(policy), env.action_space
    is_index = is_discrete(space)
    if action_shape is not None and is_index != (action_shape == ()):
        actions = "integers" if action_shape == () else f"arrays of shape {action_shape}"
        raise ValueError(f"policy: expected a policy for the action space {space}, got a {type(policy).__name__}, "
                         f"whose actions are {actions}")
    for kind, name, shape, size in (
            ("observation", "obs_dim", env.observation_space.shape, obs_dim),
            ("action", "action_dim", (int(space.n),) if is_index else space.shape, action_dim)):
        if len(shape) != 1:
            hint = "; gymnasium.wrappers.FlattenObservation(env) flattens observations" if kind == "observation" else ""
            raise ValueError(f"env.{kind}_space: expected vectors, got arrays of shape {shape}{hint}")
        if size not in (None, shape[0]):
            raise ValueError(f"policy.{name}: expected {shape}, the size of the environment's space, got {size}")
