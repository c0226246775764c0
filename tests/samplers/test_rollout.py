"""Single paths: `samplers.utils.rollout`."""
import numpy as np
import pytest

from meta_policy_search.envs.base import MetaEnv
from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
from meta_policy_search.samplers.utils import rollout
from meta_policy_search.utils.quiet_gym import gym


class Right:
    """Always steps to the right."""

    def get_action(self, observation):
        return np.array([0.2, 0.0]), {"seen": observation}


class EndsAtThree(MetaEnv):
    """Counts steps, says that it is over after three, and counts renderings."""

    dt = 0.0
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


def test_holds_what_was_seen_done_and_earned():
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


def test_ends_where_the_environment_does_unless_told_to_go_on():
    assert len(rollout(EndsAtThree(), Right(), max_path_length=7)["rewards"]) == 3
    assert rollout(EndsAtThree(), Right(), max_path_length=7)["terminated"]
    assert len(rollout(EndsAtThree(), Right(), max_path_length=7, ignore_done=True)["rewards"]) == 7


def test_animates_every_step_in_the_wanted_time(monkeypatch):
    naps = []
    monkeypatch.setattr("meta_policy_search.samplers.utils.time.sleep", naps.append)
    env = EndsAtThree()
    env.dt = 0.5

    rollout(env, Right(), animated=True, speedup=2.0)

    assert env.rendered == 3 and naps == [0.25, 0.25, 0.25]


@pytest.mark.parametrize("argument", [{"max_path_length": 0}, {"speedup": 0.0}])
def test_says_which_number_is_wrong(argument):
    with pytest.raises(ValueError, match=next(iter(argument))):
        rollout(EndsAtThree(), Right(), **argument)
