"""Environment steps per second of Gymnasium vector environments of a half cheetah with random actions."""
import statistics
import time
from typing import Any, Sequence

import gymnasium
import numpy as np

from benchmarks.processes import Figures
from meta_policy_search.envs.gymnasium import env_id

ENV = env_id("HalfCheetahRandVelEnv")


def measure_vector_envs(group: str, kinds: Sequence[str], num_envs: int, num_steps: int, rounds: int) -> Figures:
    """Measures vector environments in alternating turns.

    Args:
        group: name of the group of figures.
        kinds: `"native"` (the vectorized environment of this library), `"sync"` (`SyncVectorEnv`), `"dummy"`
            (`DummyVecEnv` of stable-baselines3) or `"envpool"` (EnvPool's `HalfCheetah-v5`, the same robot with another
            reward).
        num_envs: number of copies.
        num_steps: number of steps of all copies per turn.
        rounds: number of counted turns, at least one; one additional first turn is not counted.
    """
    envs = {kind: _make(kind, num_envs) for kind in kinds}
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (num_steps, num_envs, 6))
    turns = [{kind: num_steps * num_envs / _seconds(env, actions) for kind, env in envs.items()}
             for _ in range(1 + rounds)]
    return {f"{group}.half_cheetah.{kind}_steps_per_s": statistics.median(turn[kind] for turn in turns[1:])
            for kind in kinds}


def _make(kind: str, num_envs: int) -> Any:
    if kind == "envpool":
        import envpool

        return envpool.make("HalfCheetah-v5", env_type="gymnasium", num_envs=num_envs)
    if kind == "dummy":
        from stable_baselines3.common.vec_env import DummyVecEnv

        return DummyVecEnv([lambda: gymnasium.make(ENV)] * num_envs)
    return gymnasium.make_vec(ENV, num_envs, "sync" if kind == "sync" else "vector_entry_point")


def _seconds(env: Any, actions: np.ndarray) -> float:
    env.reset()
    started = time.perf_counter()
    for action in actions:
        env.step(action)
    return time.perf_counter() - started
