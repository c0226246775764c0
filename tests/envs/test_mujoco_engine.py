"""Tests the physics engine: agreement with MuJoCo 2.1.0, independent rows, divergence, copies, silent start."""
import copy
import functools
import gc
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from meta_policy_search.envs.interface import PhysicsError
from meta_policy_search.envs.mujoco_envs.engines import base as engine_module
from meta_policy_search.envs.mujoco_envs.engines import make_engine
from meta_policy_search.envs.mujoco_envs.engines import mujoco as engine_mujoco
from meta_policy_search.envs.mujoco_envs.engines.base import DERIVED, INERTIALS, ROBOTS, model_file
from meta_policy_search.envs.mujoco_envs.engines.mujoco import MujocoEngine
from tests.helpers.robots import cheetahs, moving, reference_of

FLOATING = ("ant", "humanoid")  # robots with a free joint
ENGINES = pytest.mark.parametrize("name", ["mujoco", pytest.param("mujoco-py", marks=pytest.mark.mujoco_py)])
THREADS = Path("/proc/self/task")  # one entry per native thread of this process


def controls_for(num_envs, steps, seed=1):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (steps, num_envs, 6))


def assert_same_bits(state, other):
    np.testing.assert_array_equal(state.qpos, other.qpos)
    np.testing.assert_array_equal(state.qvel, other.qvel)


def plant(engine, row, index, value):
    """Sets a number of a robot (of time, qpos, qvel) without checks, like a simulation that diverges."""
    engine._states[row, index] = value


def floating_controls(engine, steps, seed=1):
    """Returns controls `[steps, num_envs, nu]` in their full range."""
    shape = (steps, engine.num_envs, engine.nu)
    return np.random.default_rng(seed).uniform(engine.control_low, engine.control_high, shape)


@ENGINES
@pytest.mark.parametrize("robot", ROBOTS)
def test_ten_control_steps_agree_with_mujoco_2_1_0(robot, name):
    """The humanoid's solver stops before convergence, which amplifies rounding differences between versions."""
    tolerance = 1e-10 if name == "mujoco-py" else 1e-4 if robot == "humanoid" else 1e-9
    reference = reference_of(robot)
    engine = make_engine(name, robot, 5, int(reference["frame_skip"]))
    engine.set_state(reference["qpos0"], reference["qvel0"])
    for t in range(10):
        engine.step(reference["actions"][:, t])
        state = engine.get_state()
        np.testing.assert_allclose(state.qpos, reference["qpos"][:, t], rtol=0, atol=tolerance)
        np.testing.assert_allclose(state.qvel, reference["qvel"][:, t], rtol=0, atol=tolerance)


@pytest.mark.parametrize("inertials", INERTIALS)
@pytest.mark.parametrize("robot", ROBOTS)
def test_no_robot_has_a_sparse_jacobian(robot, inertials):
    """MuJoCo 4.0.0 computes wrong accelerations from sparse constraint Jacobians."""
    import mujoco

    assert not mujoco.mj_isSparse(engine_mujoco.compile_model(robot, inertials))


def test_modern_inertials_equal_those_computed_by_the_installed_mujoco(tmp_path, monkeypatch):
    import mujoco

    monkeypatch.chdir(tmp_path)  # MuJoCo writes warnings about the file to the working directory
    model = mujoco.MjModel.from_xml_path(str(model_file("half_cheetah")))
    modern = MujocoEngine("half_cheetah", 1, 5, inertials="modern")
    for name in ("body_mass", "body_inertia", "body_ipos", "body_iquat", "body_subtreemass", "body_invweight0"):
        np.testing.assert_allclose(modern.get_parameter(name), getattr(model, name), rtol=1e-12, err_msg=name)
    assert modern.get_parameter("body_mass").sum() == pytest.approx(14.0)  # kg, `settotalmass` of the file

    old = MujocoEngine("half_cheetah", 1, 5)
    assert np.abs(old.get_parameter("body_mass") - modern.get_parameter("body_mass")).max() > 0.01


def test_control_step_equals_frame_skip_simulation_steps():
    twice, once = MujocoEngine("half_cheetah", 1, 4), MujocoEngine("half_cheetah", 1, 8)
    assert (twice.dt, once.dt) == (0.04, 0.08)
    controls = controls_for(1, 1)[0]
    twice.step(controls)
    twice.step(controls)
    once.step(controls)
    np.testing.assert_allclose(twice.get_state().qpos, once.get_state().qpos, rtol=0, atol=1e-12)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda engine: pickle.loads(pickle.dumps(engine))])
def test_copy_during_a_run_continues_identically_and_shares_nothing(copied):
    engine = cheetahs(4, inertials="modern", num_threads=2, derived=DERIVED)
    masses = [{"body_mass": engine.get_parameter("body_mass") * factor} for factor in (1.0, 1.1, 1.2, 1.3)]
    engine.set_parameters(masses)
    first, second = np.split(controls_for(4, 10), 2)
    for controls in first:
        engine.step(controls)
    twin = copied(engine)
    assert (twin.robot, twin.frame_skip, twin.inertials, twin.num_threads) == ("half_cheetah", 5, "modern", 2)
    for controls in second:
        engine.step(controls)
    for controls in second:  # the copy was not stepped with the original
        twin.step(controls)
    assert_same_bits(twin.get_state(), engine.get_state())


@ENGINES
def test_pickle_holds_no_compiled_model(name):
    engine = cheetahs(2, name)
    engine.step(controls_for(2, 1)[0])
    assert len(pickle.dumps(engine)) < 5000  # bytes; a compiled model has 500,000


@ENGINES
def test_changed_masses_update_derived_constants_of_that_robot_only(name):
    engine = cheetahs(2, name, derived=("cinert",))
    mass, total = engine.get_parameter("body_mass"), engine.get_parameter("body_subtreemass")[1]
    engine.set_parameters([{}, {"body_mass": 2.0 * mass}])
    *_, changed = engine._models
    assert changed.body_subtreemass[1] == pytest.approx(2.0 * total)
    assert engine.get_parameter("body_subtreemass")[1] == total
    np.testing.assert_allclose(engine.get_state().derived["cinert"][:, :, 9], [mass, 2.0 * mass])
    engine.set_parameters([{}, {}])
    np.testing.assert_allclose(engine.get_state().derived["cinert"][1, :, 9], mass)


@ENGINES
@pytest.mark.parametrize("robot, frame_skip, index, value", [
    *(("half_cheetah", frame_skip, index, value) for frame_skip in (1, 5) for index, value in (
        (1, np.nan), (1, np.inf), (1, 2e10),  # in the position: MuJoCo resets the robot
        (12, np.nan), (12, np.inf), (12, -2e10),  # in the velocity: MuJoCo resets the robot
        (12, 1e9))),  # in the acceleration of the first simulation step: MuJoCo resets the robot
    *(("ant", 5, index, value) for index, value in (
        (1, np.nan), (1, np.inf), (1, 2e10), (1, -2e10), (20, np.nan), (20, np.inf), (20, 1e9), (29, 2e10),
        (29, -2e10))),
])
def test_diverged_robot_raises_and_none_moves(tmp_path, monkeypatch, capfd, name, robot, frame_skip, index, value):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engine_module, "ROBOTS_PER_THREAD", 1)  # three robots are simulated by two threads
    engine, sound = (make_engine(name, robot, 4, frame_skip, num_threads=2, derived=DERIVED) for _ in range(2))
    plant(engine, 0, index, value)
    plant(engine, 2, index, value)
    before = engine.get_state()
    for _ in range(3):
        with pytest.raises(PhysicsError, match=f"{robot} diverged in environments \\[2, 0\\]:") as raised:
            engine.step(np.zeros((3, engine.nu)), np.array([3, 2, 0]))
        assert raised.value.env_ids == (2, 0)
        np.testing.assert_equal(engine.get_state(), before)
    others = np.array([1, 3])
    engine.step(np.zeros((2, engine.nu)), others)  # the other robots continue unaffected
    sound.step(np.zeros((2, engine.nu)), others)
    np.testing.assert_equal(engine.get_state(others), sound.get_state(others))
    assert list(tmp_path.iterdir()) == [] and (name == "mujoco-py" or capfd.readouterr() == ("", ""))  # no log file


def test_user_handler_of_mujoco_warnings_is_kept():
    import mujoco

    ours, messages = mujoco.get_mju_user_warning(), []
    mujoco.set_mju_user_warning(messages.append)
    try:
        engine_mujoco.compile_model.cache_clear()
        engine = MujocoEngine("half_cheetah", 1, 1)
        plant(engine, 0, 12, np.nan)
        with pytest.raises(PhysicsError):
            engine.step(np.zeros((1, 6)))
    finally:
        mujoco.set_mju_user_warning(ours)
    assert "QVEL" in messages[0]


def test_overflow_in_the_last_simulation_step_raises():
    engine = MujocoEngine("half_cheetah", 2, 1)
    plant(engine, 1, 2, 100.0)  # m, in the air
    plant(engine, 1, [1, 10], [9.99e9, 9e9])  # m, m/s: exceeds 1e10 m after 0.01 s
    with pytest.raises(PhysicsError) as raised:
        engine.step(np.zeros((2, 6)))
    assert raised.value.env_ids == (1,)


def test_physics_error_can_be_pickled():
    error = pickle.loads(pickle.dumps(PhysicsError("it fell apart", [3, 5])))
    assert str(error) == "it fell apart" and error.env_ids == (3, 5)


# Robots with a free joint


@pytest.mark.parametrize("robot", ["half_cheetah", *FLOATING])
@pytest.mark.parametrize("num_threads", [1, 3, None])
def test_row_is_independent_of_other_rows_and_of_the_order(robot, num_threads):
    together, parts = moving(robot, 37, num_threads=num_threads), moving(robot, 37)
    single = MujocoEngine(robot, 1, 5)
    single.set_state(*parts.get_state(np.array([20]))[:2])
    first, second = np.split(np.random.default_rng(0).permutation(37), [9])
    for controls in floating_controls(together, 6):
        together.step(controls)
        single.step(controls[20:21])
        parts.step(controls[first], first)
        parts.step(controls[second], second)
        assert_same_bits(together.get_state(np.array([20])), single.get_state())
        assert_same_bits(together.get_state(), parts.get_state())


@pytest.mark.parametrize("robot", ["half_cheetah", "ant"])
def test_steps_depend_only_on_position_and_velocity(robot):
    engine, fresh = moving(robot, 5), MujocoEngine(robot, 5, 5)
    fresh.set_state(*engine.get_state()[:2])
    for controls in floating_controls(engine, 60):
        engine.step(controls)
        fresh.step(controls)
        assert_same_bits(engine.get_state(), fresh.get_state())
        fresh.set_state(*engine.get_state()[:2])
        assert_same_bits(engine.get_state(), fresh.get_state())


def test_quaternions_are_normalized_when_set():
    engine = MujocoEngine("ant", 2, 5)
    qpos = np.tile(engine.init_qpos, (2, 1))
    qpos[:, 3:7] = [[2.0, 0.0, 0.0, 0.0], [1.0, -1.0, 1.0, 1.0]]
    engine.set_state(qpos, np.zeros((2, engine.nv)))
    np.testing.assert_array_equal(engine.get_state().qpos[:, 3:7], [[1.0, 0.0, 0.0, 0.0], [0.5, -0.5, 0.5, 0.5]])


@pytest.mark.parametrize("robot", FLOATING)
@pytest.mark.parametrize("names", [DERIVED, ("cinert", "cvel", "qfrc_actuator", "subtree_com"), ("cfrc_ext",), ()])
def test_derived_quantities_equal_those_of_mujoco(robot, names):
    import mujoco

    engine = moving(robot, 4, derived=names, num_threads=2)
    data = mujoco.MjData(engine.model)
    held = np.zeros((4, engine.nu))
    for t in range(8):
        state = engine.get_state()
        assert set(state.derived) == set(names)
        for i in range(4):
            mujoco.mj_resetData(engine.model, data)
            data.qpos, data.qvel, data.ctrl = state.qpos[i], state.qvel[i], held[i]
            mujoco.mj_forward(engine.model, data)
            mujoco.mj_rnePostConstraint(engine.model, data)
            for name in names:
                np.testing.assert_array_equal(state.derived[name][i], getattr(data, name), err_msg=name)
        if t == 5:
            ids = np.array([3, 1])
            engine.set_state(*engine.get_state(ids)[:2], ids)
            held[ids] = 0.0
        else:
            held = floating_controls(engine, 1, seed=t)[0]
            engine.step(held)
    if "cfrc_ext" in names:
        assert np.abs(state.derived["cfrc_ext"]).max() > 1.0  # N: the robot has touched the ground
    if "qfrc_actuator" in names:
        assert np.abs(state.derived["qfrc_actuator"]).max() > 1.0


def test_fork_simulates_with_its_own_threads():
    script = """
import os
import numpy as np
from meta_policy_search.envs.mujoco_envs.engines import make_engine
engine = make_engine("mujoco", "half_cheetah", num_envs=32, frame_skip=1, num_threads=2)
engine.step(np.zeros((32, 6)))
child = os.fork()
engine.step(np.ones((32, 6)))
if not child:
    os._exit(int(1e6 * np.abs(engine.get_state().qvel).max()) % 100)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == int(1e6 * np.abs(engine.get_state().qvel).max()) % 100)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.skipif(not THREADS.exists(), reason="counts native threads by /proc")
def test_threads_start_with_the_first_step_and_end_with_the_engine():
    at_first = set(os.listdir(THREADS))
    engine = cheetahs(48, num_threads=3)
    assert set(os.listdir(THREADS)) <= at_first
    engine.step(controls_for(48, 1)[0])
    ours = set(os.listdir(THREADS)) - at_first
    assert len(ours) == 3
    del engine
    gc.collect()
    deadline = time.monotonic() + 10.0  # s; the operating system removes ended threads with a delay
    while ours & set(os.listdir(THREADS)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not ours & set(os.listdir(THREADS))


@pytest.mark.parametrize("robots", [
    cheetahs, functools.partial(moving, "ant"), functools.partial(moving, "humanoid", derived=DERIVED),
    pytest.param(functools.partial(cheetahs, name="mujoco-py", derived=DERIVED), marks=pytest.mark.mujoco_py)])
def test_several_threads_can_step_their_robots_concurrently(robots):
    together, apart = robots(64, num_threads=4), robots(64, num_threads=4)
    controls = floating_controls(together, 15)
    shares = np.split(np.arange(64), 2)

    def step_share(ids):
        for control in controls:
            apart.step(control[ids], ids)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(step_share, shares))
    for control in controls:
        together.step(control)
    np.testing.assert_equal(apart.get_state(), together.get_state())


@pytest.mark.parametrize("arguments, error, named", [
    (dict(robot="cheetah"), ValueError, "robot: .*half_cheetah.*'cheetah'"),
    (dict(frame_skip=0), ValueError, "frame_skip: .*0"),
    (dict(inertials="old"), ValueError, "inertials: .*'mujoco210', 'modern'.*'old'"),
    (dict(num_threads=0), ValueError, "num_threads: .*0"),
    (dict(derived=["xpos"]), ValueError, "derived: .*'cinert'.*'xpos'"),
])
def test_invalid_arguments_are_named(arguments, error, named):
    with pytest.raises(error, match=named):
        MujocoEngine(**{"robot": "half_cheetah", "num_envs": 2, "frame_skip": 5, **arguments})


@pytest.mark.parametrize("qpos, qvel, named", [
    (np.zeros((2, 8)), np.zeros((2, 9)), r"qpos: expected finite numbers of shape \(2, 9\)"),
    (np.zeros((2, 9)), np.full((2, 9), np.nan), "(?s)qvel: expected finite numbers of .*nan"),
])
def test_invalid_state_is_named(qpos, qvel, named):
    with pytest.raises(ValueError, match=named):
        MujocoEngine("half_cheetah", 2, 5).set_state(qpos, qvel)


def test_loading_and_stepping_prints_nothing_and_imports_only_what_is_needed(tmp_path):
    script = (
        "import sys\n"
        "from meta_policy_search.envs.base import MetaEnv, RandomEnv, PhysicsError\n"
        "from meta_policy_search.envs.mujoco_envs import HalfCheetahRandDirecEnv\n"
        "assert 'mujoco' not in sys.modules\n"
        "env = HalfCheetahRandDirecEnv()\n"
        "env.reset(seed=0)\n"
        "env.step(env.action_space.sample())\n"
        "assert 'gymnasium' not in sys.modules and 'tensorflow' not in sys.modules\n"
    )
    path = os.pathsep.join([str(Path(engine_module.__file__).parents[4]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []  # MuJoCo writes a log file if it has warnings
