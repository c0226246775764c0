"""Tests videos of a policy before and after adaptation: their contents, and invalid arguments."""
import functools
import sys

import numpy as np
import pytest

import meta_policy_search as mps
from experiments import maml_trpo
from meta_policy_search import run_folder
from meta_policy_search.cli.main import main
from meta_policy_search.evaluation import MetaEvaluator
from meta_policy_search.evaluation import recording as video_module
from tests.helpers import commands
from tests.helpers.videos import read_video

SIDE = 480


mistake = functools.partial(commands.mistake, functools.partial(commands.run, "render"))
train = functools.partial(commands.train, maml_trpo)


@pytest.fixture(scope="module")
def point(tmp_path_factory):
    """A run in a point environment with little exploration and large steps; tests must not change it."""
    return train(tmp_path_factory.mktemp("runs") / "point", "--env", "MetaPointEnvCorner", "--inner_lr", 20,
                 "--init_std", 0.3, "--normalization_scale", 1, "--env_kwargs", '{"reward_type": "dense"}')


def run(*arguments):
    assert main(["render", *map(str, arguments)]) == 0


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
def test_video_is_overwritten_only_on_request(point, tmp_path, capsys):
    path = tmp_path / "a.mp4"
    path.write_text("mine")
    assert "expected a file that does not exist" in mistake(capsys, point, "--output", path)
    assert path.read_text() == "mine"
    capsys.readouterr()
    run(point, "--num_tasks", 1, "--num_steps", 1, "--max_path_length", 2, "--fps", 4, "--output", path, "--overwrite")
    assert capsys.readouterr().out == f"Video: {path}, 3 frames, 0.8 s\n"
    meta, pictures = read_video(path)
    assert (meta["codec"], meta["fps"]) == ("h264", 4.0)
    assert pictures.shape == (3, SIDE + video_module.CAPTION_HEIGHT, 2 * SIDE + video_module.GAP, 3)


def test_missing_opengl_and_a_missing_video_extra_are_reported_before_sampling(point, tmp_path, capsys, monkeypatch):
    def no_picture(env):
        raise RuntimeError("render: there is no OpenGL to draw pictures with: run `apt-get install libegl1`")

    monkeypatch.setattr(MetaEvaluator, "record", lambda *args: pytest.fail("it was sampled"))
    monkeypatch.setattr("meta_policy_search.envs.MetaPointEnvNavigation._draw", no_picture)
    assert "there is no OpenGL" in mistake(capsys, point, "--output", tmp_path / "a.mp4")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    said = mistake(capsys, point, "--output", tmp_path / "a.mp4")
    assert said.endswith('error: videos require imageio-ffmpeg: run `pip install imageio-ffmpeg pillow`\n')
    assert not list(tmp_path.iterdir())


def test_invalid_tasks_are_reported(point, capsys):
    assert "expected one of the corners" in mistake(capsys, point, "--tasks", "[[1, 1]]")
    assert not (point / "video.mp4").exists()


@pytest.mark.parametrize("arguments, message", [
    (["--fps", "0"], "--fps: expected a finite number above 0, got 0.0"),
    (["--output", "a.gif"], "expected a name that ends with .mp4, got 'a.gif'"),
])
def test_wrong_videos_are_refused_before_paths_are_sampled(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run_folder, "find_run", str)
    assert message in mistake(capsys, tmp_path, *arguments)
