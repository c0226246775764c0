"""Tests the environments with discrete actions: rewards, transitions and common properties."""
import numpy as np
import pytest

from meta_policy_search.envs import KhazadDumEnv, MetaBernoulliBanditEnv, MetaTabularMDPEnv

ALL = [MetaBernoulliBanditEnv, MetaTabularMDPEnv]
S, A = 3, 2
CHAIN = {  # action 0 leads from 0 to 1 to 2 to 0, action 1 stays
    "transitions": np.stack([np.roll(np.eye(S), 1, axis=1), np.eye(S)], axis=1),
    "reward_means": [[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]],
}


def fair(outcomes, probability):
    """Returns whether the share of independent outcomes is within five standard deviations of its probability."""
    return abs(np.mean(outcomes) - probability) < 5 * np.sqrt(probability * (1 - probability) / np.size(outcomes))


def many(env, n, task, seed=0):
    """Returns `n` copies of an environment after a reset, each with its own generator."""
    batched = env.make_batched(n)
    batched.set_tasks([task] * n)
    batched.reset(np.arange(n), [np.random.default_rng((seed, i)) for i in range(n)])
    return batched


@pytest.mark.parametrize("arm, probability", [(0, 0.9), (1, 0.0), (2, 0.25), (3, 1.0)])
def test_arm_pays_with_its_probability(arm, probability):
    batched = many(MetaBernoulliBanditEnv(num_arms=4), 500, [0.9, 0.0, 0.25, 1.0])
    rewards = np.array([batched.step(np.full(500, arm)).rewards for _ in range(10)])
    assert set(np.unique(rewards)) <= {0.0, 1.0} and rewards.dtype == np.float64
    assert np.mean(rewards) == probability if probability in (0.0, 1.0) else fair(rewards, probability)


def test_bandit_observation_is_constant_and_paths_never_end():
    env = MetaBernoulliBanditEnv()
    assert env.reset(seed=0)[0].tolist() == [1.0]
    for arm in range(5):
        observation, _, terminated, truncated, info = env.step(arm)
        assert (observation.tolist(), terminated, truncated, info) == ([1.0], False, False, {})


def test_states_and_rewards_follow_the_tables():
    env = MetaTabularMDPEnv(S, A)
    env.set_task(CHAIN)
    observation, info = env.reset(seed=0)
    assert observation.tolist() == [1.0, 0.0, 0.0] and info == {}
    for action, state, mean in [(1, 0, 20.0), (0, 1, 10.0), (0, 2, 30.0), (1, 2, 60.0), (0, 0, 50.0)]:
        observation, reward, terminated, truncated, info = env.step(action)
        assert observation.tolist() == np.eye(S)[state].tolist()
        assert abs(reward - mean) < 5.0  # standard deviation 1
        assert (terminated, truncated, info) == (False, False, {})


def test_next_states_and_rewards_have_the_distribution_of_the_task():
    n = 4000
    task = {"transitions": np.full((S, A, S), [0.2, 0.0, 0.8]), "reward_means": np.full((S, A), -3.0)}
    task["transitions"][0, 1], task["reward_means"][0, 1] = [0.1, 0.6, 0.3], 2.0
    batched = many(MetaTabularMDPEnv(S, A), n, task)
    answer = batched.step(np.ones(n, int))
    for state, probability in enumerate([0.1, 0.6, 0.3]):
        assert fair(answer.observations[:, state], probability)
    assert answer.rewards.mean() == pytest.approx(2.0, abs=5 / np.sqrt(n))
    assert answer.rewards.std() == pytest.approx(1.0, rel=0.06)
    assert abs(np.corrcoef(answer.rewards, answer.observations[:, 1])[0, 1]) < 0.08  # independent draws
    rewards = batched.step(np.ones(n, int)).rewards
    for state, mean in enumerate([2.0, -3.0, -3.0]):
        here = answer.observations[:, state] == 1.0
        assert rewards[here].mean() == pytest.approx(mean, abs=5 / np.sqrt(here.sum()))


def test_path_starts_in_state_zero():
    batched = many(MetaTabularMDPEnv(S, A), 2, CHAIN)
    batched.step(np.zeros(2, int))
    again = batched.reset(np.array([1]), [np.random.default_rng(0)])
    np.testing.assert_array_equal(again, [[1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(batched.step(np.ones(2, int)).observations, np.eye(S)[[1, 0]])


def test_tasks_are_random_processes():
    env = MetaTabularMDPEnv()
    tasks = env.sample_tasks(300, rng=np.random.default_rng(0))
    transitions = np.array([task["transitions"] for task in tasks])
    means = np.array([task["reward_means"] for task in tasks])
    assert transitions.shape == (300, 10, 5, 10) and means.shape == (300, 10, 5)
    np.testing.assert_allclose(transitions.sum(axis=-1), 1.0)
    # flat Dirichlet: each probability has mean 1 / S and variance (S - 1) / (S^2 (S + 1))
    np.testing.assert_allclose(transitions.mean(axis=(0, 1, 2)), 0.1, rtol=0.05)
    np.testing.assert_allclose(transitions.var(axis=(0, 1, 2)), 9.0 / (100.0 * 11.0), rtol=0.1)
    assert means.mean() == pytest.approx(1.0, abs=0.05) and means.std() == pytest.approx(1.0, rel=0.03)


@pytest.mark.parametrize("env_class", ALL)
def test_step_before_the_first_reset_is_refused(env_class):
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        env_class().step(0)


LEFT, RIGHT, DOWN, UP = range(4)


def moved_from(place, actions, noise=0.0):
    """Returns the last position and all rewards, times 32, of a path from `place`."""
    env = KhazadDumEnv()
    env.set_task(noise)
    env.reset(seed=0)
    states = env._batched.states
    states[:] = (*place, 0.0)
    rewards = [32.0 * env.step(action)[1] for action in actions]
    return states[0, :2].tolist(), rewards


def test_agent_moves_one_cell_unless_it_meets_a_wall():
    assert moved_from((2.0, 1.0), [RIGHT, UP, RIGHT, DOWN, LEFT])[0] == [3.0, 1.0]
    assert moved_from((1.2, 1.4), [LEFT, DOWN])[0] == [1.2, 1.4]  # both lead into walls, cells (0, 1) and (1, 0)
    assert moved_from((9.0, 7.0), [RIGHT, UP])[0] == [9.0, 7.0]


def test_both_bridges_lead_to_the_goal_and_the_way_is_paid_by_its_distance():
    place, rewards = moved_from((2.0, 2.0), [UP] * 7)
    assert place == [2.0, 7.0] and rewards == pytest.approx([-0.8, -0.6, -0.4, -0.2, 5.0, 0.0, 0.0])
    place, rewards = moved_from((6.0, 2.0), [RIGHT] + [UP] * 5 + [LEFT] * 6)
    assert place == [2.0, 7.0] and rewards == pytest.approx([-1.0] * 6 + [-0.8, -0.6, -0.4, -0.2, 5.0, 0.0])


@pytest.mark.parametrize("column", [1, 3, 4, 5, 6])
def test_agent_falls_next_to_the_bridges(column):
    place, rewards = moved_from((column, 2.0), [UP, UP, RIGHT, UP])
    assert place == [column, 3.0] and rewards == pytest.approx([-1.0] * 4)


def test_short_bridge_adds_noise_that_costs_three_times_its_deviation():
    batched = many(KhazadDumEnv(), 2000, 0.05)
    batched.states[:] = (2.0, 3.0, 0.0)
    answer = batched.step(np.full(2000, UP))
    shifts = batched.states[:, :2] - (2.0, 4.0)
    np.testing.assert_allclose(shifts.std(axis=0), 0.05, rtol=0.1)
    np.testing.assert_allclose(32.0 * answer.rewards, -0.15 - (np.abs(shifts[:, 0]) + 3.0 - shifts[:, 1]) / 5.0)
    for quiet in ((8.0, 3.0), (2.0, 2.0), (2.0, 6.0)):  # the safe bridge, and next to the abyss
        batched.states[:] = (*quiet, 0.0)
        batched.step(np.full(2000, LEFT))
        assert (batched.states[:, :2] == (quiet[0] - 1.0, quiet[1])).all()


def test_observation_of_khazad_dum_interpolates_between_the_centers_of_cells():
    env = KhazadDumEnv()
    env.reset(seed=0)
    env._batched.states[:] = (1.25, 1.5, 0.0)
    weights = env.step(RIGHT)[0].reshape(11, 9)  # at (2.25, 1.5)
    np.testing.assert_allclose(weights[2:4, 1:3], [[0.375, 0.375], [0.125, 0.125]])
    assert weights.sum() == pytest.approx(1.0) and np.count_nonzero(weights) == 4


def test_tasks_of_khazad_dum_are_exponential_and_starts_uniform():
    env = KhazadDumEnv()
    tasks = np.array(env.sample_tasks(4000, np.random.default_rng(0)))
    assert tasks.mean() == pytest.approx(0.1, rel=0.1) and tasks.std() == pytest.approx(0.1, rel=0.1)
    starts = many(env, 2000, 0.1).states[:, :2]
    assert starts.min() >= 0.5 and starts.max() <= 2.5
    np.testing.assert_allclose(starts.mean(axis=0), 1.5, atol=0.05)
