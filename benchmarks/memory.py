"""Memory of an iteration with the sizes of Meta-World's ML45, in an environment of random noise without physics."""
import tempfile
from typing import Any, List, Mapping, Optional, Sequence

import numpy as np

from benchmarks.processes import Figures
from benchmarks.training import peak_memory
from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import BatchableMetaEnv, BatchedEnv
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.types import BatchedStep, Task
from meta_policy_search.utils import logger
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.utils import set_seed

OBS_DIM, ACTION_DIM, NUM_INFOS = 39, 4, 7
"""Sizes of a Meta-World environment."""

ML45 = {"meta_batch_size": 45, "rollouts_per_meta_task": 10, "max_path_length": 500}


class BatchedNoiseEnv(BatchedEnv):
    """Vectorized `NoiseEnv` with `num_envs` copies."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (OBS_DIM,), np.float64)
    action_space = gym.spaces.Box(-1.0, 1.0, (ACTION_DIM,), np.float64)

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        self._rngs: List[np.random.Generator] = [np.random.default_rng(0)] * num_envs

    def sample_tasks(self, n_tasks: int, rng: np.random.Generator) -> List[Task]:
        """Returns dummy tasks."""
        return [0] * n_tasks

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """Ignores the tasks."""

    def get_tasks(self) -> List[Task]:
        """Returns dummy tasks."""
        return [0] * self.num_envs

    def reset(self, env_ids: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Starts new paths; returns random observations."""
        for env_id, rng in zip(env_ids, rngs, strict=True):
            self._rngs[env_id] = rng
        return self._draw(env_ids, OBS_DIM)

    def step(self, actions: np.ndarray, env_ids: Optional[np.ndarray] = None) -> BatchedStep:
        """Returns random observations, rewards and infos; actions have no effect."""
        _, ids = self._rows(actions, env_ids)
        observations, infos, never = self._draw(ids, OBS_DIM), self._draw(ids, NUM_INFOS), np.zeros(len(ids), bool)
        env_infos = {f"info_{i}": infos[:, i] for i in range(NUM_INFOS)}
        return BatchedStep(observations, infos[:, 0].copy(), never, never.copy(), env_infos)

    def _draw(self, ids: np.ndarray, size: int) -> np.ndarray:
        return np.array([self._rngs[env_id].random(size) for env_id in ids])


class NoiseEnv(BatchableMetaEnv):
    """Environment of random noise with the sizes of Meta-World."""

    batched_class = BatchedNoiseEnv


def measure_ml45(settings: Mapping[str, Any]) -> Figures:
    """Measures the peak memory of an iteration of ProMP: two collections of paths, processing, adaptation, meta-update.

    Args:
        settings: sizes that override `ML45`.
    """
    from meta_policy_search.meta_algos import ProMP
    from meta_policy_search.meta_trainer import Trainer
    from meta_policy_search.policies import MetaGaussianMLPPolicy

    set_seed(1)
    sizes = {name: settings.get(name, size) for name, size in ML45.items()}
    env = NoiseEnv()
    policy = MetaGaussianMLPPolicy(meta_batch_size=sizes["meta_batch_size"], obs_dim=OBS_DIM, action_dim=ACTION_DIM,
                                   name="policy", hidden_sizes=(64, 64))
    with MetaSampler(env=env, policy=policy, **sizes) as sampler:
        started_with = peak_memory()
        trainer = Trainer(algo=ProMP(policy=policy, meta_batch_size=sizes["meta_batch_size"]), env=env, sampler=sampler,
                          sample_processor=MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True),
                          policy=policy, n_itr=1)
        with tempfile.TemporaryDirectory() as folder, logger.scoped_configure(folder, ("csv",)):
            trainer.train()
        num_steps = sampler.total_timesteps_sampled
    return {"ml45_memory.peak_memory_mib": peak_memory(), "ml45_memory.before_sampling_mib": started_with,
            "ml45_memory.env_steps": num_steps}
