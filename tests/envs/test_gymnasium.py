"""Tests the built-in environments as Gymnasium environments: ids, tasks, and equality with the library's interface."""
import importlib.util
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from meta_policy_search.envs import TrialEnv, available_envs, get_env_class, load_tasks, make_env
from meta_policy_search.envs.gymnasium import TIME_LIMITS, TaskEnv, TrialWrapper, VectorTaskEnv, env_id
from tests.helpers.runs import assert_same

needs_metaworld = pytest.mark.skipif(importlib.util.find_spec("metaworld") is None, reason="needs metaworld")
NAMES = [name for name in available_envs() if get_env_class(name).__name__ == name]
every_name = pytest.mark.parametrize("name", [
    pytest.param(name, marks=[needs_metaworld, pytest.mark.thorough if name.endswith("ML1") else pytest.mark.slow])
    if name.startswith("MetaWorld") else name
    for name in NAMES])
MODES = ["NextStep", "SameStep", "Disabled"]


@pytest.fixture(autouse=True)
def no_advice():
    """Ignores Gymnasium's advice on infinite bounds."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(infinity|symmetric and normalized).*")
        yield


def test_every_built_in_environment_is_registered():
    ours = {spec.id: spec for spec in gymnasium.registry.values() if spec.namespace == "meta_policy_search"}
    assert set(ours) == {env_id(name) for name in NAMES} and set(TIME_LIMITS) == set(NAMES)
    assert env_id("HalfCheetahRandDirecEnv") == "meta_policy_search/HalfCheetahRandDirec-v0"
    assert env_id("MetaPointEnvCorner") == "meta_policy_search/MetaPointCorner-v0"
    assert ours["meta_policy_search/KhazadDum-v0"].max_episode_steps == 32
    assert gymnasium.make("meta_policy_search.envs.gymnasium:meta_policy_search/KhazadDum-v0").spec.name == "KhazadDum"


@every_name
def test_checker_of_gymnasium_accepts_every_id(name):
    check_env(gymnasium.make(env_id(name)).unwrapped, skip_render_check=True)


@pytest.mark.thorough(ci=("KhazadDumEnv", "ReacherRandGoalEnv"))
@pytest.mark.parametrize("name", ["AntRandGoalEnv", "KhazadDumEnv", "MetaPointEnvWalls", "ReacherRandGoalEnv"])
def test_checker_of_gymnasium_accepts_images(name):
    env = gymnasium.make(env_id(name), render_mode="rgb_array")
    if name.endswith("RandGoalEnv"):
        try:
            env.unwrapped.meta_env.render()
        except RuntimeError as error:  # no OpenGL
            pytest.skip(str(error))
    assert env.metadata == {"render_modes": ["rgb_array"], "render_fps": make_env(name).metadata["render_fps"]}
    check_env(env.unwrapped)
    env.reset(seed=0)
    assert env.render().shape == (480, 480, 3)
    env.close()


def test_environment_without_render_mode_returns_no_image():
    env = gymnasium.make(env_id("MetaPointEnvCorner"))
    env.reset()
    with pytest.warns(UserWarning, match='expected an environment created with render_mode="rgb_array"'):
        assert env.render() is None
    with pytest.raises(ValueError, match="render_mode: expected one of None, got 'rgb_array'"):
        TaskEnv("CartPoleMassEnv", render_mode="rgb_array")


@every_name
def test_results_equal_those_of_the_meta_environment_bit_for_bit(name):
    env, own = gymnasium.make(env_id(name)), make_env(name)
    task = own.sample_tasks(3, np.random.default_rng(5))[2]
    own.set_task(task)
    expected, _ = own.reset(seed=7)
    observation, info = env.reset(seed=7, options={"task": task})
    assert_same(observation, expected)
    assert_same(info, {"task": own.get_task()})
    env.action_space.seed(0)
    for _ in range(min(5, TIME_LIMITS[name] - 1)):
        action = env.action_space.sample()
        *expected, expected_info = own.step(action)
        *answer, info = env.step(action)
        assert_same(answer[0], expected[0])
        assert answer[1:] == expected[1:]
        assert_same(info, {**expected_info, "task": own.get_task()})


@every_name
def test_reset_draws_a_task_that_the_seed_determines(name):
    env, other = gymnasium.make(env_id(name)), gymnasium.make(env_id(name))
    draws = []
    for one in (env, other):
        answers = [one.reset(seed=11), *(one.reset() for _ in range(9))]
        draws.append(answers)
    assert_same(draws[0], draws[1])
    tasks = [info["task"] for _, info in draws[0]]
    if name != "MetaPointEnvOrigin":
        assert any(str(task) != str(tasks[0]) for task in tasks[1:])
    start = env.reset(seed=11, options={"task": tasks[1]})[0]
    if not name.startswith("MetaWorld"):  # the task determines the start
        assert_same(start, draws[0][0][0])  # a given task does not change the start state


def test_tasks_and_start_states_are_uncorrelated():
    env = gymnasium.make(env_id("HalfCheetahRandVelEnv"))
    pairs = [(env.reset(seed=seed)[0][0], env.reset(seed=seed)[1]["task"]) for seed in range(200)]
    assert abs(np.corrcoef(np.transpose(pairs))[0, 1]) < 0.25


def test_task_in_info_is_a_copy():
    env = gymnasium.make(env_id("AntRandGoalEnv"))
    _, info = env.reset(seed=0, options={"task": np.array([1.0, 2.0])})
    info["task"][:] = 0.0
    assert env.step(np.zeros(8))[4]["task"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name, task", [("HalfCheetahRandVelEnv", 1.5), ("MetaPointEnvNavigation", [0.25, -0.5])])
def test_task_is_appended_to_the_observation_on_request(name, task):
    env, plain = gymnasium.make(env_id(name), observe_task=True), gymnasium.make(env_id(name))
    observation, expected = (one.reset(seed=3, options={"task": task})[0] for one in (env, plain))
    assert_same(observation, np.append(expected, task))
    assert env.observation_space.contains(observation)
    assert_same(env.step(env.action_space.low)[0], np.append(plain.step(env.action_space.low)[0], task))


def test_episode_is_truncated_at_the_time_limit():
    env = gymnasium.make(env_id("KhazadDumEnv"))
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(32)]
    assert ends == [(False, False)] * 31 + [(False, True)]


def test_arguments_reach_the_environment():
    env = gymnasium.make(env_id("HalfCheetahRandVelEnv"), max_velocity=0.5, max_episode_steps=3)
    task = env.reset(seed=0)[1]["task"]
    assert task < 0.5 and env.spec.max_episode_steps == 3
    assert gymnasium.make(env.spec).reset(seed=0)[1]["task"] == task


@pytest.mark.parametrize("name", ["MetaPointEnvNavigation", "HalfCheetahRandVelEnv", "KhazadDumEnv"])
def test_trials_equal_those_of_the_trial_environment_bit_for_bit(name):
    env = TrialWrapper(gymnasium.make(env_id(name), max_episode_steps=4), episodes_per_trial=3)
    own = TrialEnv(make_env(name), episodes_per_trial=3, max_path_length=4)
    task = own.sample_tasks(3, np.random.default_rng(5))[2]
    own.set_task(task)
    observation, info = env.reset(seed=7, options={"task": task})
    assert_same(observation, own.reset(seed=7)[0])
    assert env.observation_space == gymnasium.spaces.Box(own.observation_space.low, own.observation_space.high,
                                                         dtype=np.float64)
    env.action_space.seed(0)
    for step in range(12):
        action = env.action_space.sample()
        *expected, _ = own.step(action)
        *answer, info = env.step(action)
        assert_same(answer[0], expected[0])
        assert answer[1:] == expected[1:] and answer[2] == (step == 11)
        assert_same(info["task"], task)


def test_trials_draw_tasks_and_episodes_keep_them():
    env = TrialWrapper(gymnasium.make(env_id("MetaPointEnvNavigation"), max_episode_steps=2))
    tasks = [env.reset(seed=1)[1]["task"], *(env.step(env.action_space.low)[4]["task"] for _ in range(4)),
             env.reset()[1]["task"]]
    assert all(np.array_equal(task, tasks[0]) for task in tasks[:5]) and not np.array_equal(tasks[5], tasks[0])


def test_invalid_arguments_of_trials_are_refused():
    env = gymnasium.make(env_id("MetaPointEnvNavigation"))
    with pytest.raises(ValueError, match="episodes_per_trial: expected an integer of at least 1, got 0"):
        TrialWrapper(env, episodes_per_trial=0)
    with pytest.raises(ValueError, match="env: expected an environment with vector observations, got Box"):
        TrialWrapper(gymnasium.wrappers.ReshapeObservation(env, (2, 1)))
    with pytest.raises(ValueError, match="env: expected .* whose reset returns info\\['task'\\], got .*CartPole"):
        TrialWrapper(gymnasium.make("CartPole-v1")).reset()


@pytest.mark.parametrize("tasks", ["train", "test"])
def test_tasks_are_drawn_from_a_fixed_set(tasks):
    env = gymnasium.make(env_id("HalfCheetahRandVelEnv"), tasks=tasks)
    drawn = [env.reset(seed=seed)[1]["task"] for seed in range(200)]
    assert set(drawn) <= set(load_tasks("HalfCheetahRandVelEnv", tasks)) and len(set(drawn)) > 60
    given = gymnasium.make(env_id("HalfCheetahRandVelEnv"), tasks=[1.0, 2.0], max_velocity=2.0)
    assert {given.reset(seed=seed)[1]["task"] for seed in range(20)} == {1.0, 2.0}


@pytest.mark.parametrize("name, arguments, complaint", [
    ("HalfCheetahRandVelEnv", {"tasks": []}, "tasks: expected at least one task"),
    ("HalfCheetahRandDirecEnv", {"tasks": "test"}, "env: HalfCheetahRandDirecEnv has no fixed tasks"),
    ("HalfCheetahRandVelEnv", {"tasks": "train", "max_velocity": 1.0}, "tasks: .* got 'train' with max_velocity"),
    ("NoSuchEnv", {}, "env: expected .*, got 'NoSuchEnv'"),
])
def test_invalid_arguments_are_refused(name, arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        TaskEnv(name, **arguments)


def test_invalid_options_are_refused():
    env = gymnasium.make(env_id("HalfCheetahRandVelEnv"))
    with pytest.raises(ValueError, match="options: expected the keys task, got tusk"):
        env.reset(options={"tusk": 1.0})
    with pytest.raises(TypeError, match="task 0: expected a finite number, got 'fast'"):
        env.reset(options={"task": "fast"})


# Vectorized environments


def make_both(name, num_envs, mode="NextStep", **kwargs):
    """Returns the vectorized environment and Gymnasium's vector environment of single environments."""
    ours = gymnasium.make_vec(env_id(name), num_envs, "vector_entry_point", autoreset_mode=mode, **kwargs)
    theirs = gymnasium.make_vec(env_id(name), num_envs, "sync", {"autoreset_mode": mode}, **kwargs)
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"] == AutoresetMode(mode)
    for space in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
        assert getattr(ours, space) == getattr(theirs, space)
    return ours, theirs


def compare(name, mode, steps=20, num_envs=3, **kwargs):
    """Compares all results; returns the number of ended episodes."""
    ours, theirs = make_both(name, num_envs, mode, **kwargs)
    assert_same(ours.reset(seed=5), theirs.reset(seed=5))
    ours.action_space.seed(0)
    num_ended = 0
    for _ in range(steps):
        actions = ours.action_space.sample()
        (*answer, infos), (*expected, expected_infos) = ours.step(actions), theirs.step(actions)
        assert_same([*answer, *sorted(infos.items())], [*expected, *sorted(expected_infos.items())])
        ended = answer[2] | answer[3]
        num_ended += ended.sum()
        if mode == "Disabled" and ended.any():
            assert_same(ours.reset(options={"reset_mask": ended}), theirs.reset(options={"reset_mask": ended}))
    theirs.close()
    return num_ended


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name, kwargs", [
    ("CartPoleMassEnv", {"observe_task": True}), ("MetaBernoulliBanditEnv", {}), ("MetaPointEnvWalls", {}),
    ("HopperRandParamsEnv", {"tasks": "test"}),
])
def test_vectorized_environment_equals_that_of_gymnasium_bit_for_bit(name, mode, kwargs):
    assert compare(name, mode, max_episode_steps=6, **kwargs) >= 6
    assert compare(name, mode, max_episode_steps=50, steps=60 if name == "CartPoleMassEnv" else 2, **kwargs) >= 3 * (
        name == "CartPoleMassEnv")  # poles fall at different times


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("MetaWorld")])
def test_every_vectorized_environment_equals_that_of_gymnasium_bit_for_bit(name):
    assert compare(name, "NextStep", max_episode_steps=6) >= 6


def test_vectorized_environment_is_the_default_of_make_vec():
    env = gymnasium.make_vec(env_id("MetaPointEnvV2"), 2)
    assert type(env).__name__ == "VectorTaskEnv" and env.spec.max_episode_steps == 100
    env.reset(seed=0)
    ends = np.array([env.step(np.zeros((2, 2)))[3] for _ in range(101)])
    assert ends[99].all() and not ends[:99].any() and not ends[100].any()


def test_given_tasks_apply_until_the_next_automatic_reset():
    env = gymnasium.make_vec(env_id("HalfCheetahRandVelEnv"), 3, max_episode_steps=2)
    _, infos = env.reset(seed=0, options={"tasks": [0.5, 1.0, 1.5]})
    assert infos["task"].tolist() == [0.5, 1.0, 1.5] and infos["_task"].all()
    steps = [env.step(np.zeros((3, 6))) for _ in range(3)]
    assert [step[4]["task"].tolist() == [0.5, 1.0, 1.5] for step in steps] == [True, True, False]
    mask = np.array([False, True, False])
    _, infos = env.reset(options={"task": 2.5, "reset_mask": mask})
    assert infos["task"][1] == 2.5 and infos["_task"].tolist() == mask.tolist()


@pytest.mark.parametrize("options, complaint", [
    ({"tasks": [1.0]}, r"options: tasks: expected 2 entries, one per copy, got \[1.0\]"),
    ({"reset_mask": [True]}, "options: reset_mask: expected 2 entries"),
    ({"task": 1.0, "tasks": [1.0, 2.0]}, "options: expected task or tasks, got both"),
])
def test_invalid_options_of_a_vectorized_environment_are_refused(options, complaint):
    env = gymnasium.make_vec(env_id("HalfCheetahRandVelEnv"), 2)
    with pytest.raises(ValueError, match=complaint):
        env.reset(options=options)
    with pytest.raises(ValueError, match="seed: expected 2 entries"):
        env.reset(seed=[1, 2, 3])


def test_invalid_arguments_of_a_vectorized_environment_are_refused():
    with pytest.raises(ValueError, match="autoreset_mode: expected one of .*'NextStep'.*, got 'never'"):
        gymnasium.make_vec(env_id("MetaPointEnvV2"), 2, autoreset_mode="never")
    with pytest.raises(ValueError, match='render_mode: expected None, or vectorization_mode="sync"'):
        gymnasium.make_vec(env_id("MetaPointEnvV2"), 2, render_mode="rgb_array")
    with pytest.raises(ValueError, match="num_envs: expected an integer of at least 1, got 0"):
        gymnasium.make_vec(env_id("MetaPointEnvV2"), 0)
    env = gymnasium.make_vec(env_id("MetaPointEnvV2"), 2, autoreset_mode="Disabled", max_episode_steps=1)
    with pytest.raises(RuntimeError, match=r"step: call reset\(\) first"):
        env.step(np.zeros((2, 2)))
    env.reset()
    with pytest.raises(ValueError, match="actions: expected 2 rows, one per copy, got 3"):
        env.step(np.zeros((3, 2)))
    env.step(np.zeros((2, 2)))
    with pytest.raises(RuntimeError, match=r"step: expected running episodes; first reset the copies \[0 1\]"):
        env.step(np.zeros((2, 2)))


# Environments of users


def test_own_environments_may_omit_optional_parts():
    """`sample_tasks` without a generator, and no vectorization."""
    name = "tests.helpers.sampling:Scripted"
    env = TaskEnv(name)
    assert env.reset(seed=0)[1]["task"] == 9 and env.step(np.zeros(2))[0].tolist() == [9.0, 1.0]
    with pytest.raises(ValueError, match="name: expected an environment with make_batched, or vectorization_mode="):
        VectorTaskEnv(name, 2)


def test_no_copy_is_reset_with_an_empty_mask():
    envs = gymnasium.make_vec("meta_policy_search/MetaPointNavigation-v0", 2, autoreset_mode="Disabled")
    first, _ = envs.reset(seed=0)
    observations, _ = envs.reset(options={"reset_mask": np.zeros(2, bool)})
    np.testing.assert_array_equal(observations, first)


def test_all_copies_are_reset_before_the_first_step():
    envs = gymnasium.make_vec("meta_policy_search/MetaPointNavigation-v0", 2)
    envs.reset(seed=np.int64(0), options={"reset_mask": np.array([True, False])})
    with pytest.raises(RuntimeError, match=r"step: call reset\(\) first, with all copies"):
        envs.step(np.zeros((2, 2)))
