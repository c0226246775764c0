"""What paths hold does not depend on which of them are under way together."""
import numpy as np
import pytest

from meta_policy_search.actors.stacked_mlp import StackedGaussianMLP
from meta_policy_search.envs.interface import MetaEnv
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.utils import set_seed


class EnvWithRareInfos(MetaEnv):
    """Paths of 1 to 5 steps, of which odd ones give a count, late ones a vector, and the last one an outcome."""

    observation_space = action_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)

    def sample_tasks(self, n_tasks):
        return [None] * n_tasks

    def set_task(self, task):
        pass

    def reset(self, *, seed=None, options=None):
        self.length, self.t = int(self.np_random.integers(1, 6)), 0
        return np.zeros(1), {}

    def step(self, action):
        self.t += 1
        is_last = self.t == self.length
        info = {"t": self.t}
        info.update({"odd": self.t} if self.t % 2 else {})
        info.update({"late": np.arange(2)} if self.t > 2 else {})
        info.update({"outcome": "done", "success": True} if is_last else {})
        return np.full(1, float(self.t)), 0.0, is_last, False, info


class FixedPolicy:
    """Two tasks' policies that always act alike."""

    meta_batch_size, obs_dim, action_dim = 2, 1, 1

    def make_actor(self):
        params = {"mean_network/output/kernel": np.zeros((2, 1, 1), np.float32),
                  "mean_network/output/bias": np.zeros((2, 1), np.float32),
                  "log_std_network/log_std_var": np.zeros((2, 1), np.float32)}
        return StackedGaussianMLP(params, 0, None, None, -10.0)


@pytest.mark.parametrize("envs_per_task", [1, 4, 6])
def test_infos_that_only_some_steps_give_are_nan_or_none_in_the_others(envs_per_task):
    set_seed(3)
    with MetaSampler(EnvWithRareInfos(), FixedPolicy(), 6, 2, 5, envs_per_task=envs_per_task) as sampler:
        paths = [path for task_paths in sampler.obtain_samples().values() for path in task_paths]
    assert {len(path["rewards"]) for path in paths} == {1, 2, 3, 4, 5}  # so that all cases below occur
    for path in paths:
        t = np.arange(1, len(path["rewards"]) + 1)
        is_last = t == len(t)
        infos = path["env_infos"]
        np.testing.assert_array_equal(infos["t"], t)
        np.testing.assert_array_equal(infos["odd"], np.where(t % 2, t, np.nan))
        np.testing.assert_array_equal(infos["late"], np.where((t > 2)[:, None], [0.0, 1.0], np.nan))
        np.testing.assert_array_equal(infos["success"], np.where(is_last, 1.0, np.nan))
        assert infos["outcome"].tolist() == [None] * (len(t) - 1) + ["done"]
        assert infos["t"].dtype.kind == "i" and infos["success"].dtype == infos["odd"].dtype == np.float64


@pytest.mark.parametrize("envs_per_task, executor", [(1, "iterative"), (4, "iterative"), (6, "iterative"),
                                                     (6, "parallel")])
def test_progress_counts_every_step_of_every_path_once(envs_per_task, executor):
    """Given paths that end early, then the steps that they lack count when they end."""
    counts = []
    with MetaSampler(EnvWithRareInfos(), FixedPolicy(), 6, 2, 5, envs_per_task=envs_per_task,
                     executor=executor) as sampler:
        sampler.on_steps = counts.append
        sampler.obtain_samples()
        assert sampler.total_timesteps_sampled < sum(counts) == 6 * 2 * 5
        assert len(counts) > 1 and min(counts) > 0
