"""Tests `normalize`: hand-computed values, vectorized environments, and forwarded attributes."""
import copy
import pickle

import gymnasium
import numpy as np
import pytest

from meta_policy_search.envs import (
    MetaEnv,
    MetaPointEnv,
    MetaPointEnvCorner,
    MetaPointEnvMomentum,
    NormalizedEnv,
    normalize,
)
from meta_policy_search.samplers.vectorized_env_executor import MetaBatchedEnvExecutor
from meta_policy_search.utils.gym_import import gym


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
        return self._next(self.observations, [0.0, 0.0]), {"fresh": True}

    def step(self, action):
        self.action = action
        return self._next(self.observations, [0.0, 0.0]), self._next(self.rewards, 0.0), False, True, {"key": "value"}

    def render(self, scale=1):
        return "." * scale

    def close(self):
        self.closed = True

    def log_diagnostics(self, paths, prefix):
        self.diagnostics.append((paths, prefix))

    @staticmethod
    def _next(values, default):
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


class GymnasiumEcho(gymnasium.Env):
    """The same environment with the Gymnasium interface and its boxes."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Box(np.array([-1.0, 0.0]), np.array([3.0, 0.5]), dtype=np.float64)

    def sample_tasks(self, n_tasks):
        return [0] * n_tasks

    def set_task(self, task):
        self.task = task

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
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


def test_normalize_obs_by_hand():
    """Checks the averages for alpha = 1/2, which start at mean 0 and variance 1.

    Observation 2 gives mean 1 and variance 1/2 + 1/2 (2-1)^2 = 1. Observation 5 then gives mean 3 and
    variance 1/2 + 1/2 (5-3)^2 = 5/2. The other entry is always 0: variance 1/2, then 1/4.
    """
    env = normalize(Echo(observations=[[2.0, 0.0], [5.0, 0.0]]), normalize_obs=True, obs_alpha=0.5)
    np.testing.assert_allclose(env.reset()[0], [(2 - 1) / 1, 0.0], rtol=1e-7)
    np.testing.assert_allclose(env.step(np.zeros(2))[0], [(5 - 3) / np.sqrt(2.5), 0.0], rtol=1e-7)


def test_normalize_reward_by_hand():
    """Checks the averages for rewards 4 and 2; the mean is not subtracted.

    Reward 4 gives mean 2 and variance 1/2 + 1/2 (4-2)^2 = 5/2. Reward 2 then gives mean 2 and variance 5/4.
    """
    env = normalize(Echo(rewards=[4.0, 2.0]), normalize_reward=True, reward_alpha=0.5, scale_reward=3.0)
    env.reset()
    assert env.step(np.zeros(2))[1] == pytest.approx(3.0 * 4.0 / np.sqrt(2.5))
    assert env.step(np.zeros(2))[1] == pytest.approx(3.0 * 2.0 / np.sqrt(1.25))


def test_scale_reward():
    env = normalize(Echo(rewards=[4.0]), scale_reward=0.25)
    assert env.step(np.zeros(2))[1] == 1.0


def test_default_averaging_rate_is_a_thousandth():
    env = normalize(Echo(observations=[[1.0, 1.0]], rewards=[1.0]), normalize_obs=True, normalize_reward=True)
    mean = 0.001
    std = np.sqrt(0.999 + 0.001 * (1.0 - mean) ** 2)
    np.testing.assert_allclose(env.reset()[0], (1.0 - mean) / std, rtol=1e-7)
    assert env.step(np.zeros(2))[1] == pytest.approx(1.0 / std)


def test_path_starts_with_initial_averages():
    """Two equal paths in sequence have equal observations."""
    path = [[2.0, -1.0], [5.0, 3.0], [7.0, 0.0]]
    env = normalize(Echo(observations=path * 2, rewards=[4.0, 2.0] * 2), normalize_obs=True, normalize_reward=True,
                    obs_alpha=0.3, reward_alpha=0.3)
    seen = []
    for _ in range(2):
        observations, rewards = [env.reset()[0]], []
        for _ in range(2):
            observation, reward, *_ = env.step(np.zeros(2))
            observations.append(observation)
            rewards.append(reward)
        seen.append((np.array(observations), rewards))
    np.testing.assert_array_equal(seen[0][0], seen[1][0])
    assert seen[0][1] == seen[1][1]
    assert abs(seen[0][1][0]) < 4.0  # normalization has an effect


@pytest.mark.parametrize("make_env", [ClassicEcho, GymnasiumEcho])
def test_old_and_new_interfaces_give_the_same_results(make_env):
    env = normalize(make_env(), normalize_obs=True, obs_alpha=0.5, scale_reward=2.0)
    observation, info = env.reset()
    np.testing.assert_allclose(observation, [2.0 / np.sqrt(2.5), 0.0], rtol=1e-7)
    assert info == {}
    observation, reward, terminated, truncated, _ = env.step(np.zeros(2))
    np.testing.assert_allclose(observation, [-1.0 / np.sqrt(1.75), 2.0 / np.sqrt(2.25)], rtol=1e-7)
    assert (reward, terminated, truncated) == (8.0, False, True)


def test_normalized_observation_space_is_unbounded():
    env = normalize(MetaPointEnvCorner(), normalize_obs=True)
    assert env.observation_space.shape == (2,)
    assert np.isinf(env.observation_space.high).all()
    assert env.observation_space.contains(env.reset(seed=0)[0])


def test_observation_of_another_shape_is_refused():
    env = normalize(Echo(observations=[[1.0]]), normalize_obs=True)
    with pytest.raises(ValueError, match=r"observation: expected shape \(2,\) \(observation_space\), got \(1,\)"):
        env.reset()


# Vectorized environments

SETTINGS = [
    {},
    {"normalize_obs": True, "obs_alpha": 0.1},
    {"normalize_reward": True, "reward_alpha": 0.1, "scale_reward": 3.0},
    {"normalize_obs": True, "normalize_reward": True, "normalization_scale": 1.0},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("env_class", [MetaPointEnv, MetaPointEnvCorner, MetaPointEnvMomentum])
def test_vectorized_steps_equal_single_steps_bit_for_bit(env_class, settings):
    """Five environments that are stepped in changing groups and reset at different times equal single environments."""
    n = 5
    singles = [normalize(env_class(), **settings) for _ in range(n)]
    batched = singles[0].make_batched(n)
    assert batched.action_space == singles[0].action_space
    assert batched.observation_space == singles[0].observation_space
    tasks = singles[0].sample_tasks(n, rng=np.random.default_rng(0))
    batched.set_tasks(tasks)
    np.testing.assert_array_equal(batched.get_tasks(), tasks)
    np.testing.assert_array_equal(batched.sample_tasks(n, np.random.default_rng(0)), tasks)
    for env, task in zip(singles, tasks, strict=True):
        env.set_task(task)

    def reset_all(rows, seed):
        expected = [singles[row].reset(seed=int(seed + row))[0] for row in rows]
        np.testing.assert_array_equal(
            batched.reset(rows, [np.random.default_rng(seed + row) for row in rows]), expected)

    reset_all(np.arange(n), 0)
    rng = np.random.default_rng(4)
    for step in range(40):
        env_ids = None if step % 3 == 0 else rng.permutation(n)[: 1 + step % n]
        rows = np.arange(n) if env_ids is None else env_ids
        actions = rng.normal(scale=5.0, size=(len(rows), 2))
        answer = batched.step(actions, env_ids)
        alone = [singles[row].step(action) for row, action in zip(rows, actions, strict=True)]
        np.testing.assert_array_equal(answer.observations, [one[0] for one in alone])
        np.testing.assert_array_equal(answer.rewards, [one[1] for one in alone])
        np.testing.assert_array_equal(answer.terminated, [one[2] for one in alone])
        if step % 7 == 6:
            reset_all(np.array([3, 1]), step)


def test_wrapper_is_vectorized_if_and_only_if_its_environment_is():
    assert normalize(MetaPointEnvCorner()).make_batched(2) is not None
    assert normalize(normalize(MetaPointEnvCorner())).make_batched(2) is not None
    limited = gym.wrappers.TimeLimit(MetaPointEnvCorner(), 5)  # a vectorized environment would ignore the time limit
    for env in (Echo(), ClassicEcho(), GymnasiumEcho(), limited, normalize(Echo())):
        assert normalize(env).make_batched(2) is None


def test_vectorized_environment_has_the_arguments_of_the_wrapped_environment():
    env = normalize(MetaPointEnvCorner(reward_type="dense"))
    env.set_task((-2.0, -2.0))
    batched = env.make_batched(1)
    batched.set_tasks([(-2.0, -2.0)])
    env.reset(seed=0)
    batched.reset(np.array([0]), [np.random.default_rng(0)])
    assert batched.step(np.ones((1, 2))).rewards[0] == env.step(np.ones(2))[1] < -2.0


def test_copies_of_a_vectorized_environment_have_separate_averages():
    env = normalize(MetaPointEnvCorner(), normalize_obs=True, obs_alpha=0.5)
    one, other = env.make_batched(1), env.make_batched(1)
    starts = [each.reset(np.array([0]), [np.random.default_rng(0)]) for each in (one, other)]
    np.testing.assert_array_equal(*starts)
    one.step(np.full((1, 2), 10.0))
    one.step(np.full((1, 2), 10.0))
    reference = env.make_batched(1)
    reference.reset(np.array([0]), [np.random.default_rng(0)])
    actions = np.full((1, 2), 5.0)
    np.testing.assert_array_equal(other.step(actions).observations, reference.step(actions).observations)


# Wrapper


def test_wrapper_is_a_meta_environment_with_two_names():
    assert normalize is NormalizedEnv and issubclass(NormalizedEnv, MetaEnv)


def test_tasks_are_those_of_the_wrapped_environment():
    env = normalize(MetaPointEnvCorner())
    tasks = env.sample_tasks(10, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(tasks, MetaPointEnvCorner().sample_tasks(10, rng=np.random.default_rng(3)))
    env.set_task(tasks[0])
    np.testing.assert_array_equal(env.wrapped_env.get_task(), tasks[0])
    np.testing.assert_array_equal(env.get_task(), tasks[0])
    assert normalize(Echo()).sample_tasks(3, rng=np.random.default_rng(0)) == [0, 1, 2]  # accepts no rng


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


def test_innermost_environment_of_several_wrappers():
    inner = MetaPointEnvCorner()
    env = normalize(gym.Wrapper(normalize(inner)))
    assert env.unwrapped is inner
    classic = ClassicEcho()
    assert normalize(classic).unwrapped is classic


@pytest.mark.parametrize("wrap", [
    normalize, lambda env: normalize(normalize(env)), lambda env: normalize(gym.Wrapper(env)),
])
def test_generator_is_passed_to_the_wrapped_environment(wrap):
    inner = MetaPointEnvCorner()
    env = wrap(inner)
    rng = np.random.default_rng(5)
    env.np_random = rng
    assert inner.np_random is rng and env.np_random is rng
    np.testing.assert_array_equal(env.reset()[0], np.random.default_rng(5).uniform(-0.2, 0.2, size=2))


@pytest.mark.parametrize("clone", [copy.deepcopy, copy.copy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("make_env", [MetaPointEnvCorner, ClassicEcho, GymnasiumEcho])
def test_wrapper_can_be_copied(make_env, clone):
    env = normalize(make_env(), scale_reward=2.0)
    task = env.sample_tasks(1)[0]
    env.set_task(task)
    twin = clone(env)
    assert isinstance(twin, NormalizedEnv) and isinstance(twin.wrapped_env, make_env)
    twin.reset()
    expected = 8.0 if make_env is not MetaPointEnvCorner else 0.0
    assert twin.step(np.zeros(2))[1] == expected


def test_copy_during_a_path_continues_identically_and_independently():
    """A copy made during a path continues identically, including averages and generator."""
    env = normalize(MetaPointEnvCorner(reward_type="dense"), normalize_obs=True, normalize_reward=True, obs_alpha=0.1)
    env.set_task((2.0, -2.0))
    env.reset(seed=0)
    env.step(np.full(2, 3.0))
    twin = copy.deepcopy(env)
    ours = [env.step(np.full(2, 3.0)) for _ in range(3)]
    theirs = [twin.step(np.full(2, 3.0)) for _ in range(3)]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        assert one[1:] == other[1:]
    np.testing.assert_array_equal(env.reset()[0], twin.reset()[0])


@pytest.mark.parametrize("arguments, error, complaint", [
    ({"scale_reward": 0.0}, ValueError, "scale_reward: expected a finite number above 0, got 0.0"),
    ({"scale_reward": "1"}, TypeError, "scale_reward: expected a finite number above 0, got '1'"),
    ({"normalization_scale": -1.0}, ValueError, "normalization_scale: expected a finite number above 0, got -1.0"),
    ({"obs_alpha": 0.0}, ValueError, r"obs_alpha: expected a number in \(0, 1\), got 0.0"),
    ({"obs_alpha": 1.0}, ValueError, r"obs_alpha: expected a number in \(0, 1\), got 1.0"),
    ({"reward_alpha": -0.1}, ValueError, r"reward_alpha: expected a number in \(0, 1\), got -0.1"),
    ({"reward_alpha": np.nan}, ValueError, r"reward_alpha: expected a number in \(0, 1\), got nan"),
    ({"normalize_obs": "yes"}, TypeError, "normalize_obs: expected True or False, got 'yes'"),
    ({"normalize_reward": 2}, TypeError, "normalize_reward: expected True or False, got 2"),
])
def test_invalid_arguments_are_refused(arguments, error, complaint):
    with pytest.raises(error, match=complaint):
        normalize(Echo(), **arguments)


def test_environments_that_cannot_be_wrapped_are_refused():
    with pytest.raises(TypeError, match="env: expected a meta-environment .* CartPoleEnv without sample_tasks"):
        normalize(gymnasium.make("CartPole-v1").unwrapped)
    unbounded = Echo()
    unbounded.action_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    with pytest.raises(ValueError, match="env: expected an action box with finite bounds"):
        normalize(unbounded)
    with pytest.raises(ValueError, match="normalize_obs: expected an environment with a Box observation space"):
        normalize(Coins(), normalize_obs=True)
