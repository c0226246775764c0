"""Tests the replay buffer: stored transitions, samples and refused inputs."""
import pickle

import numpy as np
import pytest

from meta_policy_search.envs.spaces import EnvSpec
from meta_policy_search.np.replay_buffer import ReplayBuffer
from meta_policy_search.utils.gym_import import gym

SPEC = EnvSpec(gym.spaces.Box(-np.inf, np.inf, (1,)), gym.spaces.Box(-1.0, 1.0, (1,)))


def make_path(first, length, terminated=False):
    """Returns a path with observations `first`, `first + 1`, ... and rewards ten times as large."""
    steps = first + np.arange(length, dtype=float)
    return {"observations": steps[:, None], "actions": -steps[:, None], "rewards": 10.0 * steps,
            "last_observation": np.array([first + length], float), "terminated": terminated}


def held(buffer):
    """Returns the observations that the buffer samples, in order."""
    return sorted(set(buffer.sample_transitions(1000)["observations"][:, 0].tolist()))


def test_fields_of_a_transition_stay_together():
    buffer = ReplayBuffer(SPEC, 100)
    buffer.add_paths([make_path(1, 3, terminated=True), make_path(7, 2)])
    batch = buffer.sample_transitions(500)
    before = batch["observations"][:, 0]
    np.testing.assert_array_equal(batch["actions"][:, 0], -before)
    np.testing.assert_array_equal(batch["rewards"], 10.0 * before)
    np.testing.assert_array_equal(batch["next_observations"][:, 0], before + 1)
    np.testing.assert_array_equal(batch["terminals"], before == 3)  # the other path was truncated, not terminated
    assert set(before) == {1, 2, 3, 7, 8}


def test_transitions_are_sampled_uniformly():
    buffer = ReplayBuffer(SPEC, 10)
    buffer.add_paths([make_path(0, 4)])
    counts = np.bincount(buffer.sample_transitions(40000)["observations"][:, 0].astype(int))
    np.testing.assert_allclose(counts, 10000, rtol=0.04)


def test_oldest_transitions_are_overwritten():
    buffer = ReplayBuffer(SPEC, 5)
    buffer.add_paths([make_path(0, 3)])
    assert buffer.n_transitions_stored == 3 and held(buffer) == [0, 1, 2]
    buffer.add_paths([make_path(10, 3)])
    assert buffer.n_transitions_stored == 5 and held(buffer) == [1, 2, 10, 11, 12]
    buffer.add_paths([make_path(20, 12)])  # more than the capacity: the last ones are kept
    assert held(buffer) == [27, 28, 29, 30, 31]
    buffer.add_paths([make_path(40, 2)])
    assert held(buffer) == [29, 30, 31, 40, 41]


@pytest.mark.parametrize("size", [5, 50])
def test_unpickled_buffer_continues_like_the_original(size):
    buffer = ReplayBuffer(SPEC, size)
    buffer.add_paths([make_path(0, 7)])
    buffer.sample_transitions(3)
    other = pickle.loads(pickle.dumps(buffer))
    for first in (100, 200):
        expected, batch = buffer.sample_transitions(20), other.sample_transitions(20)
        for name, rows in expected.items():
            np.testing.assert_array_equal(batch[name], rows)
        buffer.add_paths([make_path(first, 4)])
        other.add_paths([make_path(first, 4)])
    assert held(other) == held(buffer)


def test_snapshot_holds_no_empty_rows():
    buffer = ReplayBuffer(SPEC, 1_000_000)
    buffer.add_paths([make_path(0, 7)])
    assert len(pickle.dumps(buffer)) < 10_000


def test_discrete_actions_stay_integers():
    buffer = ReplayBuffer(EnvSpec(SPEC.observation_space, gym.spaces.Discrete(4)), 10)
    buffer.add_paths([{**make_path(0, 3), "actions": np.array([3, 0, 2])}])
    actions = buffer.sample_transitions(100)["actions"]
    assert actions.shape == (100,) and actions.dtype == np.int64 and set(actions) == {0, 2, 3}


def test_invalid_inputs_are_refused():
    with pytest.raises(ValueError, match="size_in_transitions: expected an integer of at least 1, got 0"):
        ReplayBuffer(SPEC, 0)
    with pytest.raises(TypeError, match="env_spec: expected an EnvSpec, got 3"):
        ReplayBuffer(3, 10)
    buffer = ReplayBuffer(SPEC, 10)
    with pytest.raises(ValueError, match="empty buffer"):
        buffer.sample_transitions(4)
    with pytest.raises(ValueError, match="paths: expected at least one path"):
        buffer.add_paths([])
    buffer.add_paths([make_path(0, 3)])
    with pytest.raises(ValueError, match="batch_size: expected an integer of at least 1, got 0"):
        buffer.sample_transitions(0)
    with pytest.raises(ValueError, match=r"observations: expected numbers of shape \(3, 1\)"):
        buffer.add_paths([{**make_path(0, 3), "observations": np.zeros((3, 2)), "last_observation": np.zeros(2)}])
    assert buffer.n_transitions_stored == 3
