"""Tests adapters of Gymnasium environments and of environments without tasks to meta-environments."""
import copy
import functools
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from meta_policy_search.envs import GymnasiumMetaEnv, MetaEnv, SingleTaskEnv, normalize
from meta_policy_search.envs.gym_compat import check_meta_env, make_batched, sample_tasks, set_rng
from meta_policy_search.samplers.errors import EnvWorkerError
from meta_policy_search.samplers.vectorized_env_executor.local import MetaIterativeEnvExecutor
from meta_policy_search.samplers.vectorized_env_executor.parallel import MetaParallelEnvExecutor
from meta_policy_search.utils.gym_import import gym


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
        return self._observe(), {}

    def step(self, action):
        assert type(action) is np.int64 and action in self.action_space
        self.field = (self.field + int(action)) % 3
        return self._observe(), 1.0, False, False, {}

    def _observe(self):
        return {"field": self.field, "matrix": np.arange(4.0, dtype=np.float32).reshape(2, 2)}


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


# Interface


@MAKERS
def test_adapter_is_a_meta_environment_with_the_gym_interface(make):
    env = make()
    check_meta_env(env)
    assert isinstance(env, MetaEnv) and make_batched(env, 1) is None
    for space in (env.observation_space, env.action_space):
        assert isinstance(space, gym.spaces.Box) and space.dtype == np.float64
    observation, info = env.reset(seed=0)
    assert observation.dtype == np.float64 and env.observation_space.contains(observation) and isinstance(info, dict)
    observation, *rest = env.step(np.zeros(1))
    assert observation.dtype == np.float64 and [type(value) for value in rest] == [float, bool, bool, dict]


def test_finite_bounds_of_spaces_are_kept():
    space = drift().action_space
    assert (space.low, space.high, space.shape) == (-2.0, 1.0, (1,))
    np.testing.assert_allclose(pendulum().observation_space.high, [1.0, 1.0, 8.0])


def test_wrapped_environment_is_accessible():
    env = GymnasiumMetaEnv(functools.partial(Drift, render_mode="rgb_array"), draw_place)
    assert env.metadata == Drift.metadata and env.render_mode == "rgb_array" and env.goal == 0.0
    assert env.render().shape == (2, 2, 3)
    env.close()
    assert env.wrapped_env.is_closed
    with pytest.raises(AttributeError, match="color"):
        _ = env.color


def test_termination_and_truncation_are_distinguished():
    env = pendulum()  # Gymnasium's time limit of 200 steps applies
    env.reset(seed=0)
    assert [answer[2:] for answer in walk(env, 200)][-2:] == [(False, False), (False, True)]
    env = drift()
    env.reset(seed=0)
    ends = [env.step(np.ones(1))[2:4] for _ in range(8)]
    assert (True, False) in ends and (False, True) not in ends


# Spaces


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
    ("action_space", spaces.Box(0.0, 1.0, (2, 2)), "expected a 1-D Box of real numbers or a Discrete"),
    ("observation_space", spaces.Sequence(spaces.Discrete(2)), "expected an observation space that can be flattened"),
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


# Tasks


@MAKERS
def test_tasks_are_drawn_from_the_given_or_the_default_generator(make):
    env = make()
    tasks = sample_tasks(env, 5, np.random.default_rng(3))
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


def test_pendulum_tasks_change_the_motion():
    ends = []
    for g in (5.0, 15.0):
        env = pendulum()
        env.set_task(g)
        env.reset(seed=0)
        ends.append(walk(env)[-1][0])
    assert abs(ends[0] - ends[1]).max() > 0.1


def test_tasks_are_copied():
    task = np.array([1.0])
    env = GymnasiumMetaEnv(Drift, lambda rng: task, lambda env, goal: setattr(env, "goal", goal))
    env.set_task(task)
    task[:] = 7.0
    env.get_task()[:] = 8.0
    assert env.get_task() == env.wrapped_env.goal == 1.0


# Seeds


def test_seeded_reset_equals_gymnasium():
    env, reference = drift(), Drift()
    np.testing.assert_array_equal(env.reset(seed=5)[0], reference.reset(seed=5)[0])
    assert env.reset(seed=np.int64(5), options={"far": True})[1] == {"options": {"far": True}}


def test_every_unseeded_reset_draws_a_seed_from_the_generator():
    runs = []
    for _ in range(2):
        env = drift()
        set_rng(env, np.random.default_rng(3))
        env.reset()
        env.reset()
        runs.append(env.wrapped_env.seeds)
    assert runs[0] == runs[1] and len(set(runs[0])) == 2
    env.reset(seed=1)
    assert env.np_random.random() == gymnasium.utils.seeding.np_random(1)[0].random()


# Copies


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


@CLONES
def test_copy_before_the_first_reset_has_the_task(clone):
    env = drift()
    env.set_task(0.7)
    assert clone(env).wrapped_env.goal == 0.7


# Executors


@pytest.mark.parametrize("wrap", [lambda env: env, normalize], ids=["plain", "normalized"])
@pytest.mark.parametrize("make", [drift, pendulum])
def test_data_do_not_depend_on_the_executor(make, wrap):
    """Worker processes, sequential copies and single environments give equal steps for equal tasks and generators."""
    env = wrap(make())
    tasks, actions = env.sample_tasks(3, np.random.default_rng(0)), np.random.default_rng(1).normal(size=(6, 6, 1))
    everyone, answers = np.arange(6), []
    executors = [MetaIterativeEnvExecutor(env, 3, 2, 100), MetaParallelEnvExecutor(env, 3, 2, 100, num_processes=2)]
    for executor in executors:
        with executor:
            executor.set_tasks(tasks)
            for _ in range(2):  # the second round starts with used environments
                answer = [executor.reset_envs(everyone, [np.random.default_rng((0, i)) for i in everyone])]
                for action in actions:
                    step = executor.step_envs(action, everyone)
                    answer += [step.observations, step.rewards]
                answers.append(answer)
    for answer in answers[1:]:
        np.testing.assert_equal(answer, answers[0])

    alone = wrap(make())
    alone.set_task(tasks[2])
    set_rng(alone, np.random.default_rng((0, 5)))
    np.testing.assert_array_equal(alone.reset()[0], answers[0][0][5])
    for step, action in enumerate(actions):
        observation, reward, *_ = alone.step(action[5])
        np.testing.assert_array_equal(observation, answers[0][1 + 2 * step][5])
        assert reward == answers[0][2 + 2 * step][5]


# Invalid arguments


@pytest.mark.parametrize("env, error, complaint", [
    (None, TypeError, "env: expected an environment id or a function that creates an environment, got None"),
    (dict, TypeError, "env: expected an environment with the methods reset and step, got {}"),
    ("Pendulumm-v1", gymnasium.error.NameNotFound, "`Pendulumm` doesn't exist. Did you mean: `Pendulum`"),
    (Choices, TypeError, r"set_task: expected a function \(env, task\), got None; Choices has no method set_task"),
])
def test_objects_that_are_not_environments_are_refused(env, error, complaint):
    with pytest.raises(error, match=complaint):
        GymnasiumMetaEnv(env, draw_place)


def test_refused_task_is_named():
    env = GymnasiumMetaEnv(Drift, lambda rng: "north")
    with MetaIterativeEnvExecutor(env, 1, 1, 10) as executor, pytest.raises(EnvWorkerError, match="expected a float"):
        executor.set_tasks(None)


# Environments without tasks


def test_environment_without_tasks_has_the_task_none():
    env = SingleTaskEnv(gymnasium.make("Pendulum-v1"))
    assert env.sample_tasks(2) == [None, None] and env.get_task() is None
    env.set_task(None)
    with pytest.raises(ValueError, match="task: expected None"):
        env.set_task(1.0)
    set_rng(env, np.random.default_rng(0))
    expected = gymnasium.make("Pendulum-v1")
    expected.unwrapped.np_random = np.random.default_rng(0)
    np.testing.assert_array_equal(env.reset()[0], expected.reset()[0])
    with pytest.raises(TypeError, match="env: expected an environment with the methods reset and step"):
        SingleTaskEnv(Drift)
