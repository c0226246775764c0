"""Path dicts for tests of sample processors."""
import numpy as np


def make_path(rng, length, obs_dim=3, action_dim=2):
    """Returns a random path; the entry `baseline` is for baselines that predict it."""
    return {
        "observations": rng.normal(size=(length, obs_dim)),
        "actions": rng.normal(size=(length, action_dim)),
        "rewards": rng.normal(size=length),
        "env_infos": {"forward": rng.normal(size=length), "image": rng.normal(size=(length, 2, 2))},
        "agent_infos": {"mean": rng.normal(size=(length, action_dim)), "log_std": np.zeros((length, action_dim))},
        "baseline": rng.normal(size=length),
    }


def make_paths(lengths=(6, 9, 4), seed=0):
    rng = np.random.default_rng(seed)
    return [make_path(rng, length) for length in lengths]


def reward_path(rewards, baseline=None):
    """Returns a path with the given rewards; observations and actions are one."""
    rewards = np.array(rewards)
    return {"observations": np.ones((len(rewards), 1)), "actions": np.ones((len(rewards), 1)), "rewards": rewards,
            "env_infos": {}, "agent_infos": {}, "baseline": baseline}


class TimeTable:
    """Baseline that predicts a fixed number for each step and stores the targets of its last fit."""

    def __init__(self, values):
        self.values = np.array(values)

    def fit(self, paths, target_key):
        self.targets = [path[target_key].copy() for path in paths]

    def predict(self, path):
        return self.values[:len(path["observations"])]


def paths_with_returns(*returns):
    """Returns paths of two steps with the given undiscounted returns."""
    return [{"observations": np.ones((2, 2)), "actions": np.zeros((2, 2)), "rewards": np.array([r - 1.0, 1.0]),
             "last_observation": np.zeros(2), "terminated": False} for r in returns]
