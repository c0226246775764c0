"""Tests single paths: `samplers.utils.rollout`."""
import sys

import numpy as np
import pytest

from meta_policy_search import MetaEnv, MetaPointEnv, MetaPointEnvCorner
from meta_policy_search.samplers.utils import rollout
from meta_policy_search.utils.gym_import import gym


class Right:
    """Always moves to the right."""

    def get_action(self, observation):
        return np.array([0.2, 0.0]), {"seen": observation}


class TakesTurns(Right):
    """Counts the paths in which it acted."""

    turn = 0

    def reset(self):
        self.turn += 1

    def get_action(self, observation):
        return np.array([0.1, 0.0]), {"turn": self.turn}


def test_agent_is_reset_at_the_start_of_a_path():
    agent, env = TakesTurns(), MetaPointEnv()
    for turn in (1, 2, 3):
        np.testing.assert_array_equal(rollout(env, agent, max_path_length=2)["agent_infos"]["turn"], turn)


class EndsAtThree(MetaEnv):
    """Counts steps, terminates after three steps, and counts renderings."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gym.spaces.Box(-1, 1, (2,))
    rendered = 0

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.zeros(1), {}

    def step(self, action):
        self.t += 1
        return np.full(1, float(self.t)), 1.0, self.t >= 3, False, {"t": self.t}

    def render(self):
        self.rendered += 1


def test_path_holds_observations_actions_and_rewards():
    env = MetaPointEnvCorner(reward_type="dense")
    env.set_task(np.array([2.0, 2.0]))

    path = rollout(env, Right(), max_path_length=5)

    assert path["observations"].shape == (5, 2) and path["actions"].shape == (5, 2)
    np.testing.assert_allclose(np.diff(path["observations"][:, 0]), 0.2)
    np.testing.assert_array_equal(path["agent_infos"]["seen"], path["observations"])
    np.testing.assert_allclose(path["last_observation"], path["observations"][-1] + [0.2, 0.0])
    after = np.vstack([path["observations"][1:], path["last_observation"]])
    np.testing.assert_allclose(path["rewards"], -np.linalg.norm(after - [2.0, 2.0], axis=1))
    assert not path["terminated"]


def test_path_ends_with_the_environment_unless_ignore_done_is_set():
    assert len(rollout(EndsAtThree(), Right(), max_path_length=7)["rewards"]) == 3
    assert rollout(EndsAtThree(), Right(), max_path_length=7)["terminated"]
    assert len(rollout(EndsAtThree(), Right(), max_path_length=7, ignore_done=True)["rewards"]) == 7


class Reporting(EndsAtThree):
    """Reports different infos at each of its three steps and reuses its arrays."""

    def reset(self, *, seed=None, options=None):
        self.position = np.zeros(1)
        super().reset()
        return self.position, {}

    def step(self, action):
        _, *rest = super().step(action)
        self.position += 1.0
        action[:] = 9.0
        infos = [{}, {"early": True, "place": self.position, "word": "second"}, {"late": 3}]
        return (self.position, *rest[:-1], infos[self.t - 1])


class Thinking:
    """Reports agent infos at some steps only and reuses its action array."""

    def __init__(self):
        self.thoughts = iter([{"mean": np.zeros(2)}, {"mean": np.ones(2), "doubt": 0.5}, {}])
        self.action = np.zeros(2)

    def get_action(self, observation):
        self.action += 1.0
        return self.action, next(self.thoughts)


def test_missing_infos_are_none():
    path = rollout(Reporting(), Thinking())
    infos = path["env_infos"]
    np.testing.assert_array_equal(infos["early"], [None, True, None])
    np.testing.assert_array_equal(infos["place"], [[None], [2.0], [None]])
    np.testing.assert_array_equal(infos["late"], [None, None, 3])
    assert infos["word"].tolist() == [None, "second", None]
    np.testing.assert_array_equal(path["agent_infos"]["mean"], [[0.0, 0.0], [1.0, 1.0], [None, None]])
    np.testing.assert_array_equal(path["agent_infos"]["doubt"], [None, 0.5, None])


def test_reused_arrays_of_environment_and_agent_are_copied():
    path = rollout(Reporting(), Thinking())
    np.testing.assert_array_equal(path["observations"], [[0.0], [1.0], [2.0]])
    np.testing.assert_array_equal(path["last_observation"], [3.0])
    np.testing.assert_array_equal(path["actions"], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])


def test_path_without_infos_has_empty_info_dicts():
    class Quiet(EndsAtThree):
        def step(self, action):
            return (*super().step(action)[:-1], {})

    path = rollout(Quiet(), Right())
    assert path["env_infos"] == {} and list(path["agent_infos"]) == ["seen"]


@pytest.mark.parametrize("filename", ["run.mp4", None])
def test_video_shows_the_start_and_every_step(filename, tmp_path, monkeypatch):
    """A point that moves 0.1 to the right per step moves by the same distance in the video."""
    from tests.helpers.videos import read_video

    monkeypatch.chdir(tmp_path)
    env = MetaPointEnv(render_mode="rgb_array")
    env.set_task([-0.4, 0.4])
    path = rollout(env, Right(), 4, speedup=0.5, save_video=True, video_filename=filename)
    np.testing.assert_allclose(path["observations"], [[0.0, 0.0], [0.1, 0.0], [0.2, 0.0], [0.3, 0.0]])
    meta, pictures = read_video(tmp_path / (filename or "sim_out.mp4"))
    assert len(pictures) == 5 and meta["size"] == (480, 480) and meta["fps"] == 5.0  # half of 10 steps per second
    right_ends = [np.nonzero(blue - red > 60)[1].max() for red, _, blue in
                  (picture.transpose(2, 0, 1) for picture in pictures)]
    np.testing.assert_allclose(np.diff(right_ends), 0.88 * 480 * 0.1 / (2 * 1.15 * 0.5), atol=2.0)


def test_invalid_videos_are_refused(tmp_path, monkeypatch):
    with pytest.raises(TypeError, match="save_video: expected True or False, got 'yes'"):
        rollout(EndsAtThree(), Right(), save_video="yes")
    with pytest.raises(ValueError, match='save_video: expected an environment created with render_mode="rgb_array"'):
        rollout(EndsAtThree(), Right(), save_video=True)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ImportError, match="run `pip install imageio-ffmpeg pillow`$"):
        rollout(MetaPointEnv(render_mode="rgb_array"), Right(), save_video=True, video_filename=str(tmp_path / "a.mp4"))
    assert not list(tmp_path.iterdir())


def test_animation_takes_the_requested_time(monkeypatch):
    naps = []
    monkeypatch.setattr("meta_policy_search.samplers.utils.time.sleep", naps.append)
    env = EndsAtThree()
    env.metadata = {"render_fps": 2}

    rollout(env, Right(), animated=True, speedup=2.0)

    assert env.rendered == 3 and naps == [0.25, 0.25, 0.25]


@pytest.mark.parametrize("argument", [{"max_path_length": 0}, {"speedup": 0.0}])
def test_invalid_numbers_are_named(argument):
    with pytest.raises(ValueError, match=next(iter(argument))):
        rollout(EndsAtThree(), Right(), **argument)
