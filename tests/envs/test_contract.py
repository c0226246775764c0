"""Contract tests for every registered environment."""
import copy
import importlib.util
import pickle
import re

import numpy as np
import pytest

from meta_policy_search import MetaPointEnvCorner
from meta_policy_search.envs import BatchedEnv, MetaEnv, available_envs, get_env_class, mujoco_envs, normalize, vary
from meta_policy_search.envs.compat import adapt_env
from meta_policy_search.envs.spaces import is_box, is_discrete

LARGE = ["MetaWorldML10", "MetaWorldML25", "MetaWorldML45"]  # MetaWorldML1 with other tasks; see test_meta_world.py
ALL = [name for name in available_envs() if name not in LARGE and get_env_class(name).__name__ == name]  # no aliases
SEPARATE_COPIES = ["MetaWorldML1"]  # with foreign simulators: copies start with a reset
ONE_TASK = ["MetaPointEnvOrigin"]
EQUAL_NEAR_THE_START = ["MetaPointEnvSemicircle"]  # rewards are zero
FORMS_OF_ALL = pytest.mark.parametrize("form", [
    "plain", pytest.param("normalized", marks=pytest.mark.thorough(but="normalized-MetaPointEnvMomentum"))])
NO_TASKS = (None, "north", object(), [1.0, 2.0, 3.0, 4.0], np.nan, {"color": "red"})
CLONES = pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])

ON_MUJOCO_PY = [
    pytest.param(f"{name} on mujoco-py", marks=pytest.mark.mujoco_py) for name in ALL if name in mujoco_envs.__all__]

needs_metaworld = pytest.mark.skipif(importlib.util.find_spec("metaworld") is None, reason="needs metaworld")

every_env = pytest.mark.parametrize("name", [
    pytest.param(name, marks=needs_metaworld) if name.startswith("MetaWorld") else name for name in ALL] + ON_MUJOCO_PY)
every_env_copied_during_a_path = pytest.mark.parametrize(
    "name", [name for name in ALL if name not in SEPARATE_COPIES] + ON_MUJOCO_PY)


def normalized(env):
    """Returns a normalized environment after some training."""
    env = normalize(env, scale_reward=0.5, normalize_obs=True, normalize_reward=True)
    env.averages.update(observations=(np.full(env.observation_space.shape, 0.3), np.array(2.0)),
                        rewards=(np.array(0.5), np.array(3.0)))
    return env


FORMS = {"plain": lambda env: env, "normalized": normalized}


def make_env(name, **kwargs):
    """Creates an environment from its name, or from `name on engine`."""
    name, _, engine = name.partition(" on ")
    return get_env_class(name)(**kwargs, **({"engine": engine} if engine else {}))


def draw_actions(space, rng, count=None):
    """Draws actions for `count` environments or for one; a third of the entries is outside a box."""
    shape = () if count is None else (count,)
    if is_discrete(space):
        return rng.integers(space.n, size=shape)
    middle, half = (space.high + space.low) / 2.0, (space.high - space.low) / 2.0
    return middle + half * rng.normal(0.0, 1.0, (*shape, *space.shape))


def mixed_tasks(env, count):
    """Returns tasks for `count` environments; consecutive pairs of environments share one task."""
    tasks = env.sample_tasks((count + 1) // 2, np.random.default_rng(0))
    return [tasks[i // 2] for i in range(count)]


def start(batched, seed=0):
    """Resets all environments; environment `i` draws from its own generator."""
    rngs = [np.random.default_rng((seed, i)) for i in range(batched.num_envs)]
    return batched.reset(np.arange(batched.num_envs), rngs)


def start_alone(env, seed, i=0):
    """Resets a single environment like environment `i` in `start`."""
    adapt_env(env).np_random = np.random.default_rng((seed, i))
    return env.reset()[0]


def walk(env, seed=0, steps=5):
    """Returns copies of the observations and rewards of a few steps with seeded actions."""
    rng = np.random.default_rng(seed)
    answers = [env.step(draw_actions(env.action_space, rng)) for _ in range(steps)]
    return [answer[0].copy() for answer in answers], [answer[1] for answer in answers]


def arrays_in(value):
    """Returns all arrays of a task."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
    return [item for item in values if isinstance(item, np.ndarray)]


@every_env
@FORMS_OF_ALL
def test_results_match_the_spaces(name, form):
    env = FORMS[form](make_env(name))
    assert isinstance(env, MetaEnv) and adapt_env(env).make_batched(1) is not None
    assert is_box(env.observation_space) and env.observation_space.dtype == np.float64
    assert is_discrete(env.action_space) or (is_box(env.action_space) and env.action_space.dtype == np.float64)

    observation, info = env.reset(seed=3)
    assert env.observation_space.contains(observation) and observation.dtype == np.float64 and info == {}
    env.action_space.seed(0)
    for _ in range(3):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation) and observation.dtype == np.float64
        assert [type(value) for value in (reward, terminated, truncated, info)] == [float, bool, bool, dict]
        assert np.isfinite(reward) and all(np.isfinite(value).all() for value in info.values())


@every_env
def test_vectorized_environment_returns_arrays(name):
    env = make_env(name)
    batched = env.make_batched(5)
    assert isinstance(batched, BatchedEnv) and batched.num_envs == 5 and batched.max_threads >= 1
    assert (batched.observation_space, batched.action_space) == (env.observation_space, env.action_space)
    env.reset(seed=0)
    keys = set(env.step(draw_actions(env.action_space, np.random.default_rng(0)))[4])

    assert start(batched).shape == (5, *env.observation_space.shape)
    with pytest.raises(ValueError, match="actions: expected shape"):
        batched.step(draw_actions(env.action_space, np.random.default_rng(0), 4))
    for env_ids, count in ((None, 5), (np.array([4, 1]), 2), (np.array([], dtype=int), 0)):
        answer = batched.step(draw_actions(env.action_space, np.random.default_rng(0), count), env_ids)
        assert answer.observations.shape == (count, *env.observation_space.shape)
        assert answer.rewards.shape == answer.terminated.shape == answer.truncated.shape == (count,)
        assert answer.observations.dtype == answer.rewards.dtype == np.float64
        assert answer.terminated.dtype == answer.truncated.dtype == bool
        assert set(answer.env_infos) == (keys if count or name not in SEPARATE_COPIES else set())
        assert all(len(values) == count for values in answer.env_infos.values())


@every_env
@FORMS_OF_ALL
def test_vectorized_environment_equals_single_environments_bit_for_bit(name, form):
    """Environments with mixed tasks that are stepped and reset in changing groups equal single environments."""
    n, steps, looked_at = 19, 40, (0, 7, 18)
    env = FORMS[form](make_env(name))
    batched = env.make_batched(n)
    tasks = mixed_tasks(env, n)
    batched.set_tasks(tasks)
    alone = {i: FORMS[form](make_env(name)) for i in looked_at}
    observations = start(batched)
    for i, single in alone.items():
        single.set_task(tasks[i])
        np.testing.assert_array_equal(start_alone(single, 0, i), observations[i])

    rng = np.random.default_rng(1)
    for step in range(steps):
        env_ids = None if step % 3 == 0 else rng.permutation(n)[: 1 + step % n]
        rows = np.arange(n) if env_ids is None else env_ids
        actions = draw_actions(env.action_space, rng, len(rows))
        answer = batched.step(actions, env_ids)
        for row, i in enumerate(rows):
            if i in alone:
                observation, reward, terminated, truncated, info = alone[i].step(actions[row])
                np.testing.assert_array_equal(observation, answer.observations[row])
                assert (reward, terminated, truncated) == (
                    answer.rewards[row], answer.terminated[row], answer.truncated[row])
                assert info == {key: values[row] for key, values in answer.env_infos.items()}

        has_ended = rows[answer.terminated | answer.truncated | (rng.random(len(rows)) < 0.05)]
        if len(has_ended):
            rngs = [np.random.default_rng((step, i)) for i in has_ended]
            observations = batched.reset(has_ended, rngs)
            for row, i in enumerate(has_ended):
                if i in alone:
                    np.testing.assert_array_equal(start_alone(alone[i], step, i), observations[row])


@pytest.mark.parametrize("make", [MetaPointEnvCorner, lambda: vary("Pendulum-v1", g=(5.0, 15.0))])
@pytest.mark.parametrize("seed", [1.5, True, "a", -1])
def test_seeds_are_integers(make, seed):
    with pytest.raises((TypeError, ValueError), match=f"seed: expected an integer of at least 0, got {seed!r}"):
        make().reset(seed=seed)


def test_discrete_actions_are_integers():
    env = make_env("MetaBernoulliBanditEnv")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action: expected an integer \(shape \(\)\), got shape \(1,\)"):
        env.step(np.array([1]))


@every_env
@FORMS_OF_ALL
def test_runs_depend_on_the_seed(name, form):
    def run(seed):
        env = FORMS[form](make_env(name))
        first = env.reset(seed=seed)[0].copy()
        tasks = env.sample_tasks(3)
        env.set_task(tasks[0])
        return tasks, first, walk(env)

    np.testing.assert_equal(run(1), run(1))
    with pytest.raises(AssertionError):
        np.testing.assert_equal(run(1), run(2))


@every_env
def test_tasks_are_drawn_from_the_given_or_the_default_generator(name):
    env = make_env(name)
    given = env.sample_tasks(20, rng=np.random.default_rng(7))
    assert isinstance(given, list) and len(given) == 20
    np.testing.assert_equal(env.sample_tasks(20, rng=np.random.default_rng(7)), given)
    env.np_random = np.random.default_rng(7)
    np.testing.assert_equal(env.sample_tasks(20), given)
    if name not in ONE_TASK:
        with pytest.raises(AssertionError):
            np.testing.assert_equal(env.sample_tasks(20), given)


@every_env
@FORMS_OF_ALL
def test_get_task_returns_the_task_set(name, form):
    env = FORMS[form](make_env(name))
    first = env.get_task()
    tasks, batched = env.sample_tasks(3, np.random.default_rng(0)), env.make_batched(3)
    np.testing.assert_equal(batched.get_tasks(), [first] * 3)
    batched.set_tasks(tasks)
    np.testing.assert_equal(batched.get_tasks(), tasks)
    for task in tasks:
        env.set_task(pickle.loads(pickle.dumps(task)))
        np.testing.assert_equal(env.get_task(), task)
        env.set_task(env.get_task())
        np.testing.assert_equal(env.get_task(), task)
    env.set_task(first)
    np.testing.assert_equal(env.get_task(), first)


@every_env
def test_tasks_change_rewards_or_motion(name):
    """With equal start and actions, some of a few tasks differ in rewards or observations."""
    env = make_env(name)
    answers = []
    for task in env.sample_tasks(6, np.random.default_rng(0)):
        env.set_task(task)
        start_alone(env, 0)
        answers.append(np.concatenate([np.ravel(part) for part in walk(env, steps=30)]))
    assert any((answer != answers[0]).any() for answer in answers[1:]) != (name in ONE_TASK + EQUAL_NEAR_THE_START)


@every_env_copied_during_a_path
@FORMS_OF_ALL
@CLONES
def test_copy_made_during_a_path_continues_identically_and_independently(name, form, clone):
    env = FORMS[form](make_env(name))
    env.set_task(env.sample_tasks(1, np.random.default_rng(1))[0])
    env.reset(seed=0)
    walk(env, seed=0)
    twin = clone(env)
    ours = walk(env, seed=1)
    np.testing.assert_equal(walk(twin, seed=1), ours)  # stepping the original does not step the copy
    np.testing.assert_equal(twin.get_task(), env.get_task())
    np.testing.assert_array_equal(twin.reset()[0], env.reset()[0])  # the generator was copied


@every_env_copied_during_a_path
@CLONES
def test_copy_of_a_vectorized_environment_continues_identically(name, clone):
    batched = make_env(name).make_batched(3)
    batched.set_tasks(mixed_tasks(make_env(name), 3))
    start(batched)
    actions = draw_actions(batched.action_space, np.random.default_rng(0), 3)
    batched.step(actions)
    twin = clone(batched)
    ours, theirs = batched.step(actions), twin.step(actions)
    np.testing.assert_array_equal(theirs.observations, ours.observations)
    np.testing.assert_array_equal(theirs.rewards, ours.rewards)


@every_env
def test_environments_share_no_state(name):
    one, other, reference = (make_env(name) for _ in range(3))
    for env in (other, reference):
        env.reset(seed=0)
    one.set_task(one.sample_tasks(5, np.random.default_rng(1))[-1])
    one.reset(seed=1)
    walk(one)
    one.make_batched(2).set_tasks(one.sample_tasks(2))
    np.testing.assert_equal(other.get_task(), reference.get_task())
    np.testing.assert_equal(walk(other), walk(reference))


@every_env
@FORMS_OF_ALL
def test_inputs_and_outputs_are_copied(name, form):
    env, reference = (FORMS[form](make_env(name)) for _ in range(2))
    (task,) = env.sample_tasks(1, np.random.default_rng(1))
    for one in (env, reference):
        one.set_task(copy.deepcopy(task))
    env.set_task(task)
    start_alone(env, 0)[:] = 99.0
    start_alone(reference, 0)
    for array in arrays_in(task) + arrays_in(env.get_task()):
        array[...] = 77.0
    np.testing.assert_equal(env.get_task(), reference.get_task())
    rng = np.random.default_rng(0)
    for _ in range(3):
        action = draw_actions(env.action_space, rng)
        expected = reference.step(np.array(action))
        answer = env.step(action)
        np.testing.assert_array_equal(answer[0], expected[0])
        assert answer[1] == expected[1]
        answer[0][:] = 99.0
        if is_box(env.action_space):
            action[:] = 99.0


@every_env
def test_actions_outside_a_box_are_clipped(name):
    env, reference = make_env(name), make_env(name)
    if is_discrete(env.action_space):
        pytest.skip("there is no nearest choice")
    low, high = env.action_space.low, env.action_space.high
    for one in (env, reference):
        one.reset(seed=0)
    far = np.full_like(low, np.finfo(float).max)
    for outside, nearest in ((low - 5.0, low), (high * 3.0 + 1.0, high), (far, high)):
        answer, expected = env.step(outside), reference.step(nearest)
        np.testing.assert_array_equal(answer[0], expected[0])
        assert answer[1] == expected[1]


@every_env
def test_invalid_actions_are_refused_without_a_step(name):
    env, reference = make_env(name), make_env(name)
    for one in (env, reference):
        one.reset(seed=0)
    bad = [(np.zeros((3, 2)), "shape"), (np.zeros(env.action_space.shape + (1,)), "shape")]
    if is_box(env.action_space):
        for value in (np.nan, np.inf):
            action = np.zeros(env.action_space.shape)
            action[-1] = value
            bad.append((action, "finite"))
    else:
        bad += [(0.5, "integers"), (1.0, "integers"), (True, "integers")]
        bad += [(-1, "integers from 0 to"), (env.action_space.n, "integers from 0 to")]
    for action, complaint in bad:
        with pytest.raises(ValueError, match=f"actions?: expected .*{complaint}"):
            env.step(action)
    np.testing.assert_equal(walk(env), walk(reference))


@every_env
def test_invalid_task_is_refused_and_changes_nothing(name):
    env = make_env(name)
    before, batched = env.get_task(), env.make_batched(2)
    for task in NO_TASKS:
        with pytest.raises((TypeError, ValueError), match="task( 0.*)?: .*expected"):
            env.set_task(task)
        with pytest.raises((TypeError, ValueError), match="task 1.*: .*expected"):
            batched.set_tasks([before, task])
    with pytest.raises(ValueError, match="tasks: expected 2 tasks, one per environment, got 3"):
        batched.set_tasks([before] * 3)
    np.testing.assert_equal([env.get_task(), *batched.get_tasks()], [before] * 3)


CORNERS = r": expected one of the corners \[\[-2.0, -2.0\].*got \(2.0, 1.0\)"
SCALED = ("HalfCheetahRandMassEnv", "HalfCheetahRandBodyEnv", "HalfCheetahRandMassVelEnv", "Walker2DRandMassVelEnv")


@pytest.mark.parametrize("name, task, complaint", [
    ("AntRandDirecEnv", 0.5, ": expected one of -1.0, 1.0, got 0.5"),
    ("AntRandDirec2DEnv", (1.0, 1.0), r": expected a unit vector \(x, y\), got \(1.0, 1.0\)"),
    ("AntRandDirec2DEnv", 1.0, r": expected a unit vector \(x, y\), got 1.0"),
    ("AntRandGoalEnv", (np.inf, 1.0), r": expected two finite numbers \(x, y\), got \(inf, 1.0\)"),
    *((name, lambda task: [0.0] * len(task), r": expected finite numbers \(mass.*\), factors above 0, got \[0.0")
      for name in SCALED),
    ("HopperRandParamsEnv", {"gravity": np.zeros(3)}, ": parameter: .*'gravity'"),
    ("HopperRandParamsEnv", {"body_mass": np.full(5, -1.0)}, ": body_mass: expected finite numbers of at least 0"),
    ("HopperRandParamsEnv", {"dof_damping": np.full(6, np.nan)}, ": dof_damping: expected finite"),
    *(("CartPoleMassEnv", masses, ": expected two masses") for masses in ((1.0,), (1.0, 0.0))),
    *(("PendulumMassEnv", mass, ": expected an array with one mass") for mass in (1.0, (-1.0,), (np.nan,))),
    ("KhazadDumEnv", -0.1, ": expected a finite number of at least 0, got -0.1"),
    ("MetaBernoulliBanditEnv", [0.5, 0.5], r": expected 5 probabilities in \[0, 1\], got \[0.5, 0.5\]"),
    ("MetaBernoulliBanditEnv", [0.5, -0.1, 0.5, 0.5, 0.5], r": expected 5 probabilities in \[0, 1\], got \[0.5, -0.1"),
    ("MetaTabularMDPEnv", [0.5], ": expected a dict with the keys transitions and reward_means, got"),
    ("MetaTabularMDPEnv", lambda task: {**task, "reward_means": np.zeros((5, 10))},
     r", reward_means: expected finite numbers of shape \(10, 5\)"),
    ("MetaTabularMDPEnv", lambda task: {**task, "transitions": task["transitions"][:1]},
     r", transitions: expected probabilities of shape \(10, 5, 10\) that sum to 1 over next states"),
    *(("MetaTabularMDPEnv", lambda task, p=p: {**task, "transitions": np.tile(p, (10, 5, 1))},
       ", transitions: expected probabilities") for p in (np.full(10, 0.1001), 2.0 * np.eye(10)[0] - 0.1)),
    ("MetaPointEnvCorner", (2.0, 1.0), CORNERS), ("MetaPointEnvMomentum", (2.0, 1.0), CORNERS),
    ("MetaPointEnvWalls", (2.0, 2.0), ": expected a dict with the keys goal, gap_1 and gap_2"),
    ("MetaPointEnvWalls", lambda task: {**task, "goal": (2.0, 1.0)}, ", goal" + CORNERS),
    ("MetaPointEnvWalls", lambda task: {**task, "gap_1": (0.5, 0.0)}, ", gap_1: expected a point on the wall, at dist"),
    ("MetaPointEnvWalls", lambda task: {**task, "gap_2": (np.nan, 0.0)}, ", gap_2: expected two finite numbers"),
])
def test_invalid_task_is_named(name, task, complaint):
    env = make_env(name)
    with pytest.raises(ValueError, match=f"^task 0{complaint}"):
        env.set_task(task(env.get_task()) if callable(task) else task)


@every_env
def test_arguments_are_checked(name):
    env = make_env(name)
    for count, error in ((0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match="n_tasks: expected an integer"):
            env.sample_tasks(count)
        with pytest.raises(error, match="num_envs: expected an integer"):
            env.make_batched(count)
    with pytest.raises(TypeError, match="color"):
        make_env(name, color="red")


SIZES = [("MetaBernoulliBanditEnv", "num_arms"), ("MetaTabularMDPEnv", "num_states"),
         ("MetaTabularMDPEnv", "num_actions")]
TO_CORNERS = ["MetaPointEnvCorner", "MetaPointEnvMomentum", "MetaPointEnvWalls"]


@pytest.mark.parametrize("name, arguments, error, complaint", [
    ("HalfCheetahRandVelEnv", {"max_velocity": 0.0}, ValueError, "max_velocity: .*0.0"),
    ("HalfCheetahRandVelEnv", {"max_velocity": "fast"}, TypeError, "max_velocity: .*'fast'"),
    ("SwimmerRandVelEnv", {"min_velocity": 0.3}, ValueError, "max_velocity: expected a number above 0.3, got 0.2"),
    ("SwimmerRandVelEnv", {"min_velocity": "slow"}, TypeError, "min_velocity: expected a finite number, got 'slow'"),
    *((name, {"contact_forces": 1}, TypeError, "contact_forces: expected True or False, got 1")
      for name in ("AntRandDirecEnv", "AntRandDirec2DEnv", "AntRandGoalEnv")),
    ("AntRandDirecEnv", {"goal_direction": 0.5}, ValueError, "goal_direction: expected one of -1.0, 1.0, got 0.5"),
    *(("AntRandDirec2DEnv", {"goal_direction": value}, ValueError, "goal_direction: expected a unit vector .*, got")
      for value in ((1.0, 1.0), 1.0)),
    ("AntRandGoalEnv", {"goal": (np.inf, 1.0)}, ValueError, "goal: expected two finite numbers .*, got .inf, 1.0"),
    ("HopperRandParamsEnv", {"log_scale_limit": -1.0}, ValueError, "log_scale_limit: .*-1.0"),
    ("HopperRandParamsEnv", {"rand_params": ["geom_size"]}, ValueError, "rand_params: .*'body_mass'.*'geom_size'"),
    *(("HopperRandParamsEnv", {"rand_params": names}, ValueError,
       f"rand_params: expected one or more of .*, got {re.escape(repr(names))}") for names in ([], "body_mass", None)),
    *((name, {size: number}, error, f"{size}: expected an integer of at least 1")
      for name, size in SIZES for number, error in ((0, ValueError), (2.0, TypeError))),
    *((name, {"reward_type": "dens"}, ValueError, "reward_type: expected one of 'dense', .*'sparse', got 'dens'")
      for name in TO_CORNERS),
    *((name, {"sparse_reward_radius": radius}, ValueError, "sparse_reward_radius: expected a finite number above 0")
      for name in TO_CORNERS for radius in (0.0, -1.0, np.nan)),
])
def test_invalid_argument_is_named(name, arguments, error, complaint):
    with pytest.raises(error, match=f"^{complaint}"):
        make_env(name, **arguments)


@every_env
@FORMS_OF_ALL
def test_diagnostics_are_finite_numbers_under_their_prefix(name, form, logged):
    env = FORMS[form](make_env(name))
    paths = []
    for seed, length in ((0, 3), (1, 2)):
        env.reset(seed=seed)
        rng = np.random.default_rng(seed)
        infos = [env.step(draw_actions(env.action_space, rng))[4] for _ in range(length)]
        paths.append({"env_infos": {key: np.array([info[key] for info in infos]) for key in infos[0]}})
    env.log_diagnostics(paths, prefix="Step_1-")
    assert all(key.startswith("Step_1-") and np.isfinite(value) for key, value in logged.items())


@every_env
def test_creating_and_using_an_environment_prints_nothing(name, capfd):
    env = make_env(name)
    env.reset(seed=0)
    walk(env)
    env.close()
    assert tuple(capfd.readouterr()) == ("", "")
