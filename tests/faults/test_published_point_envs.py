"""The published module paths contain the published point environments."""
import numpy as np

from meta_policy_search import envs
from meta_policy_search.envs.point_envs import corner_goals_point_env_2d, point_env_2d
from meta_policy_search.envs.point_envs.point_env_2d_walls import MetaPointEnvWalls


def test_published_module_contains_the_published_meta_point_env():
    """Paths of the only task start anywhere in the square; rewards are minus the distance; paths end at the goal."""
    env = point_env_2d.MetaPointEnv()
    assert env.sample_tasks(2) == [{}, {}] and env.get_task() == {}
    env.set_task({})
    starts = np.array([env.reset()[0] for _ in range(2000)])
    np.testing.assert_allclose(starts.var(axis=0), 4.0 / 3.0, rtol=0.1)
    np.testing.assert_allclose(np.abs(starts).max(axis=0), 2.0, atol=0.01)
    assert (env.action_space.low.tolist(), env.action_space.high.tolist()) == ([-0.1, -0.1], [0.1, 0.1])
    position, _ = env.reset(seed=3)
    for step in range(40):
        action = -position + (0.0 if step == 39 else 0.05)
        position = position + np.clip(action, -0.1, 0.1)
        observation, reward, terminated, truncated, _ = env.step(action)
        np.testing.assert_array_equal(observation, position)
        assert reward == -np.sqrt(position[0]**2 + position[1]**2)
        assert (terminated, truncated) == (step == 39, False)


def test_other_navigation_env_keeps_its_earlier_name():
    """Existing scripts and settings with `MetaPointEnv` get the same environment as before."""
    for earlier in (envs.MetaPointEnv, envs.point_envs.MetaPointEnv, envs.get_env_class("MetaPointEnv")):
        assert earlier is envs.MetaPointEnvNavigation is not point_env_2d.MetaPointEnv
    assert corner_goals_point_env_2d.MetaPointEnv is envs.MetaPointEnvCornerGoals


def test_wall_rewards_use_the_position_without_walls_as_published():
    """For points that move outwards, positions and rewards equal those of the published rules."""
    n, rng = 40, np.random.default_rng(0)
    for reward_type in ("dense", "dense_squared", "sparse"):
        batched = MetaPointEnvWalls(reward_type=reward_type).make_batched(n)
        tasks = batched.sample_tasks(n, rng)
        batched.set_tasks(tasks)
        positions, pushes = batched.reset(np.arange(n), [rng] * n), rng.normal(size=(n, 2))
        for _ in range(40):
            actions = pushes + 0.3 * rng.normal(size=(n, 2))
            expected = [published_walls(*row, reward_type) for row in zip(positions, actions, tasks)]
            answer = batched.step(actions)
            positions = answer.observations
            np.testing.assert_allclose(positions, [position for position, _ in expected], rtol=1e-12)
            np.testing.assert_allclose(answer.rewards, [reward for _, reward in expected], rtol=1e-12, atol=1e-14)


def published_walls(position, action, task, reward_type):
    """Returns the new position and reward of one step of one point (0 where the published reward is None)."""
    moved = position + np.clip(action, -0.2, 0.2)
    before, after = (np.linalg.norm(point - task["goal"]) for point in (position, moved))
    rewards = {"dense": -after, "dense_squared": -after**2, "sparse": before - after if after < 2.0 else 0.0}
    for wall, gap in ((1.0, task["gap_1"]), (2.0, task["gap_2"])):
        if np.linalg.norm(position) < wall < np.linalg.norm(moved) and np.linalg.norm(moved - gap) > 1.0:
            return moved / (np.linalg.norm(moved) / wall + 1e-6), rewards[reward_type]
    return moved, rewards[reward_type]
