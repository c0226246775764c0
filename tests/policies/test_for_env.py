"""Sizes come from the environment, the number of tasks from the policy, adaptation steps from the algorithm."""
import pytest

import meta_policy_search as mps
from meta_policy_search.np import policies as np_policies

BOX, DISCRETE = mps.MetaPointEnvCorner(), mps.MetaBernoulliBanditEnv(num_arms=3)


@pytest.mark.parametrize("cls, env, arguments", [
    (mps.MetaGaussianMLPPolicy, BOX, {"meta_batch_size": 3}),
    (mps.MetaCategoricalMLPPolicy, DISCRETE, {"meta_batch_size": 3}),
    (mps.GaussianMLPPolicy, BOX, {}),
    (mps.CategoricalMLPPolicy, DISCRETE, {}),
    (np_policies.GaussianMLPPolicy, BOX, {}),
    (np_policies.CategoricalMLPPolicy, mps.EnvSpec.of(DISCRETE), {}),
    (np_policies.DeterministicMLPPolicy, BOX, {}),
])
def test_policy_for_env_has_the_sizes_of_the_environment(cls, env, arguments):
    policy = cls.for_env(env, hidden_sizes=(5,), **arguments)
    spec = mps.EnvSpec.of(env)
    assert (policy.obs_dim, policy.action_dim, policy.hidden_sizes) == (spec.obs_dim, spec.action_dim, (5,))
    assert getattr(policy, "meta_batch_size", 3) == 3


@pytest.mark.parametrize("make, error, message", [
    (lambda: mps.MetaGaussianMLPPolicy.for_env(DISCRETE, 2), ValueError, "got a MetaGaussianMLPPolicy, whose"),
    (lambda: np_policies.CategoricalMLPPolicy.for_env(BOX), ValueError, "whose actions are integers"),
    (lambda: mps.MetaGaussianMLPPolicy.for_env(BOX, 2, hidden_size=4), TypeError, "unexpected keyword argument "),
    (lambda: mps.GaussianMLPPolicy.for_env("MetaPointEnvCorner"), TypeError, "expected a space with a shape"),
])
def test_mismatched_environments_are_refused(make, error, message):
    with pytest.raises(error) as raised:
        make()
    assert message in str(raised.value)
