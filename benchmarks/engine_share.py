"""How much of the speed of the physics engine is left when a policy acts in HalfCheetahRandDirecEnv.

Four things take turns, so that whatever else the machine does meets all of them alike:

* sampling: a `MetaSampler` collects paths;
* population: a `PopulationSampler` collects paths of candidates in place of tasks, as searches do;
* alone: `mujoco.rollout` simulates the same start states under the same controls, in one call from start to end;
* stepwise: the library's engine simulates them in calls of one control step each, as sampling does.
"""
import statistics
import time
from types import SimpleNamespace
from typing import Any, Callable, Mapping, NamedTuple

import mujoco
import mujoco.rollout
import numpy as np

from benchmarks.processes import Figures
from benchmarks.sampling import collect
from experiments import common
from meta_policy_search.envs.mujoco_envs.engine import MujocoEngine
from meta_policy_search.samplers.population_sampler import PopulationSampler
from meta_policy_search.types import PathsMetaBatch
from meta_policy_search.utils.cores import available_cores

FRAME_SKIP = 5  # simulation steps per control step, as in the environment


class Recording(NamedTuple):
    """What was simulated while paths were sampled; `k` paths of `T` steps."""

    qpos: np.ndarray  # [k, nq], start positions
    qvel: np.ndarray  # [k, nv], start velocities
    controls: np.ndarray  # [T, k, nu]


def measure_share(threads: str, settings: Mapping[str, Any], rounds: int) -> Figures:
    """Measures them in turns.

    Args:
        threads: `"one_thread"` or `"all_cores"`.
        settings: settings of an experiment that differ from its defaults.
        rounds: how many turns each of them has, at least one; there is one more, which does not count.
    """
    num_threads = {"one_thread": 1, "all_cores": available_cores()}[threads]
    config = common.Config(**{**settings, "env": "HalfCheetahRandDirecEnv", "env_kwargs": {"num_threads": num_threads}})
    parts = common.build_parts(config)
    recording = _record(parts.sampler.obtain_samples())
    alone, stepwise = _make_alone(recording, num_threads), _make_stepwise(recording, num_threads)
    population = _make_population(config, parts)
    turns: list[tuple[float, float, float, float]] = []
    for _ in range(1 + rounds):
        turns.append((collect(parts.sampler), population(), alone(), stepwise()))
    sampling_rate, population_rate, alone_rate, stepwise_rate = map(statistics.median, zip(*turns[1:], strict=True))
    prefix = f"engine.{threads}"
    return {
        f"{prefix}.alone_steps_per_s": alone_rate,
        f"{prefix}.stepwise_steps_per_s": stepwise_rate,
        f"{prefix}.sampling_steps_per_s": sampling_rate,
        f"{prefix}.population_steps_per_s": population_rate,
        f"{prefix}.stepwise_share": stepwise_rate / alone_rate,
        f"{prefix}.sampling_share": sampling_rate / alone_rate,
        f"{prefix}.population_share": population_rate / alone_rate,
    }


def _make_population(config: common.Config, parts: common.Parts) -> Callable[[], float]:
    """Returns a function that collects paths of as many candidates as there are tasks, and returns steps per second."""
    algo = SimpleNamespace(policy=parts.policy, max_path_length=config.max_path_length)
    sampler = PopulationSampler(algo, parts.env)
    params = parts.policy.get_flat_params()
    candidates = params + 0.1 * np.random.standard_normal((config.meta_batch_size, len(params)))
    batch_size = config.rollouts_per_meta_task * config.max_path_length

    def population() -> float:
        started = time.perf_counter()
        paths = sampler.obtain_population_samples(0, batch_size, candidates)
        elapsed = time.perf_counter() - started
        return sum(len(path["rewards"]) for candidate in paths for path in candidate) / elapsed

    return population


def _record(samples: PathsMetaBatch) -> Recording:
    """Takes start states and controls from paths; their positions along x are not observed, and do not matter."""
    paths = [path for task_paths in samples.values() for path in task_paths]
    starts = np.array([path["observations"][0] for path in paths])
    actions = np.stack([path["actions"] for path in paths], axis=1).astype(np.float64)
    return Recording(
        qpos=np.concatenate((np.zeros((len(paths), 1)), starts[:, :8]), axis=1),
        qvel=starts[:, 8:],
        controls=np.clip(actions / 10.0, -1.0, 1.0),  # the scale of `normalize`; the robot's controls span -1 to 1
    )


def _make_alone(recording: Recording, num_threads: int) -> Callable[[], float]:
    """Returns a function that simulates all at once and returns the control steps per second."""
    model = MujocoEngine("half_cheetah", 1, FRAME_SKIP).model
    engine = mujoco.rollout.Rollout(nthread=num_threads if num_threads > 1 else 0)  # 0: on the calling thread
    scratch = [mujoco.MjData(model) for _ in range(num_threads)]
    length, count, _ = recording.controls.shape
    controls = np.repeat(recording.controls.swapaxes(0, 1), FRAME_SKIP, axis=1)
    starts = np.concatenate((np.zeros((count, 1)), recording.qpos, recording.qvel), axis=1)
    reached = np.empty((count, length * FRAME_SKIP, starts.shape[1]))

    def alone() -> float:
        started = time.perf_counter()
        engine.rollout([model] * count, scratch, starts, controls, nstep=length * FRAME_SKIP, state=reached,
                       skip_checks=True)
        elapsed = time.perf_counter() - started
        if not np.allclose(reached[:, -1, 0], length * FRAME_SKIP * model.opt.timestep):
            raise RuntimeError("the engine stopped a simulation before its end")
        return length * count / elapsed

    return alone


def _make_stepwise(recording: Recording, num_threads: int) -> Callable[[], float]:
    """Returns a function that simulates step by step and returns the control steps per second."""
    length, count, _ = recording.controls.shape
    engine = MujocoEngine("half_cheetah", count, FRAME_SKIP, num_threads=num_threads)

    def stepwise() -> float:
        engine.set_state(recording.qpos, recording.qvel)
        started = time.perf_counter()
        for controls in recording.controls:
            engine.step(controls)
        return length * count / (time.perf_counter() - started)

    return stepwise
