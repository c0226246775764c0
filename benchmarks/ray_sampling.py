"""Compares sampling on Ray workers with sampling in the process, on the cores of this machine."""
import statistics
from typing import Any, Mapping

from benchmarks import machine
from benchmarks.processes import Figures
from benchmarks.sampling import collect
from benchmarks.training import ENVS, build, configure
from meta_policy_search.samplers import MetaSampler


def measure_ray(env: str, settings: Mapping[str, Any], rounds: int) -> Figures:
    """Measures the environment steps per second of both samplers, in alternating turns.

    Args:
        env: one of `training.ENVS`.
        settings: settings of an experiment that differ from its defaults.
        rounds: number of counted turns, at least one; one additional first turn is not counted.
    """
    config = configure(**{**settings, "env": ENVS[env]})
    trainer = build(config)
    with (MetaSampler(trainer.env, trainer.policy, config.rollouts_per_meta_task, config.meta_batch_size,
                      config.max_path_length, parallel="ray") as on_ray,
          trainer.sampler as here, machine.measure_load("ray") as load):
        turns = [(collect(here), collect(on_ray)) for _ in range(1 + rounds)]
        num_workers = on_ray.vec_env.num_workers
    here_rate, ray_rate = map(statistics.median, zip(*turns[1:], strict=True))
    prefix = f"ray.{env}"
    return {
        f"{prefix}.num_workers": num_workers,
        f"{prefix}.batched_steps_per_s": here_rate,
        f"{prefix}.ray_steps_per_s": ray_rate,
        f"{prefix}.ray_share": statistics.median(on_ray / here for here, on_ray in turns[1:]),
        **load,  # measured while Ray runs: its processes are then descendants
    }
