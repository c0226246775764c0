"""Tests exploration noise of actions, in sampled paths and in direct calls."""
import numpy as np
import pytest

from meta_policy_search import Actor, EnvSpec, GaussianNoisePolicy, MetaPointEnv, OrnsteinUhlenbeckPolicy
from meta_policy_search.np.policies import CategoricalMLPPolicy, DeterministicMLPPolicy, GaussianMLPPolicy, Policy
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym

O = A = 2
WIDE = EnvSpec(gym.spaces.Box(-np.inf, np.inf, (O,)), gym.spaces.Box(-100.0, 100.0, (A,)))
KINDS = [GaussianNoisePolicy, OrnsteinUhlenbeckPolicy]


def path_noise(explorer, num_steps, seed=0):
    actor = explorer.make_actors(explorer.get_flat_params()[None])
    noise = np.empty((num_steps, actor.noise_dim), np.float32)
    actor.draw_noise(np.random.default_rng(seed), noise)
    return noise


def test_gaussian_noise_is_independent_with_the_given_std():
    noise = path_noise(GaussianNoisePolicy(WIDE, DeterministicMLPPolicy(O, A), sigma=0.3), 20000)
    np.testing.assert_allclose(noise.std(axis=0), 0.3, rtol=0.02)
    assert abs(np.corrcoef(noise[:-1, 0], noise[1:, 0])[0, 1]) < 0.03
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.03


def test_ornstein_uhlenbeck_noise_follows_its_equation():
    explorer = OrnsteinUhlenbeckPolicy(WIDE, DeterministicMLPPolicy(O, A), mu=1.0, sigma=0.4, theta=0.2, dt=0.5, x0=3.0)
    noise = path_noise(explorer, 6)
    normal = np.random.default_rng(0).standard_normal((6, A), dtype=np.float32)
    x = np.full(A, 3.0)
    for t in range(6):
        x = x + 0.2 * (1.0 - x) * 0.5 + 0.4 * np.sqrt(0.5) * normal[t]
        np.testing.assert_allclose(noise[t], x, rtol=1e-5)


def test_ornstein_uhlenbeck_noise_has_the_documented_std_and_correlation():
    noise = path_noise(OrnsteinUhlenbeckPolicy(WIDE, DeterministicMLPPolicy(O, A)), 100000)[100:]
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(noise.std(axis=0), 0.38, rtol=0.03)
    assert np.corrcoef(noise[:-1, 0], noise[1:, 0])[0, 1] == pytest.approx(0.85, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_direct_calls_have_the_noise_of_a_sampled_path(kind):
    policy = DeterministicMLPPolicy(O, A)
    explorer, observations = kind(WIDE, policy), np.random.default_rng(3).normal(size=(7, O))
    for _ in range(2):  # `reset` starts a new path
        explorer.reset()
        explorer._rng = np.random.default_rng(4)
        first = [explorer.get_action(observation)[0] for observation in observations[:3]]
        actions = np.concatenate([first, explorer.get_actions(observations[3:])[0]])
        means, _ = policy.get_actions(observations)
        np.testing.assert_allclose(actions - means, path_noise(explorer, 7, seed=4), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_actions_stay_within_the_bounds(kind):
    spec = EnvSpec.of(MetaPointEnv())  # within 0.1
    explorer = kind(spec, DeterministicMLPPolicy(O, A), sigma=1.0)
    actions, _ = explorer.get_actions(np.zeros((100, O)))
    assert np.abs(actions).max() == np.float32(0.1) and np.abs(actions).min() < 0.1


def test_parameters_are_forwarded_and_gaussian_policies_act_by_their_mean():
    policy = GaussianMLPPolicy(O, A, (), init_std=5.0)
    explorer = GaussianNoisePolicy(WIDE, policy, sigma=0.0)
    policy.set_flat_params(np.arange(8.0))
    np.testing.assert_array_equal(explorer.get_flat_params(), np.arange(8.0))
    action, info = explorer.get_action(np.ones(O))
    np.testing.assert_array_equal(action, info["mean"])
    explorer.set_flat_params(np.zeros(8))
    np.testing.assert_array_equal(policy.get_flat_params(), np.zeros(8))


@pytest.mark.parametrize("build, error, message", [
    (lambda: GaussianNoisePolicy(WIDE, DeterministicMLPPolicy(O, A), sigma=-0.1), ValueError, "sigma: expected"),
    (lambda: OrnsteinUhlenbeckPolicy(WIDE, DeterministicMLPPolicy(O, A), dt=0.0), ValueError, "dt: expected"),
    (lambda: GaussianNoisePolicy(WIDE, DeterministicMLPPolicy(O, A + 1)), ValueError, r"policy.action_dim: expected"),
    (lambda: GaussianNoisePolicy(EnvSpec(WIDE.observation_space, gym.spaces.Discrete(A)), CategoricalMLPPolicy(O, A)),
     ValueError, "env_spec: expected a box as action space"),
])
def test_arguments_are_checked(build, error, message):
    with pytest.raises(error, match=message):
        build()


class UniformActor(Actor):
    """Acts with uniform noise around 3."""

    noise_dim, uniform_noise, can_divide = A, True, True

    def act(self, observations, noise):
        return 3.0 + (noise - 0.5), {}


class UniformPolicy(Policy):
    def get_flat_params(self):
        return np.zeros(0, np.float32)

    def set_flat_params(self, flat_params):
        pass

    @replaces("get_action", "get_actions")
    def make_actors(self, flat_params):
        return UniformActor()


def test_a_policy_with_uniform_noise_acts_by_its_median():
    action, _ = GaussianNoisePolicy(WIDE, UniformPolicy(O, A), sigma=0.0).get_action(np.zeros(O))
    np.testing.assert_array_equal(action, 3.0)


@pytest.mark.parametrize("policy", [DeterministicMLPPolicy(O, A, ()), GaussianMLPPolicy(O, A, (), init_std=5.0)])
def test_the_deterministic_action_is_that_of_the_other_policy_within_the_bounds(policy):
    explorer, observation = GaussianNoisePolicy(EnvSpec.of(MetaPointEnv()), policy, sigma=1.0), np.ones(O)
    for params, action in ((7.0, 0.1), (0.01, 0.03)):  # three parameters per action
        policy.set_flat_params(np.full(len(policy.get_flat_params()), params))
        np.testing.assert_allclose(explorer.act(observation, deterministic=True), action, rtol=1e-3)
    assert explorer.get_actions(np.zeros((0, O)))[0].shape == (0, A)
