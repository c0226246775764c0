"""Tests the task distributions of the environments: numbers are uniform and independent, choices equally likely."""
import numpy as np
import pytest
import scipy.stats

from meta_policy_search.envs import make_env

N = 40_000


def between(low, high):
    return lambda tasks: (tasks - low) / np.subtract(high, low)


def angle(points):
    return np.arctan2(points[:, 1], points[:, 0]) / (2.0 * np.pi) + 0.5


def in_disc(radius):
    return lambda points: np.stack([(points ** 2).sum(axis=1) / radius ** 2, angle(points)], axis=1)


@pytest.mark.parametrize("name, arguments, numbers", [
    ("MetaPointEnvNavigation", {}, between(-0.5, 0.5)), ("MetaPointEnvV2", {}, between(-2.0, 2.0)),
    ("MetaPointEnvWalls", {}, lambda tasks: np.stack([angle(np.array([task[gap] for task in tasks]))
                                                      for gap in ("gap_1", "gap_2")], axis=1)),
    ("MetaPointEnvSemicircle", {}, lambda tasks: 2.0 * angle(tasks) - 1.0),
    ("AntRandDirec2DEnv", {}, angle), ("HumanoidRandDirec2DEnv", {}, angle),
    ("AntRandGoalEnv", {}, in_disc(3.0)), ("ReacherRandGoalEnv", {}, in_disc(0.2)),
    ("HalfCheetahRandVelEnv", {}, between(0.0, 3.0)),
    ("HalfCheetahRandVelEnv", {"max_velocity": 2.0}, between(0.0, 2.0)), ("Walker2DRandVelEnv", {}, between(0.0, 10.0)),
    ("SwimmerRandVelEnv", {}, between(0.1, 0.2)),
    ("SwimmerRandVelEnv", {"min_velocity": -1.0, "max_velocity": 0.5}, between(-1.0, 0.5)),
    ("CartPoleMassEnv", {}, between([0.5, 0.05], [2.0, 0.2])), ("PendulumMassEnv", {}, between([0.5], [2.0])),
    ("HalfCheetahRandMassEnv", {}, lambda tasks: np.log(2.0 * tasks) / np.log(4.0)),
    ("HalfCheetahRandBodyEnv", {}, lambda tasks: np.log(2.0 * tasks) / np.log(4.0)),
    ("HalfCheetahRandMassVelEnv", {}, between([0.75, 0.0], [1.25, 2.0])),
    ("Walker2DRandMassVelEnv", {}, between([0.75, 0.0], [1.25, 2.0])),
    ("MetaBernoulliBanditEnv", {"num_arms": 3}, between(0.0, 1.0)),
])
def test_tasks_are_uniform_and_independent(name, arguments, numbers):
    env = make_env(name, **arguments)
    tasks = env.sample_tasks(N, np.random.default_rng(0))
    env.make_batched(10).set_tasks(tasks[:10])  # unit vectors, points on their wall
    values = np.reshape(numbers(tasks if isinstance(tasks[0], dict) else np.array(tasks)), (N, -1))
    assert 0.0 <= values.min() and values.max() <= 1.0
    for column in values.T:
        assert scipy.stats.kstest(column, "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(values.T) - np.eye(values.shape[1])).max() < 0.02  # four standard deviations


def corners(half):
    return [[x, y] for x in (-half, half) for y in (-half, half)]


@pytest.mark.parametrize("name, values", [
    *((f"{robot}RandDirecEnv", [-1.0, 1.0]) for robot in ("Ant", "HalfCheetah", "Humanoid", "Walker2D")),
    *((f"MetaPointEnv{kind}", corners(2.0)) for kind in ("Corner", "Momentum", "Walls")),
    ("MetaPointEnvCornerGoals", corners(0.5)),
])
def test_tasks_have_equal_probability(name, values):
    tasks = make_env(name).sample_tasks(N, np.random.default_rng(0))
    goals = [task["goal"] if isinstance(task, dict) else task for task in tasks]
    found, counts = np.unique(goals, axis=0, return_counts=True)
    np.testing.assert_array_equal(found, values)
    np.testing.assert_allclose(counts, N / len(values), atol=5.0 * np.sqrt(N / len(values)))  # five standard deviations
