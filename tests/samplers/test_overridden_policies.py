"""A policy or environment that overrides how it acts or steps is sampled as it acts and steps."""
import numpy as np
import pytest

from meta_policy_search.envs import MetaPointEnvCorner, normalize
from meta_policy_search.envs.gym_compat import make_batched
from meta_policy_search.envs.normalized_env import NormalizedEnv
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampler


class AlwaysRight(MetaGaussianMLPPolicy):
    """Acts in a way of its own."""

    def get_actions(self, observations):
        actions, infos = super().get_actions(observations)
        return [np.tile([10.0, 0.0], (len(a), 1)) for a in actions], infos


class Doubled(NormalizedEnv):
    """Doubles rewards, in the form for one environment alone."""

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return (observation, 2 * reward, *rest)


def test_a_policy_that_overrides_get_actions_acts_through_it():
    policy = AlwaysRight(2, 2, 2, hidden_sizes=(4,))
    assert policy.make_actor() is None

    with MetaSampler(normalize(MetaPointEnvCorner()), policy, 3, 2, 4) as sampler:
        path = sampler.obtain_samples()[1][2]

    np.testing.assert_array_equal(path["actions"], np.tile([10.0, 0.0], (4, 1)))
    np.testing.assert_allclose(np.diff(path["observations"][:, 0]), 0.2)


def test_a_wrapper_that_overrides_step_is_not_stepped_as_arrays():
    assert make_batched(NormalizedEnv(MetaPointEnvCorner()), 1) is not None
    assert make_batched(Doubled(MetaPointEnvCorner()), 1) is None

    policy = MetaGaussianMLPPolicy(2, 2, 2, hidden_sizes=(4,))
    rewards = []
    for wrapper in (NormalizedEnv, Doubled):
        with MetaSampler(wrapper(MetaPointEnvCorner("dense")), policy, 3, 2, 4) as sampler:
            rewards.append(sampler.obtain_samples()[0][0]["rewards"])
    np.testing.assert_array_equal(rewards[1], 2 * rewards[0])


class Returns:
    """A policy of another make that returns what it is told."""

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
    (ACTIONS, [INFOS[0], [{"a": 1}, {"b": 1}, {"a": 1}]], r"same keys everywhere, got \['a'\] and \['b'\]"),
])
def test_what_get_actions_returns_is_checked(actions, infos, message):
    with MetaSampler(MetaPointEnvCorner(), Returns(ACTIONS, INFOS), 3, 2, 4) as sampler:
        assert sampler.obtain_samples()[1][2]["agent_infos"]["a"].tolist() == [1] * 4
        sampler.policy.answer = actions, infos
        with pytest.raises(ValueError, match=f"^policy.get_actions: expected .*{message}"):
            sampler.obtain_samples()
