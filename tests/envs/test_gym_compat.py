"""Tests the adapter for all generations of the gym interface."""
import gymnasium
import numpy as np
import pytest

from meta_policy_search.envs import MetaEnv, MetaPointEnvCorner, NormalizedEnv, normalize
from meta_policy_search.envs.gym_compat import (
    check_meta_env,
    make_batched,
    reset_env,
    reset_with_info,
    sample_tasks,
    set_rng,
    step_env,
)
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.utils import set_seed


class Scripted:
    """An environment without a gym class that returns fixed results."""

    def __init__(self, answer):
        self.answer = answer

    def reset(self):
        return self.answer

    def step(self, action):
        return self.answer


class OldMetaEnv:
    """A classic meta-environment that draws from the global numpy.random and accepts no generators."""

    def sample_tasks(self, n_tasks):
        return np.random.uniform(size=(n_tasks, 2))

    def set_task(self, task):
        self.task = task


class GymMetaEnv(MetaEnv):
    """Draws tasks from gym's generator and accepts no generator argument."""

    def sample_tasks(self, n_tasks):
        return list(self.np_random.uniform(size=n_tasks))

    def set_task(self, task):
        self.task = task

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(size=2), {"options": options}


class GymnasiumEnv(gymnasium.Env):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(size=2), {}


# Reset and step


def test_reset_accepts_old_and_new_results():
    observation = np.array([1.0, 2.0])
    assert reset_env(Scripted(observation)) is observation
    assert reset_env(Scripted((observation, {"from": "new"}))) is observation
    assert reset_with_info(Scripted((observation, {"from": "new"}))) == (observation, {"from": "new"})
    assert reset_with_info(Scripted(observation)) == (observation, {})
    pair = (1.0, 2.0)  # a classic observation that is a pair
    assert reset_env(Scripted(pair)) is pair


def test_reset_passes_arguments_that_are_not_none():
    env = GymMetaEnv()
    first, info = reset_with_info(env, seed=3, options={"far": True})
    assert info == {"options": {"far": True}}
    np.testing.assert_array_equal(reset_with_info(env, seed=3, options=None)[0], first)
    with pytest.raises(TypeError, match="seed"):
        reset_with_info(Scripted(np.zeros(2)), seed=3)  # a classic environment does not accept arguments


@pytest.mark.parametrize("answer, expected", [
    (("obs", 1.5, True, False, {"k": 1}), ("obs", 1.5, True, False, {"k": 1})),
    (("obs", 1.5, False, True, {}), ("obs", 1.5, False, True, {})),
    (("obs", 1.5, True, True, {}), ("obs", 1.5, True, True, {})),
    (("obs", 1.5, False, {"k": 1}), ("obs", 1.5, False, False, {"k": 1})),
    (("obs", 1.5, True, {}), ("obs", 1.5, True, False, {})),
    (("obs", 1.5, True, {"TimeLimit.truncated": True}), ("obs", 1.5, False, True, {"TimeLimit.truncated": True})),
    (("obs", 1.5, True, {"TimeLimit.truncated": False}), ("obs", 1.5, True, False, {"TimeLimit.truncated": False})),
    (("obs", 1.5, False, {"TimeLimit.truncated": True}), ("obs", 1.5, False, False, {"TimeLimit.truncated": True})),
    (["obs", np.float32(1.5), np.bool_(True), {}], ("obs", 1.5, True, False, {})),
    (("obs", np.array([1.5]), False, {}), ("obs", 1.5, False, False, {})),
    (("obs", np.array([[2]]), False, np.bool_(True), {}), ("obs", 2.0, False, True, {})),
])
def test_step_accepts_four_and_five_values(answer, expected):
    result = step_env(Scripted(answer), None)
    assert result == expected
    assert [type(part) for part in result[1:4]] == [float, bool, bool]


@pytest.mark.parametrize("answer, complaint", [
    (("obs", 1.0, False), "step of Scripted: expected .* got \\('obs', 1.0, False\\)"),
    (None, "step of Scripted: expected .* got None"),
    (("obs", None, False, {}), "step of Scripted: expected a single number as reward, got None"),
    (("obs", np.zeros(2), False, {}), r"step of Scripted: expected a single number as reward, got array\(\[0., 0.\]\)"),
    (("obs", "high", False, {}), "step of Scripted: expected a single number as reward, got 'high'"),
])
def test_step_names_the_invalid_result(answer, complaint):
    with pytest.raises(ValueError, match=complaint):
        step_env(Scripted(answer), None)


def test_time_limit_of_gym_truncates():
    env = gymnasium.make("CartPole-v1", max_episode_steps=3)
    reset_env(env)
    answers = [step_env(env, action) for action in (0, 1, 0)]
    assert [answer[2:4] for answer in answers] == [(False, False), (False, False), (False, True)]


# Generators


@pytest.mark.parametrize("make_env", [
    GymMetaEnv, lambda: gym.Wrapper(GymMetaEnv()), GymnasiumEnv, lambda: gymnasium.Wrapper(GymnasiumEnv()),
    lambda: normalize(MetaPointEnvCorner()), lambda: normalize(gym.Wrapper(MetaPointEnvCorner())),
])
def test_set_rng_reaches_the_innermost_environment(make_env):
    """Two environments with equal generators have equal start states and draw from the given generators."""
    starts = []
    for _ in range(2):
        env, rng = make_env(), np.random.default_rng(5)
        set_rng(env, rng)
        assert env.np_random is rng
        starts.append(reset_env(env))
    np.testing.assert_array_equal(*starts)
    assert not np.array_equal(reset_env(env), starts[0])


def test_set_rng_passes_a_random_state_to_a_legacy_environment():
    env = Scripted(None)
    env.np_random = np.random.RandomState(0)
    rng = np.random.default_rng(5)
    set_rng(env, rng)
    expected = np.random.RandomState(np.random.default_rng(5).bit_generator).randn(3)
    np.testing.assert_array_equal(env.np_random.randn(3), expected)
    assert rng.bit_generator.state != np.random.default_rng(5).bit_generator.state  # one stream, not a copy


def test_set_rng_leaves_an_environment_without_a_generator_unchanged():
    env = OldMetaEnv()
    set_rng(env, np.random.default_rng(0))
    assert vars(env) == {}


# Tasks


def test_sample_tasks_passes_the_generator_if_accepted():
    env = MetaPointEnvCorner()
    own = np.random.default_rng(0)
    env.np_random = own
    tasks = sample_tasks(env, 20, np.random.default_rng(5))
    np.testing.assert_array_equal(tasks, env.sample_tasks(20, rng=np.random.default_rng(5)))
    assert env.np_random is own


def test_sample_tasks_sets_the_generator_if_not_accepted():
    expected = np.random.default_rng(5).uniform(size=3)
    np.testing.assert_array_equal(sample_tasks(GymMetaEnv(), 3, np.random.default_rng(5)), expected)


def test_sample_tasks_without_a_generator_uses_that_of_the_environment():
    env = GymMetaEnv()
    env.np_random = np.random.default_rng(5)
    np.testing.assert_array_equal(sample_tasks(env, 3), np.random.default_rng(5).uniform(size=3))


def test_sample_tasks_of_a_classic_environment():
    np.random.seed(0)
    tasks = sample_tasks(OldMetaEnv(), 3, np.random.default_rng(5))
    np.random.seed(0)
    np.testing.assert_array_equal(tasks, np.random.uniform(size=(3, 2)))
    assert isinstance(tasks, list)  # converted from an array


@pytest.mark.parametrize("tasks, complaint", [
    ([1], "sample_tasks of OldMetaEnv: expected a list of 2 tasks, got \\[1\\]"),
    (None, "sample_tasks of OldMetaEnv: expected a list of 2 tasks, got None"),
    (7, "sample_tasks of OldMetaEnv: expected a list of 2 tasks, got 7"),
])
def test_sample_tasks_validates_the_result(tasks, complaint):
    env = OldMetaEnv()
    env.sample_tasks = lambda n_tasks: tasks
    with pytest.raises(ValueError, match=complaint):
        sample_tasks(env, 2)


def test_sample_tasks_requires_a_positive_number():
    with pytest.raises(ValueError, match="n_tasks: expected an integer of at least 1, got 0"):
        sample_tasks(OldMetaEnv(), 0)


def test_check_meta_env_accepts_environments_with_tasks():
    for env in (OldMetaEnv(), GymMetaEnv(), MetaPointEnvCorner(), gym.Wrapper(MetaPointEnvCorner())):
        check_meta_env(env)


@pytest.mark.parametrize("env, complaint", [
    (GymnasiumEnv(), "GymnasiumEnv without sample_tasks and set_task"),
    (MetaEnv(), "MetaEnv without sample_tasks and set_task"),
    (None, "NoneType without sample_tasks and set_task"),
    (type("HalfDone", (MetaEnv,), {"sample_tasks": lambda self, n_tasks: []})(), "HalfDone without set_task"),
    (gym.Wrapper(MetaEnv()), "Wrapper without sample_tasks and set_task"),
    (MetaPointEnvCorner, "got the class MetaPointEnvCorner; create an instance first"),
])
def test_check_meta_env_names_the_missing_method(env, complaint):
    with pytest.raises(TypeError, match=f"task_env: expected .*{complaint}"):
        check_meta_env(env, "task_env")


# Vectorized environments


class Slippery(MetaPointEnvCorner):
    """A user-defined environment that overrides `step` of the single environment only."""

    def step(self, action):
        return super().step(0.5 * np.asarray(action))


class SlipperyBoth(Slippery):
    """The same environment with a vectorized environment declared for its `step`."""

    @replaces("step")
    def make_batched(self, num_envs):
        return super().make_batched(num_envs)


class Halving(NormalizedEnv):
    """A wrapper that overrides `step`."""

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return (observation, 0.5 * reward, *rest)


def patched(name, env, inner=None):
    """Replaces a method on the object `env` or on the environment inside it; returns `env`."""
    target = env if inner is None else getattr(env, inner)
    original = getattr(target, name)
    setattr(target, name, lambda *args, **kwargs: original(*args, **kwargs))
    return env


def test_vectorized_environment_has_the_settings_of_the_environment():
    env = MetaPointEnvCorner(reward_type="dense")
    batched = make_batched(env, 3)
    assert batched.num_envs == 3
    batched.reset(np.arange(3), [np.random.default_rng(i) for i in range(3)])
    assert (batched.step(np.zeros((3, 2))).rewards < -2.0).all()  # minus the distance; the default is 0
    assert make_batched(normalize(env), 3).num_envs == 3
    assert make_batched(normalize(normalize(env)), 3).num_envs == 3
    assert make_batched(SlipperyBoth(), 3).num_envs == 3
    renamed = type("Renamed", (MetaPointEnvCorner,), {"sample_tasks": lambda self, n_tasks: [(2.0, 2.0)] * n_tasks})
    assert make_batched(renamed(), 3).num_envs == 3  # different task distribution, equal steps


@pytest.mark.parametrize("env", [
    OldMetaEnv(), GymMetaEnv(), Slippery(), gym.Wrapper(MetaPointEnvCorner()), normalize(Slippery()),
    normalize(gym.wrappers.TimeLimit(MetaPointEnvCorner(), 5)), Halving(MetaPointEnvCorner()),
    normalize(Halving(MetaPointEnvCorner())),
    *(patched(name, MetaPointEnvCorner()) for name in ("reset", "step", "set_task")),
    *(patched(name, normalize(MetaPointEnvCorner())) for name in ("reset", "step", "set_task")),
    *(patched(name, normalize(MetaPointEnvCorner()), "wrapped_env") for name in ("reset", "step", "set_task")),
])
def test_no_vectorized_environment_if_results_would_differ(env):
    assert make_batched(env, 3) is None


@pytest.mark.parametrize("name", ["reset", "step", "set_task"])
def test_no_vectorized_environment_while_the_class_is_patched(name, monkeypatch):
    original = getattr(MetaPointEnvCorner, name)
    monkeypatch.setattr(MetaPointEnvCorner, name, lambda self, *args, **kwargs: original(self, *args, **kwargs))
    assert make_batched(MetaPointEnvCorner(), 3) is None and make_batched(normalize(MetaPointEnvCorner()), 3) is None
    monkeypatch.undo()
    assert make_batched(MetaPointEnvCorner(), 3) is not None


def test_vectorized_environment_declares_the_methods_it_replaces():
    undeclared = type("Undeclared", (MetaPointEnvCorner,), {"make_batched": lambda self, num_envs: None})
    with pytest.raises(TypeError, match="Undeclared.make_batched: expected a method decorated with @replaces"):
        make_batched(undeclared(), 3)


def twice_the_reward(step):
    def step_env(*arguments):
        observation, reward, *rest = step(*arguments)
        return (observation, 2.0 * reward, *rest)

    return step_env


def start_of(env):
    """Returns observations and rewards of the first steps of a path, as collected by a sampler."""
    policy = MetaGaussianMLPPolicy(2, 2, 2, hidden_sizes=(4,))
    set_seed(1)
    with MetaSampler(env, policy, 3, 2, 4) as sampler:
        path = sampler.obtain_samples()[1][2]
    return path["observations"], path["rewards"]


def patched_step():
    env = MetaPointEnvCorner("dense")
    env.step = twice_the_reward(env.step)
    return env


def patched_wrapper():
    env = normalize(MetaPointEnvCorner("dense"))
    env.step = twice_the_reward(env.step)
    return env


class Twice(MetaPointEnvCorner):
    step = twice_the_reward(MetaPointEnvCorner.step)


@pytest.mark.parametrize("make_env, plain", [
    (patched_step, MetaPointEnvCorner), (lambda: normalize(patched_step()), lambda t: normalize(MetaPointEnvCorner(t))),
    (patched_wrapper, lambda t: normalize(MetaPointEnvCorner(t))), (lambda: Twice("dense"), MetaPointEnvCorner),
])
def test_environment_with_overridden_step_is_sampled_with_it(make_env, plain):
    np.testing.assert_array_equal(start_of(make_env())[1], 2.0 * start_of(plain("dense"))[1])


def test_environment_of_a_patched_class_is_sampled_with_the_patch(monkeypatch):
    expected = start_of(MetaPointEnvCorner("dense"))[1]
    monkeypatch.setattr(MetaPointEnvCorner, "step", twice_the_reward(MetaPointEnvCorner.step))
    np.testing.assert_array_equal(start_of(MetaPointEnvCorner("dense"))[1], 2.0 * expected)


def test_environment_with_overridden_reset_is_sampled_with_it():
    env = MetaPointEnvCorner()
    env.reset = lambda: (np.array([7.0, 7.0]), {})
    np.testing.assert_array_equal(start_of(env)[0][0], [7.0, 7.0])
