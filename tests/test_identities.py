"""Identities that hold for any input, tested on a whole iteration. Other tests of identities:

- Log-densities, divergences and entropies equal those of scipy: policies/test_*.py
- Returns and generalized advantages equal a slow loop: samplers/test_sample_processor.py
- Hessian-vector products equal dense Hessians: optimizers/test_conjugate_gradient_optimizer.py (a simple function),
  meta_algos/test_trpo_maml.py (the divergence of TRPO-MAML)
- Meta-gradients equal central differences: meta_algos/test_meta_gradients.py
"""
import numpy as np
import pytest

from meta_policy_search import VPGMAML, HalfCheetahRandDirecEnv, MetaBernoulliBanditEnv, MetaPointEnvCorner, normalize
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.policies import MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.sessions import VariableSet
from tests.helpers.trainers import build_trainer

M, P, T, K = 3, 4, 10, 2  # tasks, paths per task, maximum path length, adaptation steps


class EndsEarly(MetaPointEnvCorner):
    """Ends at each step with probability 0.2, so that path lengths and sample counts per task differ."""

    def step(self, action):
        observation, reward, _, truncated, info = super().step(action)
        return observation, reward, bool(self.np_random.random() < 0.2), truncated, info


ENVS = {
    "paths of unequal length": lambda: EndsEarly("dense"),
    "half cheetah": lambda: normalize(HalfCheetahRandDirecEnv()), "discrete actions": MetaBernoulliBanditEnv,
}


class Unoptimized(VPGMAML):
    """Skips the meta-update and keeps the samples of the iteration."""

    def optimize_policy(self, all_samples_data, log=True):
        self.all_samples = all_samples_data

    def evaluate(self, fetches):
        values = self.meta_input_values(self.all_samples)
        return VariableSet(self.policy.get_params()).session().run(fetches, self.optimizer._feed(values))


@pytest.mark.parametrize("make_env", ENVS.values(), ids=ENVS)
def test_each_policy_of_the_adaptation_chain_is_the_sampling_policy(make_env):
    env = make_env()
    policy_class = MetaCategoricalMLPPolicy if is_discrete(env.action_space) else MetaGaussianMLPPolicy
    policy = policy_class.for_env(env, M, hidden_sizes=(16, 16))
    algo = Unoptimized(policy, meta_batch_size=M, num_inner_grad_steps=K)
    chain = [(step.log_prob - step.old_log_prob, algo.mean_kl(step)) for step in algo._chain]
    # given the samples of an iteration, when one graph call computes the chain of policies that sampled them
    build_trainer(algo, (M, P, T), env=env).train()
    # then all likelihood ratios are one (on padding too) and all divergences are zero
    for log_ratio, kl in algo.evaluate(chain):
        np.testing.assert_allclose(log_ratio, np.zeros((M, log_ratio.shape[1])), atol=2e-5)
        assert abs(kl) < 1e-6  # each term is a rounded float32 with an error of up to 6e-8
    # and they differ from one for other policies
    flat = algo.policy.get_flat_params()
    algo.policy.set_flat_params(flat + 0.01 * np.random.default_rng(0).normal(size=flat.shape))
    for log_ratio, kl in algo.evaluate(chain):
        assert np.abs(log_ratio).max() > 1e-3 and kl > 1e-4
