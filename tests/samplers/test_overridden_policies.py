"""The fast paths of sampling respect policies and environments that override acting or stepping."""
import types
from unittest import mock

import numpy as np
import pytest

from meta_policy_search.actors import actor_from_policy
from meta_policy_search.actors.from_policy import PolicyActor
from meta_policy_search.actors.stacked_mlp import StackedMLP
from meta_policy_search.envs import MetaPointEnvCorner, normalize
from meta_policy_search.envs.compat import adapt_env
from meta_policy_search.envs.normalized_env import NormalizedEnv
from meta_policy_search.np import policies as np_policies
from meta_policy_search.policies import DiagonalGaussian, GaussianMLPPolicy, MetaGaussianMLPPolicy, TaskPolicy
from meta_policy_search.samplers import MetaSampler

ALWAYS_RIGHT = np.tile([10.0, 0.0], (4, 1))


class AlwaysRight(MetaGaussianMLPPolicy):
    """Overrides `get_actions`."""

    def get_actions(self, observations):
        actions, infos = super().get_actions(observations)
        return [np.tile([10.0, 0.0], (len(a), 1)) for a in actions], infos


class Doubled(NormalizedEnv):
    """Doubles rewards in `step` of the single environment only."""

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return (observation, 2 * reward, *rest)


def make(cls=MetaGaussianMLPPolicy):
    return cls(2, 2, 2, hidden_sizes=(4,))


def sample_path(policy):
    """Returns the last path of the last task, from two tasks with three paths of four steps."""
    with MetaSampler(normalize(MetaPointEnvCorner()), policy, 3, 2, 4) as sampler:
        return sampler.obtain_samples()[1][2]


def test_overridden_get_actions_is_used():
    path = sample_path(make(AlwaysRight))
    np.testing.assert_array_equal(path["actions"], ALWAYS_RIGHT)
    np.testing.assert_allclose(np.diff(path["observations"][:, 0]), 0.2)


class Shifted(MetaGaussianMLPPolicy):
    """A Gaussian policy with a mean shifted by 100, like a policy of this package."""

    __module__ = MetaGaussianMLPPolicy.__module__

    def distribution_info_sym(self, obs_var, params=None):
        info = super().distribution_info_sym(obs_var, params)
        return {**info, "mean": info["mean"] + 100.0}


def test_overridden_distribution_of_a_package_policy_is_sampled():
    path = sample_path(make(Shifted))
    assert (path["actions"] > 50.0).all() and (path["agent_infos"]["mean"] > 50.0).all()
    policy = TaskPolicy(make(Shifted))
    assert isinstance(actor_from_policy(policy, flat_params=policy.get_flat_params()[None]), PolicyActor)
    assert (policy.get_actions(np.zeros((3, 2)))[0] > 50.0).all()


class Mixin:
    """Overrides `get_actions` from outside the policy hierarchy."""

    def get_actions(self, observations):
        return [np.tile([10.0, 0.0], (len(each), 1)) for each in observations], None


class Mixed(Mixin, MetaGaussianMLPPolicy):
    pass


class Fixed(MetaGaussianMLPPolicy):
    """Overrides the operations that compute actions."""

    def _build_acting(self):
        super()._build_acting()
        self._acting_info = {**self._acting_info, "mean": 0.0 * self._acting_info["mean"] + 100.0}


@pytest.mark.parametrize("cls", [AlwaysRight, Shifted, Mixed, Fixed])
def test_any_override_disables_both_vectorized_methods(cls):
    policy = make(cls)
    assert isinstance(actor_from_policy(policy), PolicyActor)
    assert isinstance(actor_from_policy(policy, flat_params=policy.get_flat_params()[None]), PolicyActor)


def right(observations):
    return [np.tile([10.0, 0.0], (len(each), 1)) for each in observations], None


def test_patched_method_of_instance_or_class_is_used():
    policy = make()
    assert isinstance(actor_from_policy(policy), StackedMLP)
    policy.get_actions = right
    np.testing.assert_array_equal(sample_path(policy)["actions"], ALWAYS_RIGHT)
    del policy.get_actions
    assert isinstance(actor_from_policy(policy), StackedMLP)

    with mock.patch.object(policy, "get_actions", side_effect=right) as get_actions:
        np.testing.assert_array_equal(sample_path(policy)["actions"], ALWAYS_RIGHT)
    assert get_actions.call_count == 4  # one call per step
    with mock.patch.object(MetaGaussianMLPPolicy, "get_actions", lambda self, observations: right(observations)):
        np.testing.assert_array_equal(sample_path(policy)["actions"], ALWAYS_RIGHT)
    with mock.patch.object(GaussianMLPPolicy, "distribution_info_sym"):
        assert isinstance(actor_from_policy(policy), PolicyActor)
    assert isinstance(actor_from_policy(policy), StackedMLP)


@pytest.mark.parametrize("name", ["distribution_info_sym", "get_action", "get_actions", "_sample_actions"])
def test_replaced_method_of_the_instance_is_detected(name):
    policy = make()
    setattr(policy, name, getattr(policy, name))
    assert isinstance(actor_from_policy(policy), PolicyActor)
    assert isinstance(actor_from_policy(policy, flat_params=policy.get_flat_params()[None]), PolicyActor)


class Centered(DiagonalGaussian):
    """Samples the mean."""

    def sample(self, dist_info, rng=None):
        return np.asarray(dist_info["mean"])


@pytest.mark.parametrize("replace", [
    lambda policy: setattr(policy, "_distribution", Centered(2)),
    lambda policy: setattr(policy, "_distribution", types.SimpleNamespace(
        sample=Centered(2).sample, dist_info_specs=DiagonalGaussian(2).dist_info_specs, action_shape=(2,))),
    lambda policy: setattr(policy.distribution, "sample", Centered(2).sample),
], ids=["subclass", "other class", "patched"])
def test_replaced_distribution_is_sampled(replace):
    policy = make()
    replace(policy)
    path = sample_path(policy)
    np.testing.assert_array_equal(path["actions"], path["agent_infos"]["mean"])


def test_patched_distribution_class_is_detected():
    policy = make()
    with mock.patch.object(DiagonalGaussian, "sample", lambda self, info, rng=None: np.asarray(info["mean"])):
        path = sample_path(policy)
        np.testing.assert_array_equal(path["actions"], path["agent_infos"]["mean"])
    assert isinstance(actor_from_policy(policy), StackedMLP)


class NumpyRight(np_policies.GaussianMLPPolicy):
    """A NumPy policy that overrides `get_actions`."""

    def get_actions(self, observations):
        actions, infos = super().get_actions(observations)
        return np.tile([10.0, 0.0], (len(actions), 1)), infos


def test_overridden_get_actions_of_a_numpy_policy_is_used():
    policy = NumpyRight(2, 2, (4,))
    actions, infos = actor_from_policy(policy).act(np.zeros((1, 4, 2)), np.zeros((1, 4, 0), "f"))
    np.testing.assert_array_equal(actions[0], ALWAYS_RIGHT)
    assert set(infos) == {"mean", "log_std"}
    assert isinstance(actor_from_policy(policy, flat_params=policy.get_flat_params()[None]), PolicyActor)


def test_wrapper_that_overrides_step_disables_vectorized_stepping():
    assert adapt_env(NormalizedEnv(MetaPointEnvCorner())).make_batched(1) is not None
    assert adapt_env(Doubled(MetaPointEnvCorner())).make_batched(1) is None

    policy = MetaGaussianMLPPolicy(2, 2, 2, hidden_sizes=(4,))
    rewards = []
    for wrapper in (NormalizedEnv, Doubled):
        with MetaSampler(wrapper(MetaPointEnvCorner("dense")), policy, 3, 2, 4) as sampler:
            rewards.append(sampler.obtain_samples()[0][0]["rewards"])
    np.testing.assert_array_equal(rewards[1], 2 * rewards[0])


class Returns:
    """A custom policy that returns a fixed result."""

    meta_batch_size, obs_dim, action_dim = 2, 2, 2

    def __init__(self, actions, infos):
        self.answer = actions, infos

    def get_actions(self, observations):
        return self.answer


ACTIONS, INFOS = [np.zeros((3, 2))] * 2, [[{"a": 1}] * 3] * 2


@pytest.mark.parametrize("actions, infos, message", [
    (ACTIONS[:1], INFOS, r"actions of 2 tasks, each of shape \(3, 2\), got the shapes \[\(3, 2\)\]"),
    ([np.zeros((3, 1))] * 2, INFOS, r"actions of 2 tasks, each of shape \(3, 2\), got the shapes \[\(3, 1\), \(3, 1\)"),
    (np.zeros((6, 2)), INFOS, r"actions of 2 tasks, each of shape \(3, 2\), got the shapes \[\(2,\), "),
    (ACTIONS, INFOS[:1], r"agent infos of 2 tasks, each a list of 3 dicts, got \[\[{'a': 1}"),
    (ACTIONS, {"a": np.zeros((2, 3, 1))}, "agent infos of 2 tasks, each a list of 3 dicts, got {'a': array"),
])
def test_result_of_get_actions_is_checked(actions, infos, message):
    with MetaSampler(MetaPointEnvCorner(), Returns(ACTIONS, INFOS), 3, 2, 4) as sampler:
        assert sampler.obtain_samples()[1][2]["agent_infos"]["a"].tolist() == [1] * 4
        sampler.policy.answer = actions, infos
        with pytest.raises(ValueError, match=f"^policy.get_actions: expected .*{message}"):
            sampler.obtain_samples()
