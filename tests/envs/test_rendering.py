"""Tests rendering of environments, and errors without rendering support."""
import copy
import gc
import subprocess
import sys

import numpy as np
import pytest

from meta_policy_search import MetaPointEnvCorner
from meta_policy_search.envs import MetaPointEnv, MetaPointEnvWalls, available_envs, get_env_class, make_env
from meta_policy_search.envs import scenery as drawing
from meta_policy_search.envs.mujoco_envs import AntRandGoalEnv, HopperRandParamsEnv, SwimmerRandVelEnv
from meta_policy_search.envs.mujoco_envs.engines import camera
from meta_policy_search.envs.point_envs import point_env_2d_navigation
from tests.helpers.robots import engine_of

HERE = [name for name in available_envs() if "MetaWorld" not in name]  # test_meta_world.py tests their rendering
DRAWN = [name for name in HERE if get_env_class(name).metadata["render_modes"]]
NOT_DRAWN = [name for name in HERE if name not in DRAWN]
ONE_PER_ROBOT = ["AntRandGoalEnv", "HalfCheetahRandDirecEnv", "HopperRandParamsEnv", "HumanoidRandDirec2DEnv",
                 "ReacherRandGoalEnv", "SwimmerRandVelEnv", "Walker2DRandVelEnv"]
POINTS = [name for name in DRAWN if "Point" in name and name != "MetaPointEnv"]


@pytest.fixture(scope="module")
def opengl():
    """Skips a test if OpenGL cannot render robots."""
    try:
        env = SwimmerRandVelEnv(render_mode="rgb_array")
        env.render()
        env.close()
    except RuntimeError as error:
        pytest.skip(str(error))


needs_opengl = pytest.mark.usefixtures("opengl")


def assert_is_picture(picture):
    assert picture.shape == (480, 480, 3) and picture.dtype == np.uint8 and picture.flags.c_contiguous
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 10  # the image is not uniform


def test_robots_and_points_can_be_rendered():
    assert set(ONE_PER_ROBOT) <= set(DRAWN) and len(POINTS) == 8
    kinds = ("Bandit", "CartPole", "MDP", "Pendulum")
    assert NOT_DRAWN == [name for name in HERE if any(kind in name for kind in kinds)]


@needs_opengl
@pytest.mark.parametrize("name", ONE_PER_ROBOT)
@pytest.mark.thorough(but="HalfCheetahRandDirecEnv", ci=("HopperRandParamsEnv", "ReacherRandGoalEnv"))
def test_robot_is_rendered_at_its_position(name):
    env = make_env(name, render_mode="rgb_array")
    assert env.render_mode == "rgb_array" and env.metadata["render_modes"] == ["rgb_array"]
    assert env.metadata["render_fps"] == round(1.0 / env.dt)
    env.reset(seed=0)
    first = env.render()
    assert_is_picture(first)
    np.testing.assert_array_equal(env.render(), first)
    for _ in range(5):
        env.step(env.action_space.high)
    assert (env.render() != first).mean() > 0.001
    env.reset(seed=0)
    np.testing.assert_array_equal(env.render(), first)
    env.close()


@needs_opengl
def test_camera_follows_the_robot_upright():
    """Images of an ant near and far from the origin show it in the middle, below the sky and above the ground."""
    env = AntRandGoalEnv(render_mode="rgb_array")
    engine = engine_of(env)
    for x in (0.0, 7.3):  # m
        qpos = engine.init_qpos.copy()
        qpos[0] = x
        engine.set_state(qpos[None], np.zeros((1, engine.nv)))
        red, green, blue = env.render().astype(int).transpose(2, 0, 1)
        is_ant = red > blue + 30  # only the ant is brown
        rows, columns = np.nonzero(is_ant)
        assert 0.02 < is_ant.mean() < 0.5
        assert 150 < rows.mean() < 330 and 200 < columns.mean() < 280
        assert np.ptp(green[:60], axis=1).max() < 10 and np.ptp(green[-60:], axis=1).max() > 50  # sky, ground
    env.close()


@needs_opengl
def test_camera_of_the_reacher_shows_the_goal():
    """The view depends neither on the goal nor on the position of the arm."""
    env = make_env("ReacherRandGoalEnv", render_mode="rgb_array")
    places = []
    for goal in ((0.1, -0.1), (-0.19, 0.05)):
        env.set_task(goal)
        env.reset(seed=1)
        for _ in range(2):
            red, green, blue = env.render().astype(int).transpose(2, 0, 1)
            is_goal, is_base = (red > 2 * green) & (red > 2 * blue), (red > green + 50) & (blue > green + 20)
            places.append([*np.argwhere(is_goal).mean(axis=0), *np.argwhere(is_base).mean(axis=0)])
            for _ in range(50):
                env.step([0.02, 0.03])
    env.close()
    np.testing.assert_allclose(places, np.repeat(places[::2], 2, axis=0), atol=1.0)
    np.testing.assert_allclose(places[0][2:], places[2][2:], atol=1.0)
    down, right = np.subtract(places[2][:2], places[0][:2]) / np.subtract((-0.05, -0.19), (0.1, 0.1))
    assert right == pytest.approx(down, rel=0.02)


@pytest.mark.thorough
@needs_opengl
def test_script_that_renders_exits_silently_and_a_fork_can_close_its_copy():
    script = """
import os
from meta_policy_search.envs import make_env
env = make_env("SwimmerRandVelEnv", render_mode="rgb_array")
env.reset()
env.render()
if not (child := os.fork()):
    env.close()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), env.render().shape)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "7 (480, 480, 3)\n", "")


@needs_opengl
@pytest.mark.thorough
def test_rendering_changes_no_state_and_works_after_copy_and_close():
    env, reference = HopperRandParamsEnv(render_mode="rgb_array"), HopperRandParamsEnv()
    task = env.sample_tasks(1, np.random.default_rng(0))[0]
    for one in (env, reference):
        one.set_task(task)
        one.reset(seed=0)
    for _ in range(3):
        env.render()
        np.testing.assert_array_equal(env.step(np.ones(3))[0], reference.step(np.ones(3))[0])
    picture = env.render()
    twin = copy.deepcopy(env)
    np.testing.assert_array_equal(twin.render(), picture)
    twin.close()
    env.close()
    env.close()
    np.testing.assert_array_equal(env.render(), picture)


def test_missing_opengl_error_names_what_to_install(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "crayons")
    env = SwimmerRandVelEnv(render_mode="rgb_array")
    env.reset(seed=0)
    expected = r"render: OpenGL is not available \(.*crayons.*\): run `apt-get install libegl1 .*libosmesa6` and set"
    with pytest.raises(RuntimeError, match=expected):
        env.render()
    env.step(np.ones(2))  # stepping still works
    env.close()


def test_ended_render_process_raises_with_its_exit_status(monkeypatch):
    monkeypatch.setattr(camera, "_START", "import sys; sys.exit(3)")
    with pytest.raises(RuntimeError, match=r"OpenGL is not available \(the rendering process ended with exit code 3"):
        SwimmerRandVelEnv(render_mode="rgb_array").render()


@needs_opengl
@pytest.mark.parametrize("end", [lambda env: env.close(), lambda env: None])
@pytest.mark.thorough(but="<lambda>0")
def test_render_process_ends_with_the_environment(end):
    env = SwimmerRandVelEnv(render_mode="rgb_array")
    env.render()
    process = engine_of(env)._camera._process
    assert process.poll() is None
    end(env)
    del env
    gc.collect()
    assert process.poll() is not None


@pytest.mark.thorough(but="MetaPointEnvOrigin")
@pytest.mark.parametrize("name", POINTS)
def test_point_is_rendered_with_its_trail_and_goal(name):
    env = make_env(name, render_mode="rgb_array")
    goals = {str(env.scenery().goal): env.get_task()}
    for task in env.sample_tasks(20, np.random.default_rng(0)):
        env.set_task(task)
        goals[str(env.scenery().goal)] = task
    first_task, *others = goals.values()
    env.set_task(first_task)
    with pytest.raises(RuntimeError, match=r"render: call reset\(\) first"):
        env.render()
    env.reset(seed=0)
    first = env.render()
    assert_is_picture(first)
    env.step(env.action_space.high)
    second = env.render()
    assert (second != first).any()
    np.testing.assert_array_equal(env.render(), second)
    env.reset(seed=0)
    np.testing.assert_array_equal(env.render(), first)  # the trail begins at the start of the path
    for other_task in others[:1]:
        env.set_task(other_task)
        assert (env.render() != first).any()


def test_rendered_trail_holds_the_positions_of_the_point(monkeypatch):
    drawn = []
    monkeypatch.setattr(point_env_2d_navigation, "draw", lambda *args: drawn.append(args))
    env = MetaPointEnv(render_mode="rgb_array")
    env.set_task((-0.4, 0.3))
    env.reset()
    env.step(np.array([0.1, 0.0]))
    env.step(np.array([0.0, -0.1]))[0][:] = 99.0  # changing the returned image has no effect
    env.render()
    (trail, scenery), = drawn
    np.testing.assert_allclose(trail, [[0.0, 0.0], [0.1, 0.0], [0.1, -0.1]])
    assert scenery.goal.tolist() == [-0.4, 0.3] and scenery.half_width == 0.5
    assert len(scenery.other_goals) == len(scenery.walls) == 0


def test_wrong_sceneries_and_trails_are_named():
    scenery = drawing.Scenery(half_width=1.0)
    for wrong, error, message in (((np.zeros(2), scenery), ValueError, r"trail: expected .* got shape \(2,\)"),
                                  ((scenery, np.zeros((3, 2))), TypeError, "scenery: expected a Scenery, got array")):
        with pytest.raises(error, match=message):
            drawing.draw(*wrong)
    env = MetaPointEnvCorner()
    env.scenery = dict
    with pytest.raises(TypeError, match=r"env.scenery\(\): expected a Scenery, got \{\}"):
        drawing.scenery_of(env)


def test_corners_and_walls_are_rendered_at_their_positions():
    scenery = MetaPointEnvCorner().scenery()
    assert sorted(map(tuple, scenery.other_goals)) == [(-2, -2), (-2, 2), (2, -2), (2, 2)]
    env = MetaPointEnvWalls()
    (task,) = env.sample_tasks(1, np.random.default_rng(0))
    env.set_task(task)
    scenery = env.scenery()
    assert scenery.goal.tolist() == task["goal"].tolist()
    for wall, radius, gap in zip(scenery.walls, (1.0, 2.0), (task["gap_1"], task["gap_2"])):
        np.testing.assert_allclose(np.linalg.norm(wall, axis=1), radius)
        to_gap = np.linalg.norm(wall - gap, axis=1)
        assert to_gap.min() == pytest.approx(1.0) and to_gap.max() == pytest.approx(2.0 * radius, rel=1e-3)


def test_point_outside_the_world_is_rendered_at_the_border():
    scenery = drawing.Scenery(half_width=0.5, goal=np.array([0.5, 0.5]))
    picture = drawing.draw(np.array([[0.0, 0.0], [30.0, -40.0]]), scenery)
    is_point = np.abs(picture.astype(int) - [0x44, 0x72, 0xa8]).sum(axis=2) < 30
    rows, columns = np.nonzero(is_point)
    assert rows.max() > 380 and columns.max() > 380  # bottom right


@pytest.mark.parametrize("name", DRAWN)
def test_missing_render_mode_error_names_the_argument(name):
    env = make_env(name)
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match=rf'render: .*{type(env).__name__}\(render_mode="rgb_array"\)'):
        env.render()
    with pytest.raises(ValueError, match="render_mode: expected one of None, 'rgb_array', got 'human'"):
        make_env(name, render_mode="human")


@pytest.mark.parametrize("name", NOT_DRAWN)
def test_environments_without_rendering_raise(name):
    with pytest.raises(NotImplementedError, match=f'render: {name} does not support render_mode="rgb_array"'):
        make_env(name).render()
