"""Every generation of the gym interface, in one form."""
import gymnasium
import numpy as np
import pytest

from meta_policy_search.envs import BatchableMetaEnv, MetaEnv, MetaPointEnvCorner, normalize
from meta_policy_search.envs.gym_compat import (
    batched_form,
    check_meta_env,
    reset_env,
    reset_with_info,
    sample_tasks,
    set_rng,
    step_env,
)
from meta_policy_search.utils.gym_import import gym


class Scripted:
    """An environment of no particular class that answers what it is told to."""

    def __init__(self, answer):
        self.answer = answer

    def reset(self):
        return self.answer

    def step(self, action):
        return self.answer


class OldMetaEnv:
    """A classic meta-environment that draws from the global numpy.random and knows nothing of generators."""

    def sample_tasks(self, n_tasks):
        return np.random.uniform(size=(n_tasks, 2))

    def set_task(self, task):
        self.task = task


class GymMetaEnv(MetaEnv):
    """Draws tasks from gym's own generator, and does not take one."""

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


def test_reset_takes_both_forms():
    observation = np.array([1.0, 2.0])
    assert reset_env(Scripted(observation)) is observation
    assert reset_env(Scripted((observation, {"from": "new"}))) is observation
    assert reset_with_info(Scripted((observation, {"from": "new"}))) == (observation, {"from": "new"})
    assert reset_with_info(Scripted(observation)) == (observation, {})
    pair = (1.0, 2.0)  # a classic observation that happens to be a pair
    assert reset_env(Scripted(pair)) is pair


def test_reset_passes_on_what_is_not_none():
    env = GymMetaEnv()
    first, info = reset_with_info(env, seed=3, options={"far": True})
    assert info == {"options": {"far": True}}
    np.testing.assert_array_equal(reset_with_info(env, seed=3, options=None)[0], first)
    with pytest.raises(TypeError, match="seed"):
        reset_with_info(Scripted(np.zeros(2)), seed=3)  # a classic environment cannot


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
def test_step_takes_four_and_five(answer, expected):
    result = step_env(Scripted(answer), None)
    assert result == expected
    assert [type(part) for part in result[1:4]] == [float, bool, bool]


@pytest.mark.parametrize("answer, complaint", [
    (("obs", 1.0, False), "step of Scripted: expected .* got 3 values"),
    (None, "step of Scripted: expected .* got NoneType"),
    (("obs", None, False, {}), "step of Scripted: expected one number as reward, got None"),
    (("obs", np.zeros(2), False, {}), r"step of Scripted: expected one number as reward, got array\(\[0., 0.\]\)"),
    (("obs", "high", False, {}), "step of Scripted: expected one number as reward, got 'high'"),
])
def test_step_says_what_is_wrong(answer, complaint):
    with pytest.raises(ValueError, match=complaint):
        step_env(Scripted(answer), None)


def test_a_real_time_limit_truncates():
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
    """Given two environments with equal generators, then they start alike, and draw from what they were given."""
    starts = []
    for _ in range(2):
        env, rng = make_env(), np.random.default_rng(5)
        set_rng(env, rng)
        assert env.np_random is rng
        starts.append(reset_env(env))
    np.testing.assert_array_equal(*starts)
    assert not np.array_equal(reset_env(env), starts[0])


def test_set_rng_hands_a_legacy_environment_what_it_knows():
    env = Scripted(None)
    env.np_random = np.random.RandomState(0)
    rng = np.random.default_rng(5)
    set_rng(env, rng)
    expected = np.random.RandomState(np.random.default_rng(5).bit_generator).randn(3)
    np.testing.assert_array_equal(env.np_random.randn(3), expected)
    assert rng.bit_generator.state != np.random.default_rng(5).bit_generator.state  # one stream, not a copy


def test_set_rng_leaves_an_environment_without_a_generator_as_it_is():
    env = OldMetaEnv()
    set_rng(env, np.random.default_rng(0))
    assert vars(env) == {}


def test_set_rng_wants_a_generator():
    with pytest.raises(TypeError, match="rng: expected a numpy.random.Generator, got 5"):
        set_rng(GymMetaEnv(), 5)


# Tasks


def test_sample_tasks_passes_the_generator_where_it_is_taken():
    env = MetaPointEnvCorner()
    own = np.random.default_rng(0)
    env.np_random = own
    tasks = sample_tasks(env, 20, np.random.default_rng(5))
    np.testing.assert_array_equal(tasks, env.sample_tasks(20, rng=np.random.default_rng(5)))
    assert env.np_random is own


def test_sample_tasks_gives_the_environment_the_generator_where_it_is_not_taken():
    expected = np.random.default_rng(5).uniform(size=3)
    np.testing.assert_array_equal(sample_tasks(GymMetaEnv(), 3, np.random.default_rng(5)), expected)


def test_sample_tasks_without_a_generator_leaves_it_to_the_environment():
    env = GymMetaEnv()
    env.np_random = np.random.default_rng(5)
    np.testing.assert_array_equal(sample_tasks(env, 3), np.random.default_rng(5).uniform(size=3))


def test_sample_tasks_of_a_classic_environment():
    np.random.seed(0)
    tasks = sample_tasks(OldMetaEnv(), 3, np.random.default_rng(5))
    np.random.seed(0)
    np.testing.assert_array_equal(tasks, np.random.uniform(size=(3, 2)))
    assert isinstance(tasks, list)  # from an array


@pytest.mark.parametrize("tasks, complaint", [
    ([1], "sample_tasks of OldMetaEnv: expected a list of 2 tasks, got 1 of them"),
    (None, "sample_tasks of OldMetaEnv: expected a list of 2 tasks, got None"),
    (7, "sample_tasks of OldMetaEnv: expected a list of 2 tasks, got 7"),
])
def test_sample_tasks_checks_what_comes_back(tasks, complaint):
    env = OldMetaEnv()
    env.sample_tasks = lambda n_tasks: tasks
    with pytest.raises(ValueError, match=complaint):
        sample_tasks(env, 2)


def test_sample_tasks_wants_a_positive_number():
    with pytest.raises(ValueError, match="n_tasks: expected an integer of at least 1, got 0"):
        sample_tasks(OldMetaEnv(), 0)


def test_check_meta_env_accepts_what_has_tasks():
    for env in (OldMetaEnv(), GymMetaEnv(), MetaPointEnvCorner(), gym.Wrapper(MetaPointEnvCorner())):
        check_meta_env(env)


@pytest.mark.parametrize("env, complaint", [
    (GymnasiumEnv(), "GymnasiumEnv has no sample_tasks and no set_task"),
    (MetaEnv(), "MetaEnv has no sample_tasks and no set_task"),
    (None, "NoneType has no sample_tasks and no set_task"),
    (type("HalfDone", (MetaEnv,), {"sample_tasks": lambda self, n_tasks: []})(), "HalfDone has no set_task"),
    (gym.Wrapper(MetaEnv()), "Wrapper has no sample_tasks and no set_task"),
    (MetaPointEnvCorner, "got the class MetaPointEnvCorner itself; call it first"),
])
def test_check_meta_env_names_what_is_missing(env, complaint):
    with pytest.raises(TypeError, match=f"task_env: expected .*{complaint}"):
        check_meta_env(env, "task_env")


# Batched form


class Slippery(MetaPointEnvCorner):
    """A user's environment: rules of its own for one environment, none for many."""

    def step(self, action):
        return super().step(0.5 * np.asarray(action))


class SlipperyBoth(Slippery):
    """The same with its batched form."""

    def make_batched(self, num_envs):
        return super().make_batched(num_envs)


def test_batched_form_is_that_of_the_environment_itself():
    env = MetaPointEnvCorner(reward_type="dense")
    batched = batched_form(env)(3)
    assert (batched.num_envs, batched.reward_type) == (3, "dense")
    assert batched_form(normalize(env))(3).num_envs == 3
    assert batched_form(SlipperyBoth())(3).num_envs == 3
    renamed = type("Renamed", (MetaPointEnvCorner,), {"sample_tasks": lambda self, n_tasks: [(2.0, 2.0)] * n_tasks})
    assert batched_form(renamed())(3).num_envs == 3  # another distribution of tasks, the same steps
    own = type("Own", (BatchableMetaEnv,), {"batched_class": type(batched), "step": lambda self, action: None})
    assert batched_form(own())(3).num_envs == 3  # both said in one class: it knows what it does


@pytest.mark.parametrize("env", [
    OldMetaEnv(), GymMetaEnv(), Slippery(), gym.Wrapper(MetaPointEnvCorner()), normalize(Slippery()),
    normalize(gym.wrappers.TimeLimit(MetaPointEnvCorner(), 5)),
])
def test_there_is_no_batched_form_where_it_would_not_be_the_same(env):
    assert batched_form(env) is None
