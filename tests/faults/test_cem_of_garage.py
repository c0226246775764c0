"""Tests the criterion of garage's CEM test on the mean return of the last epoch instead of the best return."""
import pytest

from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs.env_spec import EnvSpec
from meta_policy_search.local_runner import LocalRunner
from meta_policy_search.np.algos import CEM
from meta_policy_search.np.policies import CategoricalMLPPolicy
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.utils import set_seed


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_cem_learns_to_balance_a_pole_in_ten_epochs_of_ten_candidates(seed):
    set_seed(seed)
    env = gym.make("CartPole-v1", disable_env_checker=True)
    policy = CategoricalMLPPolicy(4, 2, (32, 32))
    algo = CEM(EnvSpec.of(env), policy, LinearFeatureBaseline(), n_samples=10, best_frac=0.1, max_path_length=100)
    runner = LocalRunner()
    runner.setup(algo, env)
    average = runner.train(n_epochs=10, batch_size=400)
    assert algo.best_return >= average > 40.0
