"""What exploration policies share: another policy's action plus noise, clipped to the action space."""
import abc
import copy
from typing import Any, Callable, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.of_policies import check_spaces, make_actors
from meta_policy_search.envs.env_spec import check_env_spec
from meta_policy_search.envs.spaces import is_box
from meta_policy_search.np.policies import Policy
from meta_policy_search.types import Infos


class ExplorationPolicy(Policy):
    """Acts like another policy (by the mean, if that is Gaussian), with noise added to its actions.

    It shares that policy's parameters. The noise is a process `x_0, x_1, ...` that begins anew with each path; a
    subclass supplies `next_noise`.

    Args:
        env_spec (EnvSpec): spaces of the environment, of which the action space is a box; actions are clipped to it.
        policy: the other policy, such as those of `np.policies`; one that has a NumPy form.
    """

    def __init__(self, env_spec: Any, policy: Any) -> None:
        space = check_env_spec("env_spec", env_spec).action_space
        if not is_box(space):
            raise ValueError(f"env_spec: expected one whose action space is a box, got {space}")
        check_spaces(policy, env_spec)
        if make_actors(policy, policy.get_flat_params()[None]) is None:
            raise TypeError(f"policy: expected one with a NumPy form (make_actors), got {policy!r}")
        super().__init__(policy.obs_dim, policy.action_dim)
        self.policy = policy
        self._bounds = np.asarray(space.low, np.float32), np.asarray(space.high, np.float32)
        self._noise: Optional[np.ndarray] = None  # [A], of the latest step

    @abc.abstractmethod
    def next_noise(self, noise: Optional[np.ndarray], normal: np.ndarray) -> np.ndarray:
        """Computes the noise of a step.

        Args:
            noise: `[A]`, that of the step before; None at the first step of a path.
            normal: `[A]`, standard normal.

        Returns:
            `[A]`, in the action's unit.
        """

    def compute_noise(self, noise: Optional[np.ndarray], normal: np.ndarray) -> np.ndarray:
        """Computes the noise of consecutive steps, float32 `[T, A]`; `normal` is `[T, A]`, else see `next_noise`."""
        rows = np.empty_like(normal, dtype=np.float32)
        for step, row in enumerate(normal):
            rows[step] = noise = self.next_noise(noise, row)
        return rows

    def reset(self, dones: Any = None) -> None:
        """Begins a new path, for `get_action` and `get_actions`."""
        self._noise = None

    def get_flat_params(self) -> np.ndarray:
        """Returns a copy of the other policy's parameters, float32 `[D]`."""
        return self.policy.get_flat_params()

    def set_flat_params(self, flat_params: np.ndarray) -> None:
        """Sets the other policy's parameters, `[D]`."""
        self.policy.set_flat_params(flat_params)

    def make_actors(self, flat_params: np.ndarray) -> "_NoisyActor":
        """See `Policy.make_actors`."""
        return _NoisyActor(self.policy.make_actors(flat_params), self.action_dim, self.compute_noise, self._bounds)

    def _draw_noise(self, actor: Actor, num_observations: int) -> np.ndarray:
        """Takes the observations of `get_actions` for those of consecutive steps."""
        normal = self._rng.standard_normal((num_observations, self.action_dim), dtype=np.float32)
        noise = self.compute_noise(self._noise, normal)
        self._noise = noise[-1]
        return noise


class _NoisyActor(Actor):
    """Acts like another actor, with noise added to its actions."""

    def __init__(self, actor: Actor, action_dim: int, compute_noise: Callable, bounds: Sequence[np.ndarray]) -> None:
        self._actor, self._compute_noise, self._bounds = actor, compute_noise, bounds
        self.noise_dim, self.can_divide = action_dim, actor.can_divide

    def for_tasks(self, start: int, stop: int) -> "_NoisyActor":
        part = copy.copy(self)
        part._actor = self._actor.for_tasks(start, stop)
        return part

    def draw_noise(self, rng: np.random.Generator, out: np.ndarray) -> None:
        """Fills `out`, float32 `[T, A]`, with the noise of a path."""
        out[:] = self._compute_noise(None, rng.standard_normal(out.shape, dtype=np.float32))

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        silence = np.zeros((*observations.shape[:2], self._actor.noise_dim), np.float32)
        actions, infos = self._actor.act(observations, silence)
        return np.clip(actions + noise, *self._bounds), infos
