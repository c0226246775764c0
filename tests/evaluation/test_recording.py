"""Tests recording of paths before and after adaptation, and their replay."""
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from meta_policy_search import VPGMAML, MetaEvaluator, MetaGaussianMLPPolicy, MetaSampleProcessor, make_env, normalize
from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs.compat import copy_env, frame_rate, set_render_mode
from meta_policy_search.evaluation.recording import frames, write_video
from meta_policy_search.tf_compat import tf
from tests.helpers.sampling import Drift

NUM_TASKS, NUM_PATHS = 3, 4


def make_evaluator(env, length=6, nonlinearity=tf.tanh, **arguments):
    policy = MetaGaussianMLPPolicy.for_env(env, 2, hidden_sizes=(4,), hidden_nonlinearity=nonlinearity)
    algo = VPGMAML(policy, inner_lr=0.5, meta_batch_size=2)
    processor = MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True)
    return MetaEvaluator(algo, env, processor, NUM_PATHS, length, **arguments)


@pytest.fixture
def point():
    return make_evaluator(normalize(make_env("MetaPointEnvWalls"), normalization_scale=1.0), envs_per_task=2)


def test_recorded_paths_are_those_of_the_evaluation(point):
    """For equal seeds, returns equal those of an evaluation, which uses more environments concurrently."""
    recording = point.record(NUM_TASKS, num_steps=2, step_sizes=[0.5, 0.1], seed=3)
    point.envs_per_task = None
    evaluation = point.evaluate(NUM_TASKS, num_steps=2, step_sizes=[0.5, 0.1], seeds=[3])
    np.testing.assert_array_equal(recording.returns, evaluation.returns[0])
    assert len(recording.rounds) == 3 and [len(paths) for paths in recording.rounds[0].values()] == [NUM_PATHS] * 3
    for recorded, evaluated in zip(recording.tasks, evaluation.tasks[0], strict=True):
        np.testing.assert_equal(recorded, evaluated)
    assert not np.array_equal(recording.returns, point.record(NUM_TASKS, 2, [0.5, 0.1], seed=4).returns)


@pytest.mark.thorough(but="arguments1")
@pytest.mark.parametrize("arguments", [{}, {"nonlinearity": tf.nn.relu6}, {"parallel": True}])
def test_replay_follows_the_recorded_path(arguments):
    """Start states are restored for vectorized actors, policies that act through the graph, and worker processes."""
    evaluator = make_evaluator(normalize(make_env("MetaPointEnvWalls"), normalization_scale=1.0), **arguments)
    recording = evaluator.record(NUM_TASKS, num_steps=1)
    for step, task, path in ((0, 0, 0), (0, 2, 3), (1, 1, 2)):
        recorded = recording.rounds[step][task][path]
        positions = [env.unwrapped.position for env in recording.replay(step, task, path)]
        expected = [*recorded["observations"], recorded["last_observation"]]
        np.testing.assert_array_equal(positions, expected)
        np.testing.assert_array_equal(recording.trajectories(step, task)[path], expected)
    assert len(recording.trajectories(0, 0, num_paths=2)) == 2
    starts = {tuple(trajectory[0]) for trajectory in recording.trajectories(0, 0)}
    assert len(starts) == NUM_PATHS  # start states differ between paths


def test_given_tasks(point):
    tasks = point.env.sample_tasks(2, np.random.default_rng(1))
    recording = point.record(tasks, num_steps=1)
    np.testing.assert_equal(recording.tasks, tasks)
    env = next(recording.replay(1, 1))
    np.testing.assert_equal(env.get_task(), tasks[1])


@pytest.mark.thorough(but="AntRandDirec2DEnv")
@pytest.mark.parametrize("name", ["AntRandGoalEnv", "AntRandDirec2DEnv"])
def test_robots_in_the_plane(name):
    """For an ant that observes its position or whose reward reports its velocity, trajectories agree with them."""
    evaluator = make_evaluator(normalize(make_env(name)), length=4)
    recording = evaluator.record(2, num_steps=1)
    trajectory, path = recording.trajectories(1, 1)[2], recording.rounds[1][1][2]
    assert trajectory.shape == (5, 2)
    if name == "AntRandGoalEnv":
        np.testing.assert_array_equal(trajectory[:-1], path["observations"][:, :2])
    else:
        velocities = np.diff(trajectory, axis=0) / 0.05
        np.testing.assert_allclose(velocities @ recording.tasks[1], path["env_infos"]["reward_forward"])


@pytest.mark.parametrize("name, task, expected", [
    ("AntRandGoalEnv", [1.0, -2.0], {"half_width": 3.0, "goal": [1.0, -2.0]}),
    ("AntRandDirecEnv", -1.0, {"direction": [-1.0, 0.0]}),
    ("HumanoidRandDirec2DEnv", [0.6, -0.8], {"direction": [0.6, -0.8]}),
    ("SwimmerRandVelEnv", 0.2, {}),
    ("MetaPointEnvCorner", [-2.0, 2.0], {"half_width": 2.0, "goal": [-2.0, 2.0]}),
])
def test_scenery_of_environments_in_the_plane(name, task, expected):
    env = make_env(name)
    env.set_task(task)
    env.reset(seed=1)
    scenery = env.scenery()
    for key, value in {"goal": None, "direction": None, **expected}.items():
        np.testing.assert_equal(getattr(scenery, key) if value is None else np.asarray(getattr(scenery, key)), value)
    observed = env.observation_space.shape[0] in (2, 113)  # the scenery of points and of the ant with a goal
    assert env.position.shape == (2,) and env.position.any()
    if observed:
        np.testing.assert_array_equal(env.position, env.reset(seed=1)[0][:2])


def test_environments_outside_the_plane_are_named():
    for name in ("HalfCheetahRandVelEnv", "HopperRandParamsEnv", "Walker2DRandDirecEnv"):
        assert make_env(name).position is None
    recording = make_evaluator(normalize(make_env("HalfCheetahRandDirecEnv")), length=2).record(1, num_steps=1)
    with pytest.raises(ValueError, match=r"expected a planar environment.*\(x, y\).*got HalfCheetahRandDirecEnv"):
        recording.trajectories(0, 0)


def test_own_environment_with_a_position_is_plotted_without_a_scenery(tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    recording = make_evaluator(normalize(Drift()), length=3).record(1, num_steps=1)
    path = recording.rounds[0][0][0]
    np.testing.assert_allclose(recording.trajectories(0, 0)[0][:-1], path["observations"])
    assert recording.plot_trajectories(tmp_path / "a.png") and (tmp_path / "a.png").exists()
    with pytest.raises(ValueError, match="render_mode: Drift does not support .* method render.* attribute position"):
        write_video(recording, tmp_path / "a.mp4")


@pytest.mark.parametrize("render, error, message", [
    *((lambda self, picture=picture: picture, ValueError, r"expected an image, uint8 of shape \(H, W, 3\), got ")
      for picture in (None, np.zeros((4, 6), np.uint8), np.zeros((4, 6, 3)))),
    (lambda self: gymnasium.Env.render(self), NotImplementedError, "Drawn does not implement this method$"),
])
def test_what_render_returns_is_checked(render, error, message, tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    members = {"metadata": {"render_modes": ["rgb_array"]}, "render_mode": "rgb_array", "render": render}
    drawn = type("Drawn", (Drift,), members)()
    with pytest.raises(error, match=f"^render: {message}"):
        write_video(make_evaluator(normalize(drawn), length=3).record(1, num_steps=1), tmp_path / "a.mp4")


def test_environment_that_is_not_reproducible_is_named(point, monkeypatch):
    recording = point.record(1, num_steps=1)
    recording.rounds[0][0][0]["rewards"][3] += 0.1
    seen = []
    with pytest.raises(ValueError, match="in step 3, got .*: MetaPointEnvWalls is not deterministic"):
        seen += [env for env in recording.replay(0, 0)]


@pytest.mark.thorough
def test_all_frames_of_a_point_have_equal_limits():
    """Given a path that leaves the world, then pictures at its start already show its end."""
    recording = make_evaluator(normalize(make_env("MetaPointEnvNavigation"))).record(1, num_steps=1)
    envs = copy_env(recording.env), copy_env(recording.env)
    for env in envs:
        set_render_mode(env, "rgb_array")
        env.unwrapped.goal_range = 1e-3
    limits = [env.unwrapped.scenery().half_width for _ in frames(recording, 0, envs) for env in envs]
    positions = np.concatenate([recording.trajectories(step, 0, 1)[0] for step in (0, 1)])
    assert set(limits) == {np.abs(positions).max()}


def test_frame_rate_is_30_if_the_environment_has_none(point):
    assert frame_rate(SimpleNamespace(metadata={})) == 30 and frame_rate(point.env) == 10


def test_figure_shows_the_trajectories(point, tmp_path, monkeypatch):
    from meta_policy_search.evaluation import recording as module

    drawn = []
    monkeypatch.setattr(module, "plot_trajectories", lambda *arguments: drawn.append(arguments))
    recording = point.record(NUM_TASKS, num_steps=1)
    assert repr(recording) == f"<Recording of policy in {NUM_TASKS} tasks, after 0 to 1 steps>"
    recording.plot_trajectories(tmp_path / "a.png", num_paths=2)
    ((tasks, path, title, names, ax),) = drawn
    assert ax is None and path == tmp_path / "a.png" and title == "Paths of policy" and len(tasks) == NUM_TASKS
    for index, (scenery, trajectories, returns) in enumerate(tasks):
        np.testing.assert_array_equal(scenery.goal, recording.tasks[index]["goal"])
        assert len(scenery.walls) == 2
        np.testing.assert_array_equal(returns, recording.returns[index])
        for step in range(2):
            np.testing.assert_equal(trajectories[step], recording.trajectories(step, index, 2))
        assert names[index].startswith(f"task {index + 1}: goal (")
    with pytest.raises(ValueError, match="num_paths: expected an integer of at least 1, got 0"):
        recording.plot_trajectories(tmp_path / "a.png", num_paths=0)
