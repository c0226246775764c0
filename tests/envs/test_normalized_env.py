"""Tests `normalize`: hand-computed values, vectorized environments, and forwarded attributes."""
import copy
import pickle

import gymnasium
import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search import MetaPointEnvCorner
from meta_policy_search.envs import GymnasiumMetaEnv, MetaEnv, NormalizedEnv, TrialEnv, make_env, normalize
from meta_policy_search.envs.normalized_env import get_averages
from meta_policy_search.samplers.vectorized_env_executor import MetaBatchedEnvExecutor, MetaIterativeEnvExecutor
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.utils import set_seed
from tests.helpers.sampling import make_policy, sampler_of


class Echo(MetaEnv):
    """Returns given observations and rewards and stores the action."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Box(np.array([-1.0, 0.0]), np.array([3.0, 0.5]), dtype=np.float64)
    metadata = {"render_modes": ["ansi"]}
    render_mode = "ansi"
    color = "green"
    closed = False

    def __init__(self, observations=(), rewards=()):
        self.observations, self.rewards = list(observations), list(rewards)
        self.diagnostics = []

    def sample_tasks(self, n_tasks):
        return list(range(n_tasks))

    def set_task(self, task):
        self.task = task

    def get_task(self):
        return self.task

    def reset(self, *, seed=None, options=None):
        self.seed, self.options = seed, options
        return self.take(self.observations, [0.0, 0.0]), {"fresh": True}

    def step(self, action):
        self.action = action
        return self.take(self.observations, [0.0, 0.0]), self.take(self.rewards, 0.0), False, True, {"key": "value"}

    def render(self, scale=1):
        return "." * scale

    def close(self):
        self.closed = True

    def log_diagnostics(self, paths, prefix):
        self.diagnostics.append((paths, prefix))

    @staticmethod
    def take(values, default):
        return np.array(values.pop(0) if values else default)


class ClassicEcho:
    """The same environment with the interface before gym 0.26; not a gym class."""

    observation_space = Echo.observation_space
    action_space = Echo.action_space

    def sample_tasks(self, n_tasks):
        return [0] * n_tasks

    def set_task(self, task):
        self.task = task

    def reset(self):
        return np.array([4.0, 0.0])

    def step(self, action):
        self.action = action
        return np.array([0.0, 4.0]), 4.0, True, {"TimeLimit.truncated": True}


class GymnasiumEcho(ClassicEcho, gymnasium.Env):
    """The same environment with the Gymnasium interface and its boxes."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Box(np.array([-1.0, 0.0]), np.array([3.0, 0.5]), dtype=np.float64)

    def reset(self, *, seed=None, options=None):
        gymnasium.Env.reset(self, seed=seed)
        return np.array([4.0, 0.0]), {}

    def step(self, action):
        self.action = action
        return np.array([0.0, 4.0]), 4.0, False, True, {}


class Coins(Echo):
    """Has three actions and two observations."""

    observation_space = gym.spaces.Discrete(2)
    action_space = gym.spaces.Discrete(3)


# Actions


@pytest.mark.parametrize("action, scaled", [
    ([-10.0, -10.0], [-1.0, 0.0]),
    ([10.0, 10.0], [3.0, 0.5]),
    ([0.0, 5.0], [1.0, 0.375]),
    ([11.0, -1e6], [3.0, 0.0]),  # clipped
])
@pytest.mark.parametrize("make_env", [Echo, ClassicEcho, GymnasiumEcho])
def test_actions_are_mapped_to_the_wrapped_box(make_env, action, scaled):
    env = normalize(make_env())
    env.reset()
    env.step(np.array(action))
    np.testing.assert_allclose(env.wrapped_env.action, scaled, atol=1e-15)
    assert env.wrapped_env.action.dtype == np.float64
    assert env.action_space.low.tolist() == [-10.0, -10.0] and env.action_space.high.tolist() == [10.0, 10.0]


def test_normalization_scale():
    env = normalize(Echo(), normalization_scale=2.0)
    env.step(np.array([1.0, -1.0]))
    np.testing.assert_allclose(env.wrapped_env.action, [2.0, 0.125])
    assert env.action_space.high.tolist() == [2.0, 2.0]


def test_other_action_spaces_are_passed_through():
    env = normalize(Coins())
    assert env.action_space is Coins.action_space
    env.step(2)
    assert env.wrapped_env.action == 2


def test_invalid_actions_are_refused():
    env = normalize(Echo())
    with pytest.raises(ValueError, match=r"action: expected finite numbers of shape \(2,\), got"):
        env.step(np.zeros(3))
    with pytest.raises(ValueError, match=r"action: expected finite numbers of shape \(2,\), got .*inf"):
        env.step(np.array([np.inf, 0.0]))
    batched = normalize(MetaPointEnvCorner()).make_batched(2)
    with pytest.raises(ValueError, match=r"actions: expected shape \(2, 2\), got \(2, 3\)"):
        batched.step(np.zeros((2, 3)))
    with MetaBatchedEnvExecutor(normalize(MetaPointEnvCorner()), 1, 2, 5) as executor:
        executor.reset()
        with pytest.raises(ValueError, match=r"actions: expected finite numbers, got \[inf  0.\] for environment 1"):
            executor.step(np.array([[0.0, 0.0], [np.inf, 0.0]]))


# Observations, rewards


def test_defaults_change_nothing_else():
    env = normalize(Echo(observations=[[1.0, 2.0], [3.0, 4.0]], rewards=[5.0]))
    observation, info = env.reset()
    assert observation.tolist() == [1.0, 2.0] and info == {"fresh": True}
    observation, reward, terminated, truncated, info = env.step(np.zeros(2))
    assert observation.tolist() == [3.0, 4.0]
    assert (reward, terminated, truncated, info) == (5.0, False, True, {"key": "value"})
    assert isinstance(reward, float)
    assert env.observation_space is Echo.observation_space


def test_averages_by_hand():
    """Two paths of two steps and one step, with alpha = 1/2, so that `w = 1 - (1 - 1/2)^2 = 3/4`.

    The observations 4, 0, 8 have mean 4: the mean becomes 3, and with the mean square difference (1 + 9 + 25) / 3, the
    variance 1/4 + 3/4 * 35/3 = 9. The other entry is always 0, which has variance 1/4. The rewards 2, 0, 4 give
    the mean 3/2 and the variance 1/4 + 3/4 * (1/4 + 9/4 + 25/4) / 3 = 39/16, and are divided only by its root.
    """
    env = normalize(Echo(observations=[[9.0, 1.0], [9.0, 1.0]], rewards=[4.0]), scale_reward=3.0, normalize_obs=True,
                    normalize_reward=True, obs_alpha=0.5, reward_alpha=0.5)
    paths = [{"observations": np.array([[4.0, 0.0], [0.0, 0.0]]), "rewards": np.array([6.0, 0.0])},
             {"observations": np.array([[8.0, 0.0]]), "rewards": np.array([12.0])}]
    env.update_averages(paths)
    start, (observation, reward, *_) = env.reset()[0], env.step(np.zeros(2))
    np.testing.assert_allclose([start, observation], [[(9 - 3) / 3, 1 / 0.5]] * 2, rtol=1e-7)  # constant averages
    assert reward == pytest.approx(3.0 * 4.0 / np.sqrt(39 / 16))
    normalized = [{"observations": (path["observations"] - [3.0, 0.0]) / [3.0, 0.5],
                   "rewards": path["rewards"] / np.sqrt(39 / 16)} for path in paths]
    means, before = [env.averages["observations"][0]], env.averages["rewards"][0]
    env.update_averages(normalized)  # the same values as before, now seen with the new averages
    np.testing.assert_allclose(env.averages["observations"][0], means[0] + 0.75 * (np.array([4.0, 0.0]) - means[0]))
    np.testing.assert_allclose(env.averages["rewards"][0], before + 0.75 * (2.0 - before))


@pytest.mark.thorough(but="False-arguments0")
@pytest.mark.parametrize("arguments", [{"executor": MetaIterativeEnvExecutor}, {}, {"parallel": True}])
@pytest.mark.parametrize("trials", [False, True])
def test_samplers_update_the_averages_after_each_call(arguments, trials):
    """Paths and averages do not depend on executor and number of copies; the state in a deep copy is separate."""
    def sampled(**arguments):
        env = normalize(MetaPointEnvCorner(reward_type="dense"), normalize_obs=True, normalize_reward=True,
                        obs_alpha=0.1, reward_alpha=0.1)
        wrapped, length = (TrialEnv(env, 2, 3), 6) if trials else (env, 5)
        set_seed(3)
        policy = make_policy(wrapped, 2)
        seen = []
        with sampler_of(wrapped, policy, rollouts_per_meta_task=2, meta_batch_size=2, max_path_length=length,
                        **arguments) as sampler:
            for _ in range(3):
                paths = sampler.obtain_samples()
                seen += [path[key] for task in paths.values() for path in task for key in ("observations", "rewards")]
                seen += [values for pair in env.averages.values() for values in pair]
        return seen

    expected = sampled(envs_per_task=1)
    for one, other in zip(sampled(**arguments), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.abs(expected[-4]).max() > 1e-3  # the means of the observations have moved


def test_observation_of_another_shape_is_refused():
    env = normalize(Echo(observations=[[1.0]]), normalize_obs=True)
    with pytest.raises(ValueError, match=r"observation: expected shape \(2,\) \(observation_space\), got \(1,\)"):
        env.reset()


# Tasks in observations


@pytest.mark.parametrize("name", ["MetaPointEnvCorner", "HalfCheetahRandDirecEnv", "HalfCheetahRandVelEnv"])
def test_observations_end_with_the_task(name):
    plain, env = make_env(name), normalize(make_env(name), observe_task=True)
    for task in env.sample_tasks(3, np.random.default_rng(1)):
        env.set_task(task)
        numbers = np.ravel(task)
        for observation in (env.reset(seed=1)[0], env.step(env.action_space.low)[0]):
            np.testing.assert_array_equal(observation[-len(numbers):], numbers)
            assert env.observation_space.contains(observation)
        batched = env.make_batched(1)
        batched.set_tasks([task])
        start = batched.reset(np.arange(1), [np.random.default_rng(1)])
        np.testing.assert_array_equal(start, [env.reset(seed=1)[0]])
        action = env.action_space.low
        np.testing.assert_array_equal(batched.step([action]).observations, [env.step(action)[0]])
    assert env.observation_space.shape[0] == plain.observation_space.shape[0] + len(numbers)


def test_tasks_that_are_not_numbers_cannot_be_observed():
    with pytest.raises(TypeError, match="observe_task: expected an environment with numeric tasks"):
        normalize(GymnasiumMetaEnv("CartPole-v1", lambda rng: {"mode": "euler"}, print), observe_task=True)
    with pytest.raises(TypeError, match=r"numeric tasks, got the task \('reach', \(0.1, 0.2\)\)"):  # as in Meta-World
        normalize(GymnasiumMetaEnv("CartPole-v1", lambda rng: ("reach", (0.1, 0.2)), print), observe_task=True)
    with pytest.raises(ValueError, match="observe_task: expected an environment with vector observations"):
        normalize(Coins(), observe_task=True)


def test_an_empty_task_adds_no_numbers():
    env = normalize(make_env("MetaPointEnvOrigin"), observe_task=True)
    np.testing.assert_array_equal(env.reset(seed=1)[0], make_env("MetaPointEnvOrigin").reset(seed=1)[0])
    batched = env.make_batched(2)
    assert batched.reset(np.arange(2), [np.random.default_rng(e) for e in range(2)]).shape == (2, 2)


# Wrapper


def test_other_attributes_are_forwarded_to_the_wrapped_environment():
    inner = Echo()
    env = normalize(inner)
    assert env.wrapped_env is inner and env.unwrapped is inner
    assert env.color == "green"
    assert env.render(scale=3) == "..." and env.metadata == Echo.metadata and env.render_mode == "ansi"
    env.close()
    assert inner.closed
    env.log_diagnostics(["path"], "Step_0-")
    assert inner.diagnostics == [(["path"], "Step_0-")]
    normalize(ClassicEcho()).log_diagnostics([], "")  # this one has none
    env.reset(seed=3, options={"far": True})
    assert (inner.seed, inner.options) == (3, {"far": True})
    with pytest.raises(AttributeError, match="'Echo' object has no attribute 'flavor'"):
        env.flavor  # noqa: B018
    assert str(env) == "NormalizedEnv(env=Echo())"


@pytest.mark.parametrize("clone", [copy.deepcopy, copy.copy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("make_env", [MetaPointEnvCorner, ClassicEcho, GymnasiumEcho])
def test_wrapper_can_be_copied(make_env, clone):
    env = normalize(make_env(), scale_reward=2.0, normalize_obs=True)
    env.averages["observations"] = np.ones(2), np.ones(2)
    task = env.sample_tasks(1)[0]
    env.set_task(task)
    twin = clone(env)
    assert isinstance(twin, NormalizedEnv) and isinstance(twin.wrapped_env, make_env)
    np.testing.assert_array_equal(twin.reset(seed=1)[0] if make_env is not ClassicEcho else twin.reset()[0],
                                  env.reset(seed=1)[0] if make_env is not ClassicEcho else env.reset()[0])
    assert twin.step(np.zeros(2))[1] == (8.0 if make_env is not MetaPointEnvCorner else 0.0)


@pytest.mark.parametrize("arguments, error, complaint", [
    ({"scale_reward": 0.0}, ValueError, "scale_reward: expected a finite number above 0, got 0.0"),
    ({"obs_alpha": 0.0}, ValueError, r"obs_alpha: expected a number in \(0, 1\), got 0.0"),
    ({"reward_alpha": -0.1}, ValueError, r"reward_alpha: expected a number in \(0, 1\), got -0.1"),
    ({"normalize_obs": "yes"}, TypeError, "normalize_obs: expected True or False, got 'yes'"),
    ({"normalize_reward": 2}, TypeError, "normalize_reward: expected True or False, got 2"),
])
def test_invalid_arguments_are_refused(arguments, error, complaint):
    with pytest.raises(error, match=complaint):
        normalize(Echo(), **arguments)


def test_environments_that_cannot_be_wrapped_are_refused():
    with pytest.raises(TypeError, match="env: expected a meta-environment .* got .*CartPoleEnv"):
        normalize(gymnasium.make("CartPole-v1").unwrapped)
    unbounded = Echo()
    unbounded.action_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    with pytest.raises(ValueError, match="env: expected an action box with finite bounds"):
        normalize(unbounded)
    with pytest.raises(ValueError, match="normalize_obs: expected an environment with a Box observation space"):
        normalize(Coins(), normalize_obs=True)


@pytest.mark.parametrize("settings", [{"normalize_obs": True}, {"normalize_reward": True}, {"scale_reward": 2.0}])
def test_an_environment_with_averages_is_not_normalized_again(settings):
    inner = normalize(Echo(), normalize_reward=True)
    with pytest.raises(ValueError, match="env: expected an environment that normalizes neither"):
        normalize(inner, **settings)
    assert get_averages(normalize(inner, normalization_scale=2.0)) == inner.averages


@pytest.mark.parametrize("use", [lambda env: normalize(env, observe_task=True), lambda env: mps.check_env(env, 3)])
def test_checks_do_not_change_the_random_numbers_of_the_environment(use):
    class Endless(GymnasiumEcho):  # Gymnasium refuses environments that truncate their first step
        def step(self, action):
            return np.array([0.0, 4.0]), 4.0, False, False, {}

    env = Endless()
    env.reset(seed=3)
    rng = env.np_random
    use(env)
    assert env.np_random is rng


def test_actions_have_the_type_of_the_action_space():
    env = Echo()
    env.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    env.set_task(0)
    normalize(env).step(np.array([1.0, 1e9]))
    assert env.action.dtype == np.float32 and env.action_space.contains(env.action)
    np.testing.assert_allclose(env.action, [0.1, 1.0])
