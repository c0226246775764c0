"""Tests the adapters for all gym APIs, for Gymnasium environments and for environments without tasks, and copies."""
import copy
import itertools
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import meta_policy_search as mps
from meta_policy_search import GymnasiumMetaEnv, MetaEnv, MetaPointEnvCorner, NormalizedEnv, SingleTaskEnv, normalize
from meta_policy_search.envs.compat import adapt_env, check_meta_env, copy_env, layers
from meta_policy_search.samplers.vectorized_env_executor.local import MetaIterativeEnvExecutor
from meta_policy_search.samplers.vectorized_env_executor.parallel import MetaParallelEnvExecutor
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym

SPACES = {"observation_space": gym.spaces.Box(-np.inf, np.inf, (2,)), "action_space": gym.spaces.Box(-1.0, 1.0, (2,))}


class Scripted:
    """An environment without a gym class and without tasks that returns fixed results."""

    observation_space, action_space = SPACES.values()

    def __init__(self, answer):
        self.answer = answer

    def reset(self):
        return self.answer

    def step(self, action):
        return self.answer


class OldMetaEnv:
    """A classic meta-environment that draws from the global numpy.random and accepts no generators."""

    observation_space, action_space = SPACES.values()

    def sample_tasks(self, n_tasks):
        return np.random.uniform(size=(n_tasks, 2))

    def set_task(self, task):
        self.task = task


class GymMetaEnv(MetaEnv):
    """Draws tasks from gym's generator and accepts no generator argument."""

    observation_space, action_space = SPACES.values()

    def sample_tasks(self, n_tasks):
        return list(self.np_random.uniform(size=n_tasks))

    def set_task(self, task):
        self.task = task

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(size=2), {"options": options}


class GymnasiumEnv(gymnasium.Env):
    observation_space, action_space = spaces.Box(-np.inf, np.inf, (2,)), spaces.Box(-1.0, 1.0, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(size=2), {}


def test_reset_accepts_old_and_new_results():
    observation, info = np.array([1.0, 2.0]), {"from": "new"}
    for answer, expected in (((observation, info), info), (observation, {})):
        env = SingleTaskEnv(Scripted(answer))
        assert env.reset()[0] is observation and env.reset()[1] == expected
    pair = (1.0, 2.0)  # a classic observation that is a pair
    assert SingleTaskEnv(Scripted(pair)).reset() == (pair, {})


def test_reset_passes_arguments_that_are_not_none():
    env = adapt_env(GymMetaEnv())
    first, info = env.reset(seed=3, options={"far": True})
    assert info == {"options": {"far": True}}
    np.testing.assert_array_equal(env.reset(seed=3, options=None)[0], first)
    with pytest.raises(TypeError, match="seed"):
        SingleTaskEnv(Scripted(np.zeros(2))).reset(seed=3)  # a classic environment does not accept arguments


@pytest.mark.parametrize("answer, expected", [
    (("obs", 1.5, True, False, {"k": 1}), ("obs", 1.5, True, False, {"k": 1})),
    (("obs", 1.5, False, True, {}), ("obs", 1.5, False, True, {})),
    (("obs", 1.5, False, {"k": 1}), ("obs", 1.5, False, False, {"k": 1})),
    (("obs", 1.5, True, {}), ("obs", 1.5, True, False, {})),
    (("obs", 1.5, True, {"TimeLimit.truncated": True}), ("obs", 1.5, False, True, {"TimeLimit.truncated": True})),
    (["obs", np.float32(1.5), np.bool_(True), {}], ("obs", 1.5, True, False, {})),
    (("obs", np.array([[2]]), False, np.bool_(True), {}), ("obs", 2.0, False, True, {})),
])
def test_step_accepts_four_and_five_values(answer, expected):
    result = SingleTaskEnv(Scripted(answer)).step(None)
    assert result == expected
    assert [type(part) for part in result[1:4]] == [float, bool, bool]


@pytest.mark.parametrize("answer, complaint", [
    (("obs", 1.0, False), "step of Scripted: expected .* got \\('obs', 1.0, False\\)"),
    (("obs", np.zeros(2), False, {}), r"step of Scripted: reward: expected a single number, got array\(\[0., 0.\]\)"),
    (("obs", 1.0, None, {}), "step of Scripted: terminated: expected True or False, got None"),
    (("obs", 1.0, False, "no", {}), "step of Scripted: truncated: expected True or False, got 'no'"),
])
def test_step_names_the_invalid_result(answer, complaint):
    with pytest.raises(ValueError, match=complaint):
        SingleTaskEnv(Scripted(answer)).step(None)


@pytest.mark.parametrize("make_env", [
    GymMetaEnv, lambda: gym.Wrapper(GymMetaEnv()), GymnasiumEnv, lambda: gymnasium.Wrapper(GymnasiumEnv()),
    lambda: normalize(MetaPointEnvCorner()), lambda: normalize(gym.Wrapper(MetaPointEnvCorner())),
])
def test_generator_reaches_the_innermost_environment(make_env):
    """Two environments with equal generators have equal start states and draw from the given generators."""
    starts = []
    for _ in range(2):
        env, rng = make_env(), np.random.default_rng(5)
        adapted = adapt_env(env) if hasattr(env.unwrapped, "sample_tasks") else SingleTaskEnv(env)
        adapted.np_random = rng
        assert env.np_random is adapted.np_random is rng
        starts.append(adapted.reset()[0])
    np.testing.assert_array_equal(*starts)
    assert not np.array_equal(adapted.reset()[0], starts[0])


def test_legacy_environment_receives_a_random_state():
    env = Scripted(None)
    env.np_random = np.random.RandomState(0)
    rng = np.random.default_rng(5)
    SingleTaskEnv(env).np_random = rng
    expected = np.random.RandomState(np.random.default_rng(5).bit_generator).randn(3)
    np.testing.assert_array_equal(env.np_random.randn(3), expected)
    assert rng.bit_generator.state != np.random.default_rng(5).bit_generator.state  # one stream, not a copy


def test_sample_tasks_draws_from_the_given_generator():
    env, own = MetaPointEnvCorner(), np.random.default_rng(0)
    env.np_random = own
    tasks = adapt_env(env).sample_tasks(20, np.random.default_rng(5))
    np.testing.assert_array_equal(tasks, env.sample_tasks(20, rng=np.random.default_rng(5)))
    assert env.np_random is own  # it is only set if `sample_tasks` has no argument for it
    expected, env = np.random.default_rng(5).uniform(size=3), GymMetaEnv()
    np.testing.assert_array_equal(adapt_env(env).sample_tasks(3, np.random.default_rng(5)), expected)
    env.np_random = np.random.default_rng(5)
    np.testing.assert_array_equal(adapt_env(env).sample_tasks(3), expected)


def test_sample_tasks_of_a_classic_environment():
    np.random.seed(0)
    tasks = adapt_env(OldMetaEnv()).sample_tasks(3, np.random.default_rng(5))
    np.random.seed(0)
    np.testing.assert_array_equal(tasks, np.random.uniform(size=(3, 2)))
    assert isinstance(tasks, list)  # converted from an array
    with pytest.raises(ValueError, match="n_tasks: expected an integer of at least 1, got 0"):
        adapt_env(OldMetaEnv()).sample_tasks(0)


@pytest.mark.parametrize("tasks, complaint", [
    ([1], "sample_tasks of OldMetaEnv: expected a list of 2 tasks, got \\[1\\]"),
    (None, "sample_tasks of OldMetaEnv: expected a list of 2 tasks, got None"),
])
def test_sample_tasks_validates_the_result(tasks, complaint):
    env = type("OldMetaEnv", (OldMetaEnv,), {"sample_tasks": lambda self, n_tasks: tasks})()
    with pytest.raises(ValueError, match=complaint):
        adapt_env(env).sample_tasks(2)


@pytest.mark.parametrize("env", [
    GymnasiumEnv(), MetaEnv(), None, lambda: MetaPointEnvCorner(), MetaPointEnvCorner, gym.Wrapper(MetaEnv()),
    type("HalfDone", (MetaEnv,), {"sample_tasks": lambda self, n_tasks: []})(),
])
def test_objects_without_tasks_are_refused(env):
    for check in (adapt_env, check_meta_env):
        with pytest.raises(TypeError, match="^env: expected a meta-environment(, got the class| with the methods) "):
            check(env)


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


def test_vectorized_environment_has_the_settings_of_the_environment():
    env = MetaPointEnvCorner(reward_type="dense")
    batched = adapt_env(env).make_batched(3)
    assert batched.num_envs == 3
    batched.reset(np.arange(3), [np.random.default_rng(i) for i in range(3)])
    assert (batched.step(np.zeros((3, 2))).rewards < -2.0).all()  # minus the distance; the default is 0
    assert adapt_env(normalize(env)).make_batched(3).num_envs == 3
    assert adapt_env(normalize(normalize(env))).make_batched(3).num_envs == 3
    assert adapt_env(SlipperyBoth()).make_batched(3).num_envs == 3
    renamed = type("Renamed", (MetaPointEnvCorner,), {"sample_tasks": lambda self, n_tasks: [(2.0, 2.0)] * n_tasks})
    assert adapt_env(renamed()).make_batched(3).num_envs == 3  # different task distribution, equal steps


@pytest.mark.parametrize("env", [
    OldMetaEnv(), GymMetaEnv(), Slippery(), gym.Wrapper(MetaPointEnvCorner()), normalize(Slippery()),
    normalize(gym.wrappers.TimeLimit(MetaPointEnvCorner(), 5)), Halving(MetaPointEnvCorner()),
    normalize(Halving(MetaPointEnvCorner())),
])
def test_no_vectorized_environment_if_results_would_differ(env):
    assert adapt_env(env).make_batched(3) is None


# Wrappers around environments with tasks


class Goals:
    goal = 0.0

    def sample_tasks(self, n_tasks):
        return list(self.np_random.uniform(size=n_tasks))

    def set_task(self, task):
        self.unwrapped.goal = task

    def get_task(self):
        return self.unwrapped.goal


@pytest.mark.parametrize("env", [
    type("Point", (Goals, GymnasiumEnv), {})(), type("GoalWrapper", (Goals, gymnasium.Wrapper), {})(GymnasiumEnv()),
])
def test_wrapper_without_task_methods_uses_those_of_the_next_environment(env):
    env = gymnasium.wrappers.TimeLimit(env, 5)
    adapted = adapt_env(normalize(env))
    (task,) = adapted.sample_tasks(1, np.random.default_rng(0))
    adapted.set_task(task)
    assert env.unwrapped.goal == adapted.get_task() == task == np.random.default_rng(0).uniform()
    assert adapted.wrapped_env.wrapped_env is env and adapted.unwrapped is env.unwrapped


class Doubled(gymnasium.Wrapper):
    """Doubles the task."""

    def set_task(self, task):
        self.unwrapped.set_task(2.0 * task)

    def get_task(self):
        return 0.5 * self.unwrapped.get_task()


def test_each_task_method_is_that_of_the_outermost_wrapper_that_has_it():
    env = gymnasium.wrappers.TimeLimit(Doubled(type("Point", (Goals, GymnasiumEnv), {})()), 5)
    adapted = adapt_env(normalize(env))
    (task,) = adapted.sample_tasks(1, np.random.default_rng(0))
    adapted.set_task(task)
    assert adapted.get_task() == task and env.unwrapped.goal == 2.0 * task


# Copies of environments


class Episodic(MetaPointEnvCorner):
    """Has an info with the name of the one that `TrialEnv` adds."""

    def step(self, action):
        *result, info = super().step(action)
        return (*result, {"episode": {"r": 1.0}})


def test_info_with_the_name_of_the_episode_is_refused():
    env = mps.TrialEnv(Episodic())
    env.reset(seed=0)
    with pytest.raises(ValueError, match="^env: expected no info 'episode', because TrialEnv adds it, got {'r': 1.0}"):
        env.step(np.zeros(2))


def test_environment_that_cannot_be_copied_is_named():
    env = normalize(MetaPointEnvCorner())
    env.file = (line for line in ())
    with pytest.raises(TypeError, match="env: expected an environment that copy.deepcopy can copy, got MetaPointEnvC"):
        copy_env(env)


def test_attributes_assigned_to_an_environment_of_gymnasium_are_copied():
    """Gymnasium's MuJoCo robots are copied through their constructor arguments (`EzPickle`)."""
    env = gymnasium.make("Swimmer-v5").unwrapped
    env.bonus, env.goal, env.name = 3.0, np.ones(2), "mine"
    copied = copy_env(gymnasium.Wrapper(env)).unwrapped
    assert (copied.bonus, copied.name, copied.goal.tolist()) == (3.0, "mine", [1.0, 1.0])
    env.goal[0] = 2.0
    assert copied.goal[0] == 1.0 and copied.data is not env.data


def test_a_helper_object_may_refer_back_to_the_environment():
    class World:
        def __init__(self, env):
            self.env = env

    env = MetaPointEnvCorner()
    env.env = World(env)
    assert list(itertools.islice(layers(env), 3)) == [env]
    copied = copy_env(env)
    assert copied.env.env is copied


@pytest.mark.parametrize("wrapper", [gymnasium.wrappers.NormalizeObservation, gymnasium.wrappers.NormalizeReward])
def test_wrappers_with_running_averages_are_refused(wrapper):
    """Copies in worker processes would have different averages, and snapshots none."""
    with pytest.raises(TypeError, match=f"env: expected no {wrapper.__name__}, .*use normalize with normalize_obs"):
        SingleTaskEnv(gymnasium.wrappers.TimeAwareObservation(wrapper(gymnasium.make("Pendulum-v1"))))


def test_diagnostics_of_a_gymnasium_wrapper_are_logged():
    logged = []
    wrapper = type("Wrapper", (gymnasium.Wrapper,), {
        "log_diagnostics": lambda self, paths, prefix: logged.append((len(paths), prefix))})
    adapt_env(wrapper(type("Point", (Goals, GymnasiumEnv), {})())).log_diagnostics([{}], "Step_0-")
    assert logged == [(1, "Step_0-")]


@pytest.mark.parametrize("env", [
    lambda: MetaPointEnvCorner(), lambda: normalize(MetaPointEnvCorner()),
    lambda: normalize(gym.wrappers.TimeLimit(MetaPointEnvCorner(), 3)), lambda: normalize(drift()),
    lambda: GymnasiumMetaEnv("Pendulum-v1", draw_gravity, set_gravity),
    lambda: GymnasiumMetaEnv(lambda: Drift(), draw_place),
    lambda: gymnasium.wrappers.TimeLimit(type("Tasks", (Goals, Drift), {})(), 5),
])
def test_render_mode_can_be_set_until_the_first_reset(env):
    adapted = adapt_env(env())
    assert adapted.render_mode is None
    adapted.set_task(adapted.sample_tasks(1)[0])
    adapted.render_mode = "rgb_array"
    adapted.render_mode = "rgb_array"
    assert adapted.render_mode == adapted.wrapped_env.render_mode == "rgb_array"
    if adapted.spec is None:
        adapted.reset()
        assert adapted.render().dtype == np.uint8  # images of Gymnasium's environments require pygame


def test_unsupported_render_mode_is_refused():
    for env in (normalize(MetaPointEnvCorner()), drift(), GymnasiumMetaEnv(lambda: Drift(), draw_place)):
        with pytest.raises(ValueError, match="render_mode: .* does not support render_mode='human'"):
            adapt_env(env).render_mode = "human"


# Environments of Gymnasium


class Drift(gymnasium.Env):
    """A point on a line with a task-specific goal; start and motion are random. Terminates far away."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = spaces.Box(-2.0, 1.0, (1,), np.float32)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.goal, self.is_closed, self.seeds, self.actions = 0.0, False, [], []

    def set_task(self, task):
        if not isinstance(task, float):
            raise ValueError(f"task: expected a float, got {task!r}")
        self.goal = task

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.x = self.np_random.normal(scale=0.1, size=1).astype(np.float32)
        return self.x, {"options": options}

    def step(self, action):
        self.actions.append(action)
        self.x = (self.x + action + self.np_random.normal(scale=0.1, size=1)).astype(np.float32)
        distance = abs(float(self.x[0]) - self.goal)
        return self.x, -distance, bool(abs(self.x[0]) > 5.0), False, {"success": distance < 0.5}

    def render(self):
        return np.full((2, 2, 3), 7, np.uint8)

    def close(self):
        self.is_closed = True


class Choices(gymnasium.Env):
    """Actions are -1, 0 and 1; observes a dict with the index of one of three fields, and a matrix."""

    observation_space = spaces.Dict({"field": spaces.Discrete(3), "matrix": spaces.Box(0.0, 9.0, (2, 2))})
    action_space = spaces.Discrete(3, start=-1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.field = 1
        return self.observe(), {}

    def step(self, action):
        assert type(action) is np.int64 and action in self.action_space
        self.field = (self.field + int(action)) % 3
        return self.observe(), 1.0, False, False, {}

    def observe(self):
        return {"field": self.field, "matrix": np.arange(4.0, dtype=np.float32).reshape(2, 2)}


class Mission(spaces.Space):
    """A space that Gymnasium cannot flatten."""


def draw_place(rng):
    return float(rng.uniform(-1.0, 1.0))


def set_gravity(env, g):
    env.unwrapped.g = g


def draw_gravity(rng):
    return rng.uniform(5.0, 15.0)


def ignore(env, task):
    pass


def drift(env=Drift):
    return GymnasiumMetaEnv(env, sample_task=draw_place)


def pendulum():
    return GymnasiumMetaEnv("Pendulum-v1", sample_task=draw_gravity, set_task=set_gravity)


MAKERS = pytest.mark.parametrize("make", [drift, pendulum], ids=["class", "id"])
CLONES = pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])


def walk(env, steps=5, seed=0):
    rng = np.random.default_rng(seed)
    return [env.step(rng.uniform(-1.0, 1.0, 1))[:4] for _ in range(steps)]


@MAKERS
def test_adapter_is_a_meta_environment_with_the_gym_interface(make):
    env = make()
    assert isinstance(env, MetaEnv) and adapt_env(env).make_batched(1) is None
    for space, original in ((env.observation_space, env.wrapped_env.observation_space),
                            (env.action_space, env.wrapped_env.action_space)):
        assert isinstance(space, gym.spaces.Box) and space.dtype == np.float64
        np.testing.assert_allclose((space.low, space.high), (original.low, original.high))
    observation, info = env.reset(seed=0)
    assert observation.dtype == np.float64 and env.observation_space.contains(observation) and isinstance(info, dict)
    observation, *rest = env.step(np.zeros(1))
    assert observation.dtype == np.float64 and [type(value) for value in rest] == [float, bool, bool, dict]


def test_non_vector_observations_are_flattened_and_discrete_actions_start_at_0():
    env = GymnasiumMetaEnv(Choices, lambda rng: None, ignore)
    assert env.observation_space.shape == (7,) and env.action_space == gym.spaces.Discrete(3)
    np.testing.assert_array_equal(env.reset()[0], [0, 1, 0, 0, 1, 2, 3])
    np.testing.assert_array_equal(env.step(0)[0][:3], [1, 0, 0])  # one step to the left
    np.testing.assert_array_equal(env.step(np.int32(2))[0][:3], [0, 1, 0])
    for action in (3, -1, 0.5, [1], None):
        with pytest.raises(ValueError, match="action: expected an integer from 0 to 2, got"):
            env.step(action)


@pytest.mark.parametrize("name, space, complaint", [
    ("action_space", spaces.MultiDiscrete([2, 3]), "expected a 1-D Box of real numbers or a Discrete"),
    ("action_space", spaces.Box(0, 5, (2,), np.int64), "expected a 1-D Box of real numbers or a Discrete"),
    ("observation_space", spaces.Dict(a=Mission(()), b=spaces.Discrete(2)),
     "expected an observation space that can be flattened .*FilterObservation"),
])
def test_other_spaces_are_refused(name, space, complaint):
    env = type("Unsupported", (Drift,), {name: space})
    with pytest.raises(TypeError, match=f"env: {complaint}"):
        drift(env)


def test_box_actions_are_clipped_and_cast():
    env = drift()
    env.reset()
    given = np.array([9.0])
    for action in (given, [-9], np.array([0.3])):
        env.step(action)
    np.testing.assert_array_equal(env.wrapped_env.actions, np.float32([[1.0], [-2.0], [0.3]]))
    assert all(action.dtype == np.float32 for action in env.wrapped_env.actions)
    assert given == 9.0


@pytest.mark.parametrize("action, complaint", [
    (np.zeros(2), r"action: expected finite numbers of shape \(1,\), got"), (0.0, r"numbers of shape \(1,\), got 0.0"),
    ([np.nan], "action: expected finite numbers of"), ([np.inf], "action: expected finite numbers of"),
])
def test_invalid_actions_are_refused_without_a_step(action, complaint):
    env = drift()
    env.reset()
    with pytest.raises(ValueError, match=complaint):
        env.step(action)
    assert env.wrapped_env.actions == []


def test_returned_observations_are_copies():
    env, reference = drift(), drift()
    for one in (env, reference):
        one.reset(seed=0)[0][:] = 99.0
    answer, expected = env.step(np.ones(1)), reference.step(np.ones(1))
    assert answer[:2] == expected[:2] and abs(answer[0][0]) < 5.0


@MAKERS
def test_tasks_are_drawn_from_the_given_or_the_default_generator(make):
    env = make()
    tasks = adapt_env(env).sample_tasks(5, np.random.default_rng(3))
    assert tasks == env.sample_tasks(5, np.random.default_rng(3)) and len(set(tasks)) == 5
    env.np_random = np.random.default_rng(3)
    assert env.sample_tasks(5) == tasks != env.sample_tasks(5)
    with pytest.raises(ValueError, match="n_tasks"):
        env.sample_tasks(0)


def test_task_is_passed_to_the_environment():
    env = drift()
    assert env.get_task() is None
    env.set_task(0.5)
    assert env.get_task() == env.wrapped_env.goal == 0.5
    with pytest.raises(ValueError, match="task: expected a float, got 'north'"):
        env.set_task("north")
    assert env.get_task() == 0.5
    env = pendulum()
    env.set_task(12.0)
    assert env.wrapped_env.unwrapped.g == env.get_task() == 12.0


def test_tasks_are_copied():
    task = np.array([1.0])
    env = GymnasiumMetaEnv(Drift, lambda rng: task, lambda env, goal: setattr(env, "goal", goal))
    env.set_task(task)
    task[:] = 7.0
    env.get_task()[:] = 8.0
    assert env.get_task() == env.wrapped_env.goal == 1.0


def test_seeded_reset_equals_gymnasium():
    env, reference = drift(), Drift()
    np.testing.assert_array_equal(env.reset(seed=5)[0], reference.reset(seed=5)[0])
    assert env.reset(seed=np.int64(5), options={"far": True})[1] == {"options": {"far": True}}


def test_every_unseeded_reset_draws_a_seed_from_the_generator():
    runs = []
    for _ in range(2):
        env = drift()
        adapt_env(env).np_random = np.random.default_rng(3)
        env.reset()
        env.reset()
        runs.append(env.wrapped_env.seeds)
    assert runs[0] == runs[1] and len(set(runs[0])) == 2
    env.reset(seed=1)
    assert env.np_random.random() == gymnasium.utils.seeding.np_random(1)[0].random()


@MAKERS
@CLONES
def test_copy_has_the_task_and_the_generator_and_is_independent(make, clone):
    env = make()
    env.set_task(0.7)
    env.reset(seed=0)
    walk(env)
    twin = clone(env)
    assert twin.wrapped_env is not env.wrapped_env and twin.get_task() == 0.7
    np.testing.assert_array_equal(twin.reset()[0], env.reset()[0])
    np.testing.assert_equal(walk(twin, seed=3), walk(env, seed=3))


@pytest.mark.parametrize("make", [drift, lambda: normalize(pendulum())])
def test_paths_do_not_depend_on_copies(make):
    mps.check_env(make())


@pytest.mark.parametrize("make", [
    lambda: drift("LocalDrift-v0"), lambda: drift(lambda: gymnasium.make("LocalDrift-v0"))])
def test_worker_processes_know_ids_that_this_process_registered(make):
    class Local(Drift):
        """Worker processes cannot import this class."""

    gymnasium.registry.pop("LocalDrift-v0", None)
    gymnasium.register("LocalDrift-v0", entry_point=Local, max_episode_steps=4)
    env, answers = make(), []
    for executor in (MetaIterativeEnvExecutor(env, 2, 1, 10), MetaParallelEnvExecutor(env, 2, 1, 10, num_processes=2)):
        with executor:
            executor.set_tasks(env.sample_tasks(2, np.random.default_rng(0)))
            executor.reset_envs(np.arange(2), [np.random.default_rng(i) for i in range(2)])
            answers.append(executor.step_envs(np.ones((2, 1)), np.arange(2)).rewards)
    np.testing.assert_array_equal(*answers)
    assert gymnasium.registry["LocalDrift-v0"].kwargs == {}


@pytest.mark.parametrize("env, functions, error, complaint", [
    (None, [draw_place], TypeError, "env: expected an environment id or a function that creates an environment, got N"),
    (dict, [draw_place], TypeError, "env: expected an environment with the methods reset and step, got {}"),
    ("Pendulumm-v1", [draw_place], gymnasium.error.NameNotFound, "`Pendulumm` doesn't exist. Did you mean: `Pendulum`"),
    (Choices, [draw_place], TypeError, r"set_task: expected a function \(env, task\), because Choices has no method s"),
    ("Pendulum-v1", [5], TypeError, "sample_task: expected a function, got 5"),
    ("Pendulum-v1", [draw_place, 5], TypeError, "set_task: expected a function, got 5"),
    ("Pendulum-v1", [lambda: 1.0, print], TypeError, r"sample_task: expected the arguments \(rng\), got \(\)"),
    ("Pendulum-v1", [draw_place, lambda task: None], TypeError, r"set_task: expected the arguments \(env, task\), got"),
])
def test_invalid_arguments_are_refused(env, functions, error, complaint):
    with pytest.raises(error, match=complaint):
        GymnasiumMetaEnv(env, *functions)


@pytest.mark.parametrize("wrap", [mps.normalize, lambda env: mps.TrialEnv(env, 2, 3), mps.check_env])
def test_discrete_actions_must_start_at_0(wrap):
    env = mps.make_env("MetaTabularMDPEnv")
    env.action_space = gym.spaces.Discrete(5, start=1)
    with pytest.raises(ValueError, match="env.action_space: expected discrete actions numbered from 0, got Discrete"):
        wrap(env)
