"""Tests the robots: rewards computed by hand, observation, start, end and tasks.

Common properties of environments are in `test_contract.py`.
"""
import dataclasses

import mujoco
import numpy as np
import pytest

from meta_policy_search.envs.mujoco_envs import (
    AntRandDirec2DEnv,
    AntRandDirecEnv,
    AntRandGoalEnv,
    HalfCheetahRandDirecEnv,
    HalfCheetahRandVelEnv,
    HopperRandParamsEnv,
    HumanoidRandDirec2DEnv,
    HumanoidRandDirecEnv,
    SwimmerRandVelEnv,
    Walker2DRandDirecEnv,
    Walker2DRandParamsEnv,
    Walker2DRandVelEnv,
)
from meta_policy_search.envs.mujoco_envs.engines.base import State
from tests.helpers.robots import engine_of

ANTS = [AntRandDirecEnv, AntRandDirec2DEnv, AntRandGoalEnv]
CHEETAHS = [HalfCheetahRandDirecEnv, HalfCheetahRandVelEnv]
HUMANOIDS = [HumanoidRandDirecEnv, HumanoidRandDirec2DEnv]
WALKERS = [Walker2DRandDirecEnv, Walker2DRandVelEnv, Walker2DRandParamsEnv]


def computed(env, action):
    """Returns MuJoCo's values in the state of a single environment under `action`."""
    engine = engine_of(env)
    state = engine.get_state()
    data = mujoco.MjData(engine.model)
    data.qpos, data.qvel, data.ctrl = state.qpos[0], state.qvel[0], action
    mujoco.mj_forward(engine.model, data)
    mujoco.mj_rnePostConstraint(engine.model, data)
    return data


def after_steps(env, action, steps):
    """Resets and steps, so that robots reach the ground; returns the last observation and step result."""
    env.reset(seed=0)
    for _ in range(steps):
        answer = env.step(action)
    return answer


@pytest.mark.parametrize("env_class, timestep, dt, observation_size, action_size, largest_action", [
    *((cls, 0.01, 0.05, 111, 8, 1.0) for cls in ANTS[:2]), (AntRandGoalEnv, 0.01, 0.05, 113, 8, 1.0),
    *((cls, 0.01, 0.05, 17, 6, 1.0) for cls in CHEETAHS), (HopperRandParamsEnv, 0.002, 0.008, 11, 3, 1.0),
    *((cls, 0.003, 0.015, 376, 17, 0.4) for cls in HUMANOIDS), (SwimmerRandVelEnv, 0.01, 0.04, 8, 2, 1.0),
    *((cls, 0.002, 0.016, 17, 6, 1.0) for cls in WALKERS[:2]), (Walker2DRandParamsEnv, 0.002, 0.01, 17, 6, 1.0),
])
def test_steps_and_spaces_equal_the_public_code(env_class, timestep, dt, observation_size, action_size, largest_action):
    env = env_class()
    assert engine_of(env).model.opt.timestep == timestep and env.dt == pytest.approx(dt)
    assert env.observation_space.shape == (observation_size,)
    np.testing.assert_allclose(env.action_space.high, np.full(action_size, largest_action))
    np.testing.assert_allclose(env.action_space.low, np.full(action_size, -largest_action))


# Rewards ---------------------------------------------------------------------------------------------------------

ANT_ACTION = np.array([0.5, -0.5, 1.0, 0.0, 0.2, -1.0, 0.1, -0.1])
HUMANOID_ACTION = np.linspace(-0.4, 0.4, 17)
SURVIVES = {"reward_contact": 0.0, "reward_survive": 1.0}
IN_METERS_PER_SECOND = [  # environment, task, reward for the velocity `[2]` of the torso, its key, cost per squared
    # action, other infos (or the key of the velocity) and the reward per step
    *((HalfCheetahRandDirecEnv, sign, lambda v, sign=sign: sign * v[0], "reward_run", 0.05, {}, 0.0)
      for sign in (-1.0, 1.0)),
    (HalfCheetahRandVelEnv, 2.0, lambda v: -abs(v[0] - 2.0), "reward_run", 0.05, "forward_vel", 0.0),
    *((Walker2DRandDirecEnv, sign, lambda v, sign=sign: sign * v[0], "reward_run", 1e-3, {}, 1.0)
      for sign in (-1.0, 1.0)),
    (Walker2DRandVelEnv, 3.0, lambda v: -abs(v[0] - 3.0), "reward_run", 1e-3, "forward_vel", 15.0),
    (Walker2DRandParamsEnv, None, lambda v: v[0], "reward_run", 1e-3, {}, 1.0),
    (HopperRandParamsEnv, None, lambda v: v[0], "reward_run", 1e-3, {}, 1.0),
    *((SwimmerRandVelEnv, goal, lambda v, goal=goal: -abs(v[0] - goal), "reward_fwd", 1e-4, "forward_vel", 0.0)
      for goal in (0.15, -0.3)),
    *((AntRandDirecEnv, sign, lambda v, sign=sign: sign * v[0], "reward_forward", 0.5, SURVIVES, 1.0)
      for sign in (-1.0, 1.0)),
    (AntRandDirec2DEnv, (0.6, -0.8), lambda v: 0.6 * v[0] - 0.8 * v[1], "reward_forward", 0.5, SURVIVES, 1.0),
]


@pytest.mark.parametrize("env_class, task, run, key, cost, rest, alive", IN_METERS_PER_SECOND)
def test_reward_is_computed_from_the_mean_velocity_of_a_step(env_class, task, run, key, cost, rest, alive):
    env = env_class()
    env.set_task(env.sample_tasks(1, np.random.default_rng(0))[0] if task is None else task)
    action = ANT_ACTION[:env.action_space.shape[0]]
    env.reset(seed=0)
    before = engine_of(env).get_state().qpos[0, :2].copy()
    _, reward, terminated, truncated, info = env.step(action)
    velocity = (engine_of(env).get_state().qpos[0, :2] - before) / env.dt
    assert abs(velocity[0]) > 1e-3 and terminated is False and truncated is False
    rest = {rest: velocity[0]} if isinstance(rest, str) else rest
    assert info == pytest.approx({key: run(velocity), "reward_ctrl": -cost * (action**2).sum(), **rest}, abs=1e-12)
    assert reward == pytest.approx(run(velocity) - cost * (action**2).sum() + alive, abs=1e-12)


def test_reward_of_an_ant_is_minus_the_distance_to_its_goal():
    env = AntRandGoalEnv()
    env.set_task((-1.0, 2.0))
    env.reset(seed=0)
    _, reward, _, _, info = env.step(ANT_ACTION)
    x, y = engine_of(env).get_state().qpos[0, :2]
    away, cost = abs(x + 1.0) + abs(y - 2.0), 0.1 * (ANT_ACTION**2).sum()
    assert info == pytest.approx({
        "reward_forward": -away, "reward_ctrl": -cost, "reward_contact": 0.0, "reward_survive": 0.0})
    assert reward == pytest.approx(-away - cost, abs=1e-12)


@pytest.mark.parametrize("env_class, task, weights", [
    (HumanoidRandDirecEnv, 1.0, (1.0, 0.0)), (HumanoidRandDirecEnv, -1.0, (-1.0, 0.0)),
    (HumanoidRandDirec2DEnv, (0.6, -0.8), (0.6, -0.8)),
])
def test_reward_of_a_humanoid_is_computed_from_its_center_of_mass(env_class, task, weights):

    def center_of_mass():
        mass = engine_of(env).model.body_mass
        return (mass[:, None] * computed(env, HUMANOID_ACTION).xipos).sum(axis=0)[:2] / mass.sum()  # m

    env = env_class()
    env.set_task(task)
    after_steps(env, HUMANOID_ACTION, 25)
    before = center_of_mass()
    _, reward, _, _, info = env.step(HUMANOID_ACTION)
    along = np.dot(weights, center_of_mass() - before)
    assert abs(along) > 1e-5
    squared = (HUMANOID_ACTION**2).sum()
    assert info == pytest.approx({
        "forward_vel": along / 0.015, "reward_linvel": 0.25 * along / 0.003, "reward_quadctrl": -0.1 * squared,
        "reward_alive": 5.0, "reward_impact": 0.0}, abs=1e-12)
    assert reward == pytest.approx(0.25 * along / 0.003 - 0.1 * squared + 5.0, abs=1e-12)


# Observations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_class, first, largest_velocity", [
    *((cls, 1, np.inf) for cls in CHEETAHS), (SwimmerRandVelEnv, 2, np.inf),
    *((cls, 1, 10.0) for cls in (*WALKERS, HopperRandParamsEnv)),
])
def test_observation_is_position_without_place_followed_by_velocity(env_class, first, largest_velocity):
    env = env_class()
    nq, nv = engine_of(env).nq, engine_of(env).nv
    qpos, qvel = np.arange(float(nq)), np.linspace(-50.0, 50.0, nv)
    (observation,) = env._batched.robot.observations(State(qpos[None], qvel[None], {}))
    np.testing.assert_array_equal(observation, [*qpos[first:], *np.clip(qvel, -largest_velocity, largest_velocity)])


@pytest.mark.parametrize("env_class", ANTS)
def test_ant_observes_position_and_velocity_without_contact_forces(env_class):
    env = env_class()
    observation = after_steps(env, ANT_ACTION, 12)[0]
    state = engine_of(env).get_state()
    first = 0 if env_class is AntRandGoalEnv else 2
    np.testing.assert_array_equal(observation[:-84], [*state.qpos[0, first:], *state.qvel[0]])
    np.testing.assert_array_equal(observation[-84:], np.zeros(84))


@pytest.mark.parametrize("env_class", ANTS)
def test_ant_observes_contact_forces_on_request_and_is_penalized(env_class):
    env, without = env_class(contact_forces=True), env_class()
    observation, reward, _, _, info = after_steps(env, ANT_ACTION, 12)
    forces = computed(env, ANT_ACTION).cfrc_ext
    assert np.abs(forces).max() > 1.0  # N: some forces are clipped
    clipped = np.clip(forces, -1.0, 1.0)
    np.testing.assert_array_equal(observation[-84:], clipped.ravel())
    assert info["reward_contact"] == pytest.approx(-0.5e-3 * (clipped**2).sum()) and info["reward_contact"] < -1e-4
    expected = after_steps(without, ANT_ACTION, 12)
    np.testing.assert_array_equal(observation[:-84], expected[0][:-84])  # the motion is unchanged
    assert reward == pytest.approx(expected[1] + info["reward_contact"])


@pytest.mark.parametrize("env_class", HUMANOIDS)
@pytest.mark.parametrize("contact_forces", [False, True])
def test_humanoid_observes_mujocos_values_for_its_state(env_class, contact_forces):
    env = env_class(contact_forces=contact_forces)
    observation = after_steps(env, HUMANOID_ACTION, 25)[0]
    data = computed(env, HUMANOID_ACTION)
    assert np.abs(data.cfrc_ext).max() > 1.0  # the humanoid touches the ground
    forces = data.cfrc_ext if contact_forces else np.zeros((14, 6))
    parts = [data.qpos[2:], data.qvel, data.cinert, data.cvel, data.qfrc_actuator, forces]
    np.testing.assert_array_equal(observation, np.concatenate([part.ravel() for part in parts]))
    assert [part.size for part in parts] == [22, 23, 140, 84, 23, 84]


def test_actuator_forces_of_a_humanoid_are_zero_at_the_start():
    env = HumanoidRandDirecEnv()
    after_steps(env, HUMANOID_ACTION, 1)
    assert engine_of(env).get_state().derived["qfrc_actuator"].any()
    observation = env.reset(seed=0)[0]
    np.testing.assert_array_equal(observation[269:292], np.zeros(23))
    assert observation[45:269].any()


def test_impact_cost_of_a_humanoid_is_limited():
    env = HumanoidRandDirecEnv(contact_forces=True)
    _, reward, _, _, info = after_steps(env, HUMANOID_ACTION, 25)
    cost = 0.5e-6 * (computed(env, HUMANOID_ACTION).cfrc_ext ** 2).sum()
    assert 0.0 < cost < 10.0
    assert info["reward_impact"] == pytest.approx(-cost)
    assert reward == pytest.approx(sum(value for key, value in info.items() if key.startswith("reward_")))
    batched = env._batched
    assert batched.robot.max_impact_cost == 10.0
    batched.robot = dataclasses.replace(batched.robot, max_impact_cost=cost / 2.0)
    assert after_steps(env, HUMANOID_ACTION, 25)[4]["reward_impact"] == pytest.approx(-cost / 2.0)


# Start and end of a path -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_class, height, half_width, normal_velocity", [
    *((cls, 0.75, 0.1, True) for cls in ANTS), *((cls, 0.0, 0.1, True) for cls in CHEETAHS),
    *((cls, 1.4, 0.01, False) for cls in HUMANOIDS), *((cls, 1.25, 0.005, False) for cls in WALKERS),
    (HopperRandParamsEnv, 1.25, 0.005, False), (SwimmerRandVelEnv, 0.0, 0.1, False),
])
def test_start_noise_is_uniform_or_normal(env_class, height, half_width, normal_velocity):
    batched = env_class().make_batched(1000)
    batched.reset(np.arange(1000), [np.random.default_rng((0, i)) for i in range(1000)])
    state, initial = batched.engine.get_state(), batched.engine.init_qpos
    floats = env_class in (*ANTS, *HUMANOIDS)  # with a quaternion, which is normalized
    assert initial[2 if floats else 1] == height
    noise = state.qpos - initial
    if floats:
        np.testing.assert_allclose(np.linalg.norm(state.qpos[:, 3:7], axis=1), 1.0, atol=1e-14)
        spread = (state.qpos[:, 4:7] / state.qpos[:, 3:4]).std(axis=0)
        np.testing.assert_allclose(spread, half_width / np.sqrt(3), rtol=0.12)
        noise = np.delete(noise, [3, 4, 5, 6], axis=1)
    uniform = noise if normal_velocity else np.hstack((noise, state.qvel))
    assert 0.999 * half_width < np.abs(uniform).max() <= half_width
    np.testing.assert_allclose(uniform.std(axis=0), half_width / np.sqrt(3), rtol=0.08)
    if normal_velocity:
        np.testing.assert_allclose(state.qvel.std(axis=0), 0.1, rtol=0.12)  # five standard errors
        np.testing.assert_allclose(state.qvel.mean(axis=0), 0.0, atol=0.016)
        assert np.abs(state.qvel).max() > 0.3  # normal noise exceeds the bounds of uniform noise


@pytest.mark.parametrize("env_classes, index, values, ends", [
    (ANTS[:2], 2, [0.0, 0.5, 1.0, -0.01, 1.01], [False, False, False, True, True]),
    (ANTS[2:], 2, [0.0, 0.5, 1.0, -0.01, 1.01], [False] * 5),
    (HUMANOIDS, 2, [1.0, 1.4, 2.0, 0.99, 2.01], [False, False, False, True, True]),
    (WALKERS, 1, [1.25, 0.81, 1.99, 0.8, 2.0], [False, False, False, True, True]),  # height, m
    (WALKERS, 2, [0.0, 0.99, -0.99, 1.0, -1.0], [False, False, False, True, True]),  # pitch, rad
    ([HopperRandParamsEnv], 1, [0.71, 0.7, 5.0], [False, True, False]),
    ([HopperRandParamsEnv], 2, [0.19, 0.2, -0.2], [False, True, True]),
    ([HopperRandParamsEnv], 5, [99.0, -100.0], [False, True]),  # an angle
    ([HopperRandParamsEnv], 6, [99.0, 100.0], [False, True]),  # velocities
    ([HopperRandParamsEnv], 11, [-100.0], [True]),
])
def test_path_ends_when_the_robot_falls_jumps_or_spins(env_classes, index, values, ends):
    for env_class in env_classes:
        env = env_class()
        nq = engine_of(env).nq
        numbers = np.tile([*engine_of(env).init_qpos, *np.zeros(engine_of(env).nv)], (len(values), 1))
        numbers[:, index] = values
        state = State(numbers[:, :nq], numbers[:, nq:], {})
        assert env._batched.robot.terminated(state).tolist() == ends


# Tasks and arguments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_class, arguments, first", [
    (AntRandDirecEnv, {}, 1.0), (AntRandDirecEnv, dict(goal_direction=-1), -1.0),
    (AntRandDirec2DEnv, {}, [1.0, 0.0]), (AntRandDirec2DEnv, dict(goal_direction=[0, -1]), [0.0, -1.0]),
    (AntRandGoalEnv, {}, [2.0, 0.0]), (AntRandGoalEnv, dict(goal=(4, 5)), [4.0, 5.0]),
    (HalfCheetahRandDirecEnv, {}, 1.0), (HalfCheetahRandDirecEnv, dict(goal_direction=-1), -1.0),
    (HalfCheetahRandVelEnv, dict(max_velocity=2.0), 1.0), (Walker2DRandVelEnv, dict(max_velocity=2.0), 1.0),
    (HumanoidRandDirecEnv, dict(goal_direction=-1.0), -1.0),
    (HumanoidRandDirec2DEnv, dict(goal_direction=[0.0, -1.0]), [0.0, -1.0]),
])
def test_first_task(env_class, arguments, first):
    np.testing.assert_array_equal(env_class(**arguments).get_task(), first)
    np.testing.assert_array_equal(env_class(**arguments).make_batched(2).get_tasks(), [first] * 2)


@pytest.mark.parametrize("env_class", CHEETAHS)
def test_arguments_are_passed_to_the_engine_of_the_vectorized_environment(env_class):
    batched = env_class(inertials="modern", num_threads=3).make_batched(7)
    assert (batched.engine.inertials, batched.engine.num_threads, batched.num_envs) == ("modern", 3, 7)
    assert engine_of(env_class()).inertials == "mujoco210"


@pytest.mark.parametrize("env_class, run, cost", [
    *((cls, "forward_vel", "reward_ctrl") for cls in (HalfCheetahRandVelEnv, SwimmerRandVelEnv, Walker2DRandVelEnv)),
    *((cls, "reward_run", "reward_ctrl")
      for cls in (HalfCheetahRandDirecEnv, Walker2DRandDirecEnv, Walker2DRandParamsEnv)),
    *((cls, "forward_vel", "reward_quadctrl") for cls in HUMANOIDS),
    *((cls, "reward_forward", "reward_ctrl") for cls in ANTS),
])
def test_diagnostics_are_statistics_over_steps_or_paths(logged, env_class, run, cost):
    env_class().log_diagnostics([
        {"env_infos": {run: np.array([1.0, 2.0, 3.0]), cost: np.array([-0.1, -0.1, -0.1])}},
        {"env_infos": {run: np.array([6.0]), cost: np.array([-0.5])}},
    ], prefix="Step_1-")
    over_paths = {"Step_1-AverageForwardReturn": 4.0, "Step_1-MaxForwardReturn": 6.0, "Step_1-MinForwardReturn": 2.0,
                  "Step_1-StdForwardReturn": 2.0, "Step_1-AverageCtrlCost": 0.3}
    over_steps = {"Step_1-AvgForwardVel": 3.0, "Step_1-AvgFinalForwardVel": 4.5, "Step_1-AvgCtrlCost": 0.2}
    assert logged == pytest.approx(over_paths if env_class in ANTS else over_steps)
