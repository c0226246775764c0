"""Environment steps per second that a sampler takes, by executor."""
import functools
import statistics
import time
from typing import Any, Mapping

from benchmarks.processes import Figures
from benchmarks.training import ENVS
from experiments.parts import build_parts
from experiments.settings import MetaConfig
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.samplers.vectorized_env_executor.parallel import MetaParallelEnvExecutor

EXECUTORS = {
    "iterative": "iterative",
    "batched": "batched",
    **{f"parallel_{n}": functools.partial(MetaParallelEnvExecutor, num_processes=n) for n in (1, 2, 4)},
}
"""What `MetaSampler` is given for `executor`, by the name that it has in keys."""


def measure_executors(env: str, settings: Mapping[str, Any], seconds: float) -> Figures:
    """Measures the throughput of every executor, the policy's work included.

    Args:
        env: one of `training.ENVS`.
        settings: settings of an experiment that differ from its defaults.
        seconds: how long to sample with each executor, after a first collection of paths that does not count; at
            least one collection counts.
    """
    config = MetaConfig(**{**settings, "env": ENVS[env]})
    parts = build_parts(config)
    figures: Figures = {}
    for name, executor in EXECUTORS.items():
        with MetaSampler(parts.env, parts.policy, config.rollouts_per_meta_task, config.meta_batch_size,
                         config.max_path_length, executor=executor) as sampler:
            collect(sampler)
            rates = [collect(sampler)]
            ends = time.perf_counter() + seconds
            while time.perf_counter() < ends:
                rates.append(collect(sampler))
        figures[f"sampling.{env}.{name}_steps_per_s"] = statistics.median(rates)
    return figures


def collect(sampler: MetaSampler) -> float:
    """Collects paths of new tasks; returns the environment steps per second."""
    sampler.update_tasks()
    steps = sampler.total_timesteps_sampled
    started = time.perf_counter()
    sampler.obtain_samples()
    return (sampler.total_timesteps_sampled - steps) / (time.perf_counter() - started)
