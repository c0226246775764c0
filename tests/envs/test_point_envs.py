"""Tests the 2D point environments: each reward and rule by hand, and properties of all environments."""
import numpy as np
import pytest

from meta_policy_search.envs.point_envs import (
    MetaPointEnvCorner,
    MetaPointEnvCornerGoals,
    MetaPointEnvMomentum,
    MetaPointEnvNavigation,
    MetaPointEnvSemicircle,
    MetaPointEnvV2,
    MetaPointEnvWalls,
    point_env_2d_corner,
    point_env_2d_momentum,
    point_env_2d_walls,
)

NAVIGATION = [MetaPointEnvNavigation, MetaPointEnvV2, MetaPointEnvCornerGoals]
TO_CORNERS = [MetaPointEnvCorner, MetaPointEnvMomentum, MetaPointEnvWalls]


class StartAt:
    """Replaces a generator: a path starts at the given position (and then velocity)."""

    def __init__(self, *starts):
        self.starts = [np.array(start, dtype=float) for start in starts]

    def uniform(self, low, high, size):
        """Returns the next given start."""
        return self.starts.pop(0)


def step_from(env_class, start, task, action, velocity=(0.0, 0.0), **arguments):
    """Returns the step result of one environment for `action` from the given start (and `velocity`)."""
    batched = env_class(**arguments).make_batched(1)
    batched.set_tasks([task])
    batched.reset(np.array([0]), [StartAt(start, velocity)])
    return batched.step(np.array([action]))


@pytest.mark.parametrize("env_class", NAVIGATION)
def test_navigation_starts_at_the_origin_with_minus_the_distance_as_reward(env_class):
    env = env_class()
    env.set_task((-0.4, 0.3))
    observation, info = env.reset()
    assert observation.tolist() == [0.0, 0.0] and info == {}

    observation, reward, terminated, truncated, _ = env.step(np.array([0.0, 0.0]))
    assert observation.tolist() == [0.0, 0.0]
    assert reward == pytest.approx(-0.5)  # 3-4-5
    assert (terminated, truncated) == (False, False)

    observation, reward, _, _, _ = env.step(np.array([-5.0, 0.05]))  # clipped to a step of 0.1
    np.testing.assert_allclose(observation, [-0.1, 0.05])
    assert reward == pytest.approx(-np.sqrt(0.3**2 + 0.25**2))


@pytest.mark.parametrize("env_class", NAVIGATION)
@pytest.mark.parametrize("action, ends", [
    ((0.1, -0.1), True),
    ((0.0905, -0.0905), True),
    ((0.0895, -0.1), False),  # x differs by 0.0105
    ((0.1, -0.0895), False),  # y differs
])
def test_navigation_ends_at_the_goal(env_class, action, ends):
    env = env_class()
    env.set_task((0.1, -0.1))
    env.reset()
    assert env.step(np.array(action))[2] is ends


@pytest.mark.parametrize("env_class", TO_CORNERS)
def test_start_is_uniform_around_the_origin(env_class):
    batched = env_class().make_batched(2000)
    starts = batched.reset(np.arange(2000), [np.random.default_rng(0)] * 2000)
    assert np.abs(starts[:, :2]).max() <= 0.2
    np.testing.assert_allclose(starts[:, :2].var(axis=0), 0.2**2 / 3.0, rtol=0.08)
    if env_class is MetaPointEnvMomentum:
        assert np.abs(starts[:, 2:]).max() <= 0.1
        np.testing.assert_allclose(starts[:, 2:].var(axis=0), 0.1**2 / 3.0, rtol=0.08)


@pytest.mark.parametrize("env_class", TO_CORNERS)
@pytest.mark.parametrize("reward_type, reward", [("dense", -5.0), ("dense_squared", -25.0)])
def test_dense_rewards_are_minus_the_distance_and_minus_its_square(env_class, reward_type, reward):
    """Ends at (-1, -2), 3 and 4 from the goal (2, 2): 5 away."""
    task = [2.0, 2.0] if env_class is not MetaPointEnvWalls else {"goal": [2, 2], "gap_1": [0, 1], "gap_2": [0, 2]}
    answer = step_from(env_class, (-1.1, -1.9), task, (0.1, -0.1), reward_type=reward_type)
    np.testing.assert_allclose(answer.observations[0, :2], [-1.0, -2.0])
    assert answer.rewards[0] == pytest.approx(reward)
    assert not answer.terminated.any() and not answer.truncated.any() and answer.env_infos == {}


@pytest.mark.parametrize("env_class, radius, start, action, reward", [  # the goal is (2, 2)
    *((MetaPointEnvCorner, 0.5, *case) for case in (
        ((1.4, 1.2), (0.15, 0.2), 0.25),  # from (0.6, 0.8), distance 1, to (0.45, 0.6), distance 0.75
        ((1.55, 1.4), (-0.15, -0.2), -0.25),  # and back
        ((0.1, 0.1), (0.1, 0.1), 0.0),  # |x| + |y| = 0.4
        ((0.1, 0.1), (0.2, 0.2), 0.2 * np.sqrt(2.0)),  # |x| + |y| = 0.6
        ((0.0, 0.625), (0.0, -0.125), np.hypot(2.0, 1.375) - np.hypot(2.0, 1.5)),  # exactly 0.5, on the axis: counts
        ((-1.0, -1.0), (0.2, 0.2), 0.0),  # (-2, -2) is nearer
        ((-0.1, 1.0), (0.2, 0.0), np.hypot(2.1, 1.0) - np.hypot(1.9, 1.0)),  # enters the quadrant of the goal
        ((0.1, 1.0), (-0.2, 0.0), 0.0))),  # leaves the quadrant of the goal
    (MetaPointEnvMomentum, 2.0, (1.4, 1.2), (0.0, 0.0), 1.0),  # (0.6, 0.8), distance 1
    (MetaPointEnvMomentum, 1.5, (1.4, 1.2), (0.0, 0.0), 0.5),
    (MetaPointEnvMomentum, 2.0, (0.2, -0.4), (0.0, 0.0), 0.0),  # (1.8, 2.4), distance 3
    (MetaPointEnvWalls, 2.0, (1.4, 1.2), (0.15, 0.2), 0.25), (MetaPointEnvWalls, 0.7, (1.4, 1.2), (0.15, 0.2), 0.0),
])
def test_sparse_reward(env_class, radius, start, action, reward):
    task = walls_task(gap_2=(np.sqrt(2.0), np.sqrt(2.0))) if env_class is MetaPointEnvWalls else (2.0, 2.0)
    answer = step_from(env_class, start, task, action, reward_type="sparse", sparse_reward_radius=radius)
    assert answer.rewards[0] == pytest.approx(reward, abs=1e-12)


def test_momentum_adds_the_action_to_the_velocity_and_the_velocity_to_the_position():
    answer = step_from(MetaPointEnvMomentum, (0.1, 0.0), (2.0, 2.0), (0.3, 0.05), velocity=(0.05, -0.05))
    np.testing.assert_allclose(answer.observations, [[0.25, 0.0, 0.15, 0.0]], atol=1e-15)


def walls_task(gap_1=(1.0, 0.0), gap_2=(2.0, 0.0)):
    return {"goal": (2.0, 2.0), "gap_1": gap_1, "gap_2": gap_2}


@pytest.mark.parametrize("start, action, gaps, end", [
    ((0.9, 0.0), (0.2, 0.0), {"gap_1": (1.0, 0.0)}, (1.1, 0.0)),  # through the middle of the gap
    ((0.9, 0.0), (0.2, 0.0), {"gap_1": (-1.0, 0.0)}, (1.0, 0.0)),  # stopped
    ((0.54, 0.72), (0.2, 0.06), {"gap_1": (-1.0, 0.0)}, (0.74 / np.hypot(0.74, 0.78), 0.78 / np.hypot(0.74, 0.78))),
    ((1.9, 0.0), (0.2, 0.0), {"gap_2": (0.0, 2.0)}, (2.0, 0.0)),
    ((1.1, 0.0), (-0.2, 0.0), {"gap_1": (-1.0, 0.0)}, (0.9, 0.0)),  # inward moves are never stopped
    ((1.3, 0.0), (0.2, 0.2), {"gap_1": (-1.0, 0.0), "gap_2": (-2.0, 0.0)}, (1.5, 0.2)),
    ((0.6, 0.8), (0.2, 0.2), {"gap_1": (-1.0, 0.0)}, (0.8 / np.hypot(0.8, 1.0), 1.0 / np.hypot(0.8, 1.0))),  # wall
])
def test_walls_stop_moves_outside_the_gaps(start, action, gaps, end):
    answer = step_from(MetaPointEnvWalls, start, walls_task(**gaps), action)
    np.testing.assert_allclose(answer.observations[0], end, atol=3e-6)


@pytest.mark.parametrize("env_class", TO_CORNERS)
def test_arguments_are_passed_to_the_vectorized_environment(env_class):
    env = env_class("dense_squared", 0.25)
    assert (env.reward_type, env.sparse_reward_radius) == ("dense_squared", 0.25)
    dense = env_class("dense").make_batched(2)
    for batched in (dense, env.make_batched(2)):
        batched.reset(np.arange(2), [np.random.default_rng(i) for i in range(2)])
    actions = np.full((2, 2), 0.1)
    np.testing.assert_allclose(batched.step(actions).rewards, -dense.step(actions).rewards**2)


@pytest.mark.parametrize("module, env_class, reward_type, radius", [
    (point_env_2d_corner, MetaPointEnvCorner, "sparse", 0.5),
    (point_env_2d_momentum, MetaPointEnvMomentum, "sparse", 2.0),
    (point_env_2d_walls, MetaPointEnvWalls, "dense", 2.0),
])
def test_defaults_equal_the_published_ones(module, env_class, reward_type, radius):
    env = getattr(module, env_class.__name__)()
    assert (env.reward_type, env.sparse_reward_radius) == (reward_type, radius)


@pytest.mark.parametrize("start, action, reward", [  # the goal is (0, 1)
    ((0.0, 0.75), (0.0, 0.1), 0.85),
    ((0.0, 0.75), (0.0, 0.04), 0.0),  # distance 0.21
    ((0.1, 1.0), (0.02, 0.0), 0.88),
    ((0.0, 1.0), (0.0, 0.0), 1.0),
])
def test_reward_on_the_semicircle_is_zero_away_from_the_goal(start, action, reward):
    env = MetaPointEnvSemicircle()
    env.reset()
    env._batched.states[:] = start
    observation, given, terminated, truncated, _ = env.step(action)
    np.testing.assert_allclose(observation, np.add(start, action))
    assert given == pytest.approx(reward) and not terminated and not truncated


def test_goals_are_on_the_semicircle_and_paths_start_at_the_origin():
    env = MetaPointEnvSemicircle(goal_radius=0.5)
    np.testing.assert_allclose(np.hypot(*np.transpose(env.sample_tasks(20, np.random.default_rng(0)))), 1.0)
    assert env.reset(seed=0)[0].tolist() == [0.0, 0.0]
    env.set_task((0.4, 0.0))
    assert env.step((0.0, 0.0))[1] == pytest.approx(0.6)  # within `goal_radius`
