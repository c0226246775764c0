"""Compares sampling on Ray workers with sampling in the process, on the cores of this machine."""
import statistics
from typing import Any, Mapping

import numpy as np

from benchmarks import machine
from benchmarks.parts import build_parts
from benchmarks.processes import Figures
from benchmarks.sampling import collect
from benchmarks.training import ENVS
from meta_policy_search.cli.algorithms import MetaConfig
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.types import PathsMetaBatch


def measure_ray(env: str, settings: Mapping[str, Any], rounds: int) -> Figures:
    """Measures the environment steps per second of both samplers, in alternating turns.

    Args:
        env: one of `training.ENVS`.
        settings: settings of an experiment that differ from its defaults.
        rounds: number of counted turns, at least one; one additional first turn is not counted.
    """
    config = MetaConfig(**{**settings, "env": ENVS[env]})
    parts = build_parts(config)
    sizes = (parts.env, parts.policy, config.rollouts_per_meta_task, config.meta_batch_size, config.max_path_length)
    with (MetaSampler(*sizes, parallel="ray") as on_ray, MetaSampler(*sizes) as here,
          machine.measure_load("ray") as load):
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


def arrays_size(paths: PathsMetaBatch) -> int:
    """Returns the total size of the arrays of paths, in bytes."""
    return sum(array.nbytes for task_paths in paths.values() for path in task_paths
               for arrays in (path, path["env_infos"], path["agent_infos"]) for array in arrays.values()
               if isinstance(array, np.ndarray))
