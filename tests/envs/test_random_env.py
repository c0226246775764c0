"""Tests RandomEnv: robots whose physical parameters are the task."""
import numpy as np
import pytest

from meta_policy_search.envs.base import RandomEnv
from meta_policy_search.envs.mujoco_envs.robots import Robot
from tests.helpers.robots import engine_of

BASES = {"body_mass": 1.5, "dof_damping": 1.3, "body_inertia": 1.5, "geom_friction": 1.5}


class RestingHopper(Robot):
    """A hopper that starts at rest and terminates at a low height."""

    def start_state(self, init_qpos, num_velocities, rng):
        return init_qpos + rng.uniform(-0.005, 0.005, len(init_qpos)), np.zeros(num_velocities)

    def rewards(self, progress, actions, after):
        return progress, {"velocity": progress}

    def terminated(self, state):
        return state.qpos[:, 1] < 1.22  # m


class HopperEnv(RandomEnv):
    """A hopper with task-specific physics."""

    def __init__(self, log_scale_limit=3.0, **settings):
        super().__init__(RestingHopper("hopper", frame_skip=4), log_scale_limit, **settings)


def run(batched, tasks, steps=10):
    """Returns the observations `[steps, n, 11]` of a run with equal actions and start states in all environments."""
    batched.set_tasks(tasks)
    n = batched.num_envs
    batched.reset(np.arange(n), [np.random.default_rng(0) for _ in range(n)])
    actions = np.random.default_rng(1).uniform(-1.0, 1.0, (steps, 3))
    return np.array([batched.step(np.tile(action, (n, 1))).observations for action in actions])


def test_task_scales_each_number_within_the_limit():
    env = HopperEnv(log_scale_limit=2.0)
    model = env.get_task()
    tasks = env.sample_tasks(200, np.random.default_rng(0))
    for name, base in BASES.items():
        positive = model[name] > 0.0
        draws = np.array([task[name] for task in tasks])
        exponents = np.log(draws[:, positive] / model[name][positive]) / np.log(base)
        assert (draws[:, ~positive] == 0.0).all()
        assert np.abs(exponents).max() <= 2.0 + 1e-9
        assert exponents.std() == pytest.approx(4.0 / np.sqrt(12), rel=0.1)
        assert (exponents.std(axis=0) > 0.9).all()  # each number is drawn independently
        assert np.unique(exponents[0].round(12)).size == positive.sum()


def test_robot_without_a_task_equals_the_model():
    plain = HopperEnv(log_scale_limit=0.0)
    (same,) = plain.sample_tasks(1)
    for name, values in plain.get_task().items():
        np.testing.assert_array_equal(values, engine_of(plain).get_parameter(name))
        np.testing.assert_array_equal(same[name], values)
    untouched = plain.make_batched(1)
    untouched.reset(np.array([0]), [np.random.default_rng(0)])
    action = np.random.default_rng(1).uniform(-1.0, 1.0, (10, 3))[0]
    np.testing.assert_array_equal(untouched.step(action[None]).observations, run(plain.make_batched(1), [same])[0])


@pytest.mark.parametrize("name", list(BASES))
def test_each_parameter_changes_the_motion(name):
    batched = HopperEnv(log_scale_limit=3.0, rand_params=[name]).make_batched(2)
    model = batched.get_tasks()[0]
    (task,) = batched.sample_tasks(1, np.random.default_rng(0))
    assert set(task) == {name}
    observations = run(batched, [model, task], steps=25)
    assert (observations[-1, 0] != observations[-1, 1]).any()


def test_new_task_replaces_all_parameters():
    batched = HopperEnv(log_scale_limit=3.0).make_batched(1)
    task = batched.sample_tasks(1, np.random.default_rng(0))[0]
    before = run(batched, [{}])
    run(batched, [task])
    np.testing.assert_array_equal(run(batched, [{}]), before)  # parameters missing in the task are those of the model
    assert (run(batched, [task]) != before).any()
