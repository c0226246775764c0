"""Tests trajectories stored as flat arrays: conversion from and to paths, and refused inputs."""
import numpy as np
import pytest

from meta_policy_search.envs.spaces import EnvSpec
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.utils.gym_import import gym

O, A = 2, 1
SPEC = EnvSpec(gym.spaces.Box(-10.0, 10.0, (O,)), gym.spaces.Box(-1.0, 1.0, (A,)))
LENGTHS = (3, 1)
N = sum(LENGTHS)


def make_fields(**changes):
    """Returns the fields of two trajectories with three steps and one step; the first one terminates."""
    fields = {
        "env_spec": SPEC, "observations": np.arange(N * O, dtype=float).reshape(N, O),
        "last_observations": np.array([[100.0, 101.0], [200.0, 201.0]]),
        "actions": np.arange(N * A, dtype=float).reshape(N, A), "rewards": np.arange(N, dtype=float),
        "terminals": np.array([False, False, True, False]), "env_infos": {"x": np.arange(N)},
        "agent_infos": {"mean": np.zeros((N, A))}, "lengths": np.array(LENGTHS),
    }
    return {**fields, **changes}


@pytest.fixture
def batch():
    return TrajectoryBatch(**make_fields())


def test_batch_is_split_into_paths(batch):
    assert len(batch) == 2
    first, second = batch.to_paths()
    np.testing.assert_array_equal(first["observations"], [[0, 1], [2, 3], [4, 5]])
    np.testing.assert_array_equal(second["actions"], [[3]])
    np.testing.assert_array_equal(first["env_infos"]["x"], [0, 1, 2])
    np.testing.assert_array_equal(second["last_observation"], [200, 201])
    assert (first["terminated"], second["terminated"]) == (True, False)


def test_batch_built_from_its_paths_equals_the_batch(batch):
    np.testing.assert_equal(vars(TrajectoryBatch.from_paths(SPEC, batch.to_paths())), vars(batch))


def test_next_observations_stay_within_their_trajectory(batch):
    np.testing.assert_array_equal(batch.next_observations, [[2, 3], [4, 5], [100, 101], [200, 201]])


def test_next_observations_keep_the_fractions_of_last_observations():
    batch = TrajectoryBatch(**make_fields(observations=np.zeros((N, O), int), last_observations=np.full((2, O), 0.5)))
    np.testing.assert_array_equal(batch.next_observations[:, 0], [0.0, 0.0, 0.5, 0.5])


def test_discrete_actions_have_no_action_axis():
    spec = EnvSpec(SPEC.observation_space, gym.spaces.Discrete(3))
    batch = TrajectoryBatch(**make_fields(env_spec=spec, actions=np.array([0, 2, 1, 1])))
    np.testing.assert_array_equal(batch.to_paths()[0]["actions"], [0, 2, 1])
    np.testing.assert_equal(vars(TrajectoryBatch.from_paths(spec, batch.to_paths())), vars(batch))


@pytest.mark.parametrize("changes, message", [
    ({"env_spec": None}, "env_spec: expected an EnvSpec, got None"),
    ({"observations": np.zeros((N + 1, O))}, r"^observations: expected numbers of shape \(4, 2\), given .*\(5, 2\)"),
    ({"actions": np.zeros(N)}, r"actions: .* of shape \(4, 1\), .* env_spec, got float64 of shape \(4,\)"),
    ({"rewards": np.zeros((N, 1))}, r"rewards: expected numbers of shape \(4,\), given lengths .*, got .*\(4, 1\)"),
    ({"env_infos": {"x": np.zeros(5)}}, r"env_infos\['x'\]: expected 4 steps, .*, got shape \(5,\)"),
    ({"lengths": np.array([4, 0])}, r"lengths: expected at least one integer, each at least 1, got \[4 0\]"),
    ({"terminals": np.array([False, True, False, False])}, r"terminals: .* at \[2 3\]\), got True at \[1\]"),
    ({"terminals": np.zeros(N)}, "terminals: expected booleans .*, got float64"),
    ({"rewards": np.array(["a"] * N)}, "rewards: expected numbers"),
    ({"rewards": np.array([0.0, np.nan, 0.0, 0.0])}, "rewards: expected finite numbers, got nan"),
    ({"last_observations": np.full((2, O), np.inf)}, "last_observations: expected finite numbers, got inf"),
])
def test_inconsistent_fields_are_refused(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        TrajectoryBatch(**make_fields(**changes))


def test_invalid_paths_are_refused(batch):
    with pytest.raises(ValueError, match="paths: expected at least one path"):
        TrajectoryBatch.from_paths(SPEC, [])
    first, second = batch.to_paths()
    del second["last_observation"]
    with pytest.raises(ValueError, match="path 1: expected a key 'last_observation'"):
        TrajectoryBatch.from_paths(SPEC, [first, second])
    with pytest.raises(ValueError, match="path 0: observations: expected 3 steps, the number of rewards"):
        TrajectoryBatch.from_paths(SPEC, [{**first, "observations": np.zeros((2, O))}])
