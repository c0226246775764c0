"""Tests videos of a policy before and after adaptation: their contents, and invalid arguments."""
import functools
import sys

import numpy as np
import pytest

import meta_policy_search as mps
from experiments import maml_trpo
from meta_policy_search import run_folder
from meta_policy_search.cli.main import main
from meta_policy_search.envs import make_env
from meta_policy_search.envs.mujoco_envs.engines import camera
from meta_policy_search.evaluation import MetaEvaluator
from meta_policy_search.evaluation import recording as video_module
from tests.helpers import commands
from tests.helpers.videos import read_video

SIDE, TOP = 480, video_module.CAPTION_HEIGHT
WIDTH, HEIGHT = 2 * SIDE + video_module.GAP, SIDE + TOP
AXES = np.array([0.09, 0.07, 0.88, 0.88]) * SIDE  # the plot area of a point figure: left, bottom, width, height


mistake = functools.partial(commands.mistake, functools.partial(commands.run, "render"))
train = functools.partial(commands.train, maml_trpo)


@pytest.fixture(scope="module")
def point(tmp_path_factory):
    """A run in a point environment with little exploration and large steps; tests must not change it."""
    return train(tmp_path_factory.mktemp("runs") / "point", "--env", "MetaPointEnvCorner", "--inner_lr", 20,
                 "--init_std", 0.3, "--normalization_scale", 1, "--env_kwargs", '{"reward_type": "dense"}')


def sides(pictures):
    """Returns the left and right panels without captions."""
    return pictures[:, TOP:, :SIDE], pictures[:, TOP:, -SIDE:]


def place_of_point(picture, limit):
    """Returns the position of the large blue dot in the frame of a world with half width `limit`, `[2]`."""
    red, _, blue = picture.transpose(2, 0, 1)
    is_blue = (blue - red > 60).astype(float)
    window = np.ones(9)  # pixels; the trail is thinner than the dot
    density = np.apply_along_axis(np.convolve, 0, np.apply_along_axis(np.convolve, 1, is_blue, window, "same"), window,
                                  "same")
    row, column = np.mean(np.argwhere(density >= 0.97 * density.max()), axis=0)
    unit = (np.array([column - AXES[0], SIDE - row - AXES[1]])) / AXES[2:]
    return (2.0 * unit - 1.0) * limit


def run(*arguments):
    assert main(["render", *map(str, arguments)]) == 0


@pytest.mark.slow
def test_video_shows_paths_before_and_after_adaptation(point, tmp_path, capsys):
    """For two tasks and paths of 6 steps, each task has 7 frames, and the points are at their positions.

    Positions are read from the start frames, which have no trail yet.
    """
    path = tmp_path / "a.mp4"
    run(point, "--tasks", "[[2, 2], [-2, -2]]", "--num_steps", 2, "--max_path_length", 6, "--output", path)
    assert capsys.readouterr().out == f"Video: {path}, 14 frames, 1.4 s\n"
    meta, pictures = read_video(path)
    assert meta["size"] == (WIDTH, HEIGHT) and meta["fps"] == 10.0 and pictures.shape == (14, HEIGHT, WIDTH, 3)
    recording = mps.load_evaluator(str(point), max_path_length=6).record([[2, 2], [-2, -2]], num_steps=2)
    for task in range(2):
        for step, panels in zip((0, 2), sides(pictures), strict=True):
            trajectory = recording.trajectories(step, task)[0]
            start, end = panels[7 * task], panels[7 * task + 6]
            np.testing.assert_allclose(place_of_point(start, 2.3), trajectory[0], atol=0.04)
            if np.linalg.norm(trajectory[-1] - trajectory[0]) > 0.5:  # far enough from the ring at the start
                assert np.linalg.norm(place_of_point(end, 2.3) - trajectory[-1]) < 0.2
    left, right = sides(pictures)
    assert np.abs(left[6] - right[6]).max() > 100 and np.abs(left[13] - right[13]).max() > 100
    assert np.abs(left[0] - left[6]).max() > 100 and np.abs(left[0] - left[7]).max() > 100
    assert (pictures[:, :TOP, :SIDE].min(axis=(1, 2, 3)) < 100).all()  # captions


@pytest.mark.slow
def test_videos_of_equal_seeds_are_equal(point, tmp_path):
    small = ("--num_tasks", 1, "--num_steps", 1, "--max_path_length", 2)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(point, *small, "--seed", seed, "--fps", 4, "--output", tmp_path / f"{name}.mp4")
    (meta, a), (_, b), (_, c) = (read_video(tmp_path / f"{name}.mp4") for name in "abc")
    assert meta["fps"] == 4.0 and len(a) == 3
    np.testing.assert_array_equal(a, b)
    assert np.abs(a - c).max() > 100


@pytest.mark.thorough
def test_frames_and_captions(point, monkeypatch):
    """After a path ends early, its last frame remains, and captions show the reward so far."""
    evaluator = mps.load_evaluator(str(point), max_path_length=4, render_mode="rgb_array")
    recording = evaluator.record(1, num_steps=1)
    for key in ("rewards", "actions"):
        recording.rounds[1][0][0][key] = recording.rounds[1][0][0][key][:2]
    captions = []
    monkeypatch.setattr(video_module, "_captioned", lambda picture, lines: captions.append(lines) or picture)
    envs = evaluator.env, mps.load_evaluator(str(point), render_mode="rgb_array").env
    pictures = list(video_module.frames(recording, 0, envs))
    assert len(pictures) == 5
    np.testing.assert_array_equal(pictures[2][:, -SIDE:], pictures[4][:, -SIDE:])
    assert (pictures[1][:, -SIDE:] != pictures[2][:, -SIDE:]).any()
    assert (pictures[2][:, :SIDE] != pictures[4][:, :SIDE]).any()
    before, after = (recording.rounds[step][0][0]["rewards"] for step in (0, 1))
    assert [lines[0].split(", ")[-1] for lines in captions[:2]] == ["before adaptation", "after 1 adaptation step"]
    assert captions[0][1] == "step 0 of 4, return so far 0.00"
    assert captions[3][1] == f"step 1 of 2, return so far {after[0]:.2f}"
    assert captions[-1][1] == f"step 4 of 4, return so far {before.sum():.2f}"


@pytest.mark.thorough
@pytest.mark.slow
def test_robots_are_rendered(tmp_path):
    """OpenGL renders a half cheetah in both panels, and it moves."""
    try:
        camera.Camera(make_env("HalfCheetahRandDirecEnv")._batched.engine.model).close()
    except RuntimeError as error:
        pytest.skip(str(error))
    folder = train(tmp_path / "robot", "--env", "HalfCheetahRandDirecEnv")
    run(folder, "--num_tasks", 3, "--num_steps", 1, "--max_path_length", 5)
    meta, pictures = read_video(folder / "video.mp4")
    assert pictures.shape == (2 * 6, HEIGHT, WIDTH, 3) and meta["fps"] == 20.0  # two directions; 0.05 s per step
    for side in sides(pictures):
        assert np.abs(side[0] - side[5]).max() > 60
    left, right = sides(pictures)
    assert np.abs(left[5] - right[5]).max() > 60


# Invalid arguments -------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_video_is_overwritten_only_on_request(point, tmp_path, capsys):
    path = tmp_path / "a.mp4"
    path.write_text("mine")
    assert "expected a file that does not exist" in mistake(capsys, point, "--output", path)
    assert path.read_text() == "mine"
    run(point, "--num_tasks", 1, "--num_steps", 1, "--max_path_length", 1, "--output", path, "--overwrite")
    assert read_video(path)[0]["codec"] == "h264"


def test_missing_video_extra_is_reported_before_sampling(point, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setattr(MetaEvaluator, "record", lambda *args: pytest.fail("it was sampled"))
    said = mistake(capsys, point, "--output", tmp_path / "a.mp4")
    assert said.endswith('error: videos require imageio-ffmpeg: run `pip install "meta_policy_search[video]"`\n')
    assert not list(tmp_path.iterdir())


def test_missing_opengl_is_reported_before_sampling(point, tmp_path, capsys, monkeypatch):
    def no_picture(env):
        raise RuntimeError("render: there is no OpenGL to draw pictures with: run `apt-get install libegl1`")

    monkeypatch.setattr(MetaEvaluator, "record", lambda *args: pytest.fail("it was sampled"))
    monkeypatch.setattr("meta_policy_search.envs.MetaPointEnvNavigation._draw", no_picture)
    assert "there is no OpenGL" in mistake(capsys, point, "--output", tmp_path / "a.mp4")
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough(but="arguments2-expected one of the corners")
@pytest.mark.parametrize("arguments, message", [
    (["--num_steps", "0"], "num_steps: expected an integer of at least 1, got 0"),
    (["--tasks", "[[1, 1]]"], "expected one of the corners"),
    (["--snapshot", "9"], "contains no snapshot of iteration 9"),
    (["--seed", "-1"], "seed: expected an integer of at least 0, got -1"),
])
def test_invalid_arguments_are_reported(arguments, message, point, capsys):
    assert message in mistake(capsys, point, *arguments)
    assert not (point / "video.mp4").exists()


@pytest.mark.parametrize("arguments, message", [
    (["--fps", "0"], "--fps: expected a finite number above 0, got 0.0"),
    (["--output", "a.gif"], "expected a name that ends with .mp4, got 'a.gif'"),
])
def test_wrong_videos_are_refused_before_paths_are_sampled(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run_folder, "find_run", str)
    assert message in mistake(capsys, tmp_path, *arguments)


@pytest.mark.thorough
def test_environments_without_rendering_and_folders_without_runs_are_refused(tmp_path, capsys):
    folder = train(tmp_path / "bandit", "--env", "MetaBernoulliBanditEnv")
    capsys.readouterr()
    assert "MetaBernoulliBanditEnv does not support render_mode='rgb_array'" in mistake(capsys, folder)
    assert "got nowhere, which does not exist" in mistake(capsys, "nowhere")
