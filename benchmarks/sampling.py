"""Sampling throughput in environment steps per second, by executor."""
import functools
import statistics
import time
from typing import Any, Mapping

from benchmarks.processes import Figures
from benchmarks.training import ENVS, build, configure
from benchmarks.workload import timed
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.samplers.vectorized_env_executor import MetaIterativeEnvExecutor, MetaParallelEnvExecutor
from meta_policy_search.samplers.vectorized_env_executor.local import MetaBatchedEnvExecutor

EXECUTORS = {
    "iterative": MetaIterativeEnvExecutor,
    "batched": MetaBatchedEnvExecutor,
    **{f"parallel_{n}": functools.partial(MetaParallelEnvExecutor, num_processes=n) for n in (1, 2, 4)},
}
"""Name in keys to the class of the executor, which collects the paths of a `MetaSampler`."""


def measure_executors(env: str, settings: Mapping[str, Any], seconds: float) -> Figures:
    """Measures the throughput of every executor, including the policy.

    Args:
        env: one of `training.ENVS`.
        settings: settings of an experiment that differ from its defaults.
        seconds: sampling time per executor, in seconds. The first collection of paths is not counted; at least one
            collection is counted.

    Returns:
        Median rates over collections, in environment steps per second.
    """
    config = configure(**{**settings, "env": ENVS[env]})
    trainer = build(config)
    figures: Figures = {}
    for name, executor in EXECUTORS.items():
        with MetaSampler(trainer.env, trainer.policy, config.rollouts_per_meta_task, config.meta_batch_size,
                         config.max_path_length) as sampler:
            sampler._executor = executor(sampler.sampled_env, sampler.meta_batch_size, sampler.envs_per_task,
                                         sampler.max_path_length)
            collect(sampler)
            rates = [collect(sampler)]
            ends = time.perf_counter() + seconds
            while time.perf_counter() < ends:
                rates.append(collect(sampler))
        figures[f"sampling.{env}.{name}_steps_per_s"] = statistics.median(rates)
    return figures


def collect(sampler: MetaSampler) -> float:
    """Samples new tasks and collects paths; returns the environment steps per second of the collection."""
    sampler.update_tasks()
    steps = sampler.total_timesteps_sampled
    _, taken = timed(sampler.obtain_samples)
    return (sampler.total_timesteps_sampled - steps) / taken.wall
