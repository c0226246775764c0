"""The physics engine: agreement with MuJoCo 2.1.0, independence of rows, divergence, copies, quiet start."""
import copy
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from meta_policy_search.envs.base import PhysicsError
from meta_policy_search.envs.mujoco_envs import engine as engine_module
from meta_policy_search.envs.mujoco_envs.engine import ROBOTS, MujocoEngine

REFERENCE = Path(__file__).parents[1] / "data" / "mujoco210_half_cheetah.npz"  # made with MuJoCo 2.1.0
THREADS = Path("/proc/self/task")  # one entry per native thread of this process


def cheetahs(num_envs, **kwargs):
    """Half cheetahs in different, moving states near the ground."""
    engine = MujocoEngine("half_cheetah", num_envs, 5, **kwargs)
    rng = np.random.default_rng(0)
    qpos = engine.init_qpos + rng.uniform(-0.1, 0.1, (num_envs, 9))
    engine.set_state(qpos, rng.normal(0.0, 1.0, (num_envs, 9)))
    return engine


def controls_for(num_envs, steps, seed=1):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (steps, num_envs, 6))


def assert_same_bits(state, other):
    np.testing.assert_array_equal(state.qpos, other.qpos)
    np.testing.assert_array_equal(state.qvel, other.qvel)


def test_ten_control_steps_agree_with_mujoco_2_1_0():
    with np.load(REFERENCE) as reference:  # actions [5, 10, 6], start states, and states after each step
        engine = MujocoEngine("half_cheetah", 5, 5)
        engine.set_state(reference["qpos0"], reference["qvel0"])
        for t in range(10):
            engine.step(reference["actions"][:, t])
            state = engine.get_state()
            np.testing.assert_allclose(state.qpos, reference["qpos"][:, t], rtol=0, atol=1e-9)
            np.testing.assert_allclose(state.qvel, reference["qvel"][:, t], rtol=0, atol=1e-9)


def test_modern_inertials_are_those_that_the_installed_mujoco_computes_for_the_file(tmp_path, monkeypatch):
    import mujoco

    monkeypatch.chdir(tmp_path)  # MuJoCo writes its warnings of the file to a file in the working directory
    model = mujoco.MjModel.from_xml_path(str(engine_module._model_file("half_cheetah")))
    modern = MujocoEngine("half_cheetah", 1, 5, inertials="modern")
    for name in ("body_mass", "body_inertia", "body_ipos", "body_iquat", "body_subtreemass", "body_invweight0"):
        np.testing.assert_allclose(modern.get_parameter(name), getattr(model, name), rtol=1e-12, err_msg=name)
    assert modern.get_parameter("body_mass").sum() == pytest.approx(14.0)  # kg, from the file's settotalmass

    old = MujocoEngine("half_cheetah", 1, 5)
    assert np.abs(old.get_parameter("body_mass") - modern.get_parameter("body_mass")).max() > 0.01


@pytest.mark.parametrize("robot", ROBOTS)
def test_every_robot_has_a_model_and_steps(robot):
    engine = MujocoEngine(robot, 2, 2)
    engine.step(np.zeros((2, engine.nu)))
    assert np.isfinite(engine.get_state().qpos).all()


def test_an_engine_starts_at_rest_in_the_position_of_the_model():
    state = MujocoEngine("half_cheetah", 2, 5).get_state()
    np.testing.assert_array_equal(state.qpos, np.zeros((2, 9)))
    np.testing.assert_array_equal(state.qvel, np.zeros((2, 9)))


def test_a_control_step_is_frame_skip_simulation_steps():
    twice, once = MujocoEngine("half_cheetah", 1, 4), MujocoEngine("half_cheetah", 1, 8)
    assert (twice.dt, once.dt) == (0.04, 0.08)
    controls = controls_for(1, 1)[0]
    twice.step(controls)
    twice.step(controls)
    once.step(controls)
    np.testing.assert_allclose(twice.get_state().qpos, once.get_state().qpos, rtol=0, atol=1e-12)


@pytest.mark.parametrize("num_threads", [1, 2, 3, None])
def test_a_row_is_the_same_bit_for_bit_alone_and_among_others(num_threads):
    together, alone = cheetahs(37, num_threads=num_threads), cheetahs(37)
    chosen = alone.get_state(np.array([20]))
    single = MujocoEngine("half_cheetah", 1, 5)
    single.set_state(*chosen[:2])
    for controls in controls_for(37, 20):
        together.step(controls)
        single.step(controls[20:21])
        assert_same_bits(together.get_state(np.array([20])), single.get_state())


def test_subsets_in_any_order_give_the_same_bits_and_leave_the_others_alone():
    whole, parts = cheetahs(9), cheetahs(9)
    first, second = np.array([7, 0, 3]), np.array([8, 1, 2, 6, 5, 4])
    for controls in controls_for(9, 10):
        whole.step(controls)
        before = parts.get_state(second)
        parts.step(controls[first], first)
        assert_same_bits(parts.get_state(second), before)
        parts.step(controls[second], second)
        assert_same_bits(parts.get_state(), whole.get_state())


def test_stepping_no_robot_does_nothing():
    engine = cheetahs(2)
    before = engine.get_state()
    engine.step(np.zeros((0, 6)), np.array([], dtype=int))
    assert_same_bits(engine.get_state(), before)


def test_the_future_depends_on_position_and_velocity_alone():
    engine, fresh = cheetahs(3), MujocoEngine("half_cheetah", 3, 5)
    for controls in controls_for(3, 10):
        engine.step(controls)
    fresh.set_state(*engine.get_state()[:2])
    for controls in controls_for(3, 10, seed=2):
        engine.step(controls)
        fresh.step(controls)
    assert_same_bits(engine.get_state(), fresh.get_state())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda engine: pickle.loads(pickle.dumps(engine))])
def test_a_copy_made_mid_run_goes_on_identically_and_shares_nothing(copied):
    engine = cheetahs(4, inertials="modern", num_threads=2)
    masses = [{"body_mass": engine.get_parameter("body_mass") * factor} for factor in (1.0, 1.1, 1.2, 1.3)]
    engine.set_parameters(masses)
    controls = controls_for(4, 10)
    for t in range(5):
        engine.step(controls[t])

    twin = copied(engine)
    assert (twin.robot, twin.frame_skip, twin.inertials, twin.num_threads) == ("half_cheetah", 5, "modern", 2)
    at_copy = twin.get_state()
    for t in range(5, 10):
        engine.step(controls[t])
    assert_same_bits(twin.get_state(), at_copy)  # the original moved, the copy did not
    for t in range(5, 10):
        twin.step(controls[t])
    assert_same_bits(twin.get_state(), engine.get_state())


def final_state(engine, controls):
    """Steps through `[steps, n, 6]` controls, in this process or another."""
    for control in controls:
        engine.step(control)
    return engine.get_state()


def test_a_spawned_process_steps_a_running_engine_on():
    engine = cheetahs(4, num_threads=2)
    engine.step(controls_for(4, 1)[0])
    controls = controls_for(4, 5, seed=2)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        theirs = processes.submit(final_state, engine, controls).result(timeout=120)
    assert_same_bits(theirs, final_state(engine, controls))


def test_a_pickle_holds_no_compiled_model():
    engine = cheetahs(2)
    engine.step(controls_for(2, 1)[0])
    assert len(pickle.dumps(engine)) < 5000  # bytes; a compiled model has 500,000


def test_returned_states_are_copies():
    engine = cheetahs(2)
    before = engine.get_state()
    for ids in (None, np.array([0, 1])):
        engine.get_state(ids).qpos[:] = 7.0
        engine.get_state(ids).qvel[:] = 7.0
    assert_same_bits(engine.get_state(), before)


def test_each_row_has_the_parameters_it_is_given():
    engine = cheetahs(3)
    mass = engine.get_parameter("body_mass")
    engine.set_parameters([{}, {"body_mass": 2.0 * mass}, {"dof_damping": 3.0 * engine.get_parameter("dof_damping")}])
    start = engine.get_state()
    controls = controls_for(3, 5)
    for t in range(5):
        engine.step(controls[t])
    changed = engine.get_state()

    engine.set_parameters(None)
    engine.set_state(*start[:2])
    for t in range(5):
        engine.step(controls[t], np.array([0, 1, 2]))
    unchanged = engine.get_state()
    np.testing.assert_array_equal(changed.qpos[0], unchanged.qpos[0])
    assert (changed.qpos[1:] != unchanged.qpos[1:]).any(axis=1).all()
    np.testing.assert_array_equal(engine.get_parameter("body_mass"), mass)


def test_rows_with_different_models_do_not_disturb_each_other():
    engine, reverse = cheetahs(6), cheetahs(6)
    masses = [{"body_mass": engine.get_parameter("body_mass") * (1.0 + i)} for i in range(6)]
    engine.set_parameters(masses)
    reverse.set_parameters(masses)
    for controls in controls_for(6, 10):
        engine.step(controls)
        reverse.step(controls[::-1], np.arange(6)[::-1])
    assert_same_bits(engine.get_state(), reverse.get_state())


def test_changed_masses_reach_the_constants_that_follow_from_them():
    engine = MujocoEngine("half_cheetah", 1, 5)
    engine.set_parameters([{"body_mass": 2.0 * engine.get_parameter("body_mass")}])
    (model,) = engine._models
    assert model.body_subtreemass[1] == pytest.approx(2.0 * engine.get_parameter("body_subtreemass")[1])


@pytest.mark.parametrize("frame_skip", [1, 5])
@pytest.mark.parametrize("index, value", [
    (1, np.nan), (1, np.inf), (1, 2e10),  # position: MuJoCo resets the robot
    (12, np.nan), (12, -2e10),  # velocity: the same
    (12, 1e9),  # acceleration in the first simulation step: the same
])
def test_a_diverged_robot_is_an_error_that_names_it(tmp_path, monkeypatch, frame_skip, index, value):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its warnings to a file in the working directory
    engine = MujocoEngine("half_cheetah", 4, frame_skip)
    engine._states[2, index] = value  # time, qpos [9], qvel [9]
    with pytest.raises(PhysicsError, match="half_cheetah diverged in environment 2:") as raised:
        engine.step(np.zeros((4, 6)))
    assert raised.value.env_ids == (2,)


def test_numbers_that_grow_too_large_in_the_last_simulation_step_are_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    engine = MujocoEngine("half_cheetah", 2, 1)
    engine._states[1, 2] = 100.0  # m, in the air
    engine._states[1, 1], engine._states[1, 10] = 9.99e9, 9e9  # m, m/s: beyond 1e10 m after 0.01 s
    with pytest.raises(PhysicsError) as raised:
        engine.step(np.zeros((2, 6)))
    assert raised.value.env_ids == (1,)


def test_the_message_names_a_few_of_many_diverged_robots(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    engine = MujocoEngine("half_cheetah", 100, 5)
    engine._states[:, 12] = np.nan
    with pytest.raises(PhysicsError, match="in environment 0, 1, 2, 3, 4 and 95 more:") as raised:
        engine.step(np.zeros((100, 6)))
    assert raised.value.env_ids == tuple(range(100))


def test_divergence_in_a_subset_names_the_environments_and_moves_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    engine = cheetahs(6)
    for broken in (0, 4):
        qpos, qvel, _ = engine.get_state(np.array([broken]))
        qvel[0, 3] = 1e9  # rad/s
        engine.set_state(qpos, qvel, np.array([broken]))
    before = engine.get_state()
    with pytest.raises(PhysicsError, match="in environment 4, 0:") as raised:
        engine.step(np.zeros((4, 6)), np.array([5, 4, 1, 0]))
    assert raised.value.env_ids == (4, 0)
    assert_same_bits(engine.get_state(), before)
    engine.step(np.zeros((2, 6)), np.array([5, 1]))  # the sound ones go on


def test_a_physics_error_survives_the_way_to_another_process():
    error = pickle.loads(pickle.dumps(PhysicsError("it fell apart", [3, 5])))
    assert str(error) == "it fell apart" and error.env_ids == (3, 5)


@pytest.mark.skipif(not THREADS.exists(), reason="counts native threads by /proc")
def test_threads_start_with_the_first_step_are_as_many_as_asked_and_end_with_the_engine():
    at_first = set(os.listdir(THREADS))
    engine = cheetahs(5, num_threads=3)
    assert set(os.listdir(THREADS)) <= at_first
    engine.step(controls_for(5, 1)[0])
    ours = set(os.listdir(THREADS)) - at_first
    assert len(ours) == 3
    del engine
    gc.collect()
    deadline = time.monotonic() + 10.0  # s; the system takes a moment to forget a thread that has ended
    while ours & set(os.listdir(THREADS)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not ours & set(os.listdir(THREADS))


def test_several_callers_may_step_their_robots_at_a_time():
    together, apart = cheetahs(12, num_threads=4), cheetahs(12)
    controls = controls_for(12, 30)
    shares = np.split(np.arange(12), 4)

    def step_share(ids):
        for control in controls:
            apart.step(control[ids], ids)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(step_share, shares))
    assert_same_bits(apart.get_state(), final_state(together, controls))


@pytest.mark.parametrize("num_robots, expected", [(12, 4), (6, 4), (3, 2), (1, 1)])
def test_a_share_of_the_robots_has_twice_its_share_of_the_threads(num_robots, expected):
    engine = cheetahs(12, num_threads=4)
    engine.step(np.zeros((num_robots, 6)), np.arange(num_robots))
    assert list(engine._idle_crews) == [expected]


@pytest.mark.parametrize("num_envs, num_threads, expected", [
    (1, None, 1), (2, 8, 2), (8, 2, 2), (1000, None, len(os.sched_getaffinity(0)))])
def test_there_are_never_more_threads_than_robots_and_by_default_one_per_core(num_envs, num_threads, expected):
    engine = MujocoEngine("half_cheetah", num_envs, 1, num_threads=num_threads)
    engine.step(np.zeros((num_envs, 6)))
    (crew,) = [crew for crews in engine._idle_crews.values() for crew in crews]
    assert len(crew._scratch) == expected


@pytest.mark.parametrize("arguments, error, named", [
    (dict(robot="cheetah"), ValueError, "robot: .*half_cheetah.*'cheetah'"),
    (dict(num_envs=0), ValueError, "num_envs: .*0"),
    (dict(frame_skip=0), ValueError, "frame_skip: .*0"),
    (dict(frame_skip=2.5), TypeError, "frame_skip: .*2.5"),
    (dict(inertials="old"), ValueError, "inertials: .*'mujoco210', 'modern'.*'old'"),
    (dict(num_threads=0), ValueError, "num_threads: .*0"),
])
def test_bad_arguments_are_named(arguments, error, named):
    with pytest.raises(error, match=named):
        MujocoEngine(**{"robot": "half_cheetah", "num_envs": 2, "frame_skip": 5, **arguments})


@pytest.mark.parametrize("qpos, qvel, named", [
    (np.zeros((2, 8)), np.zeros((2, 9)), r"qpos: expected shape \(2, 9\), got \(2, 8\)"),
    (np.zeros((2, 9)), np.zeros((1, 9)), r"qvel: expected shape \(2, 9\), got \(1, 9\)"),
    (np.zeros((2, 9)), np.full((2, 9), np.nan), "qvel: expected finite numbers, got .*nan"),
])
def test_a_bad_state_is_named(qpos, qvel, named):
    with pytest.raises(ValueError, match=named):
        MujocoEngine("half_cheetah", 2, 5).set_state(qpos, qvel)


def test_a_missing_package_is_an_error_that_says_what_to_run(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "mujoco", None)
        with pytest.raises(ImportError, match=r'run `pip install "mujoco>=3.3"`'):
            MujocoEngine("half_cheetah", 1, 5)
    engine_module._compile.cache_clear()
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match="run `pip install gymnasium`"):
        MujocoEngine("half_cheetah", 1, 5)


def test_a_missing_model_file_is_an_error_that_says_what_to_run(monkeypatch, tmp_path):
    (tmp_path / "gymnasium").mkdir()
    (tmp_path / "gymnasium" / "__init__.py").touch()
    engine_module._compile.cache_clear()
    monkeypatch.delitem(sys.modules, "gymnasium", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(FileNotFoundError, match="half_cheetah.xml: run `pip install --force-reinstall gymnasium`"):
        MujocoEngine("half_cheetah", 1, 5)


def test_loading_and_stepping_prints_nothing_and_imports_no_more_than_it_needs(tmp_path):
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
    path = os.pathsep.join([str(Path(engine_module.__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []  # MuJoCo writes a file of warnings where it has any
