"""Compares the speed of sampling with the speed of the physics engine alone, by robot and number of threads.

Several variants alternate, with one thread and with all cores, so that other programs affect all of them equally:

* sampling: a `MetaSampler` collects paths;
* workers: the same in worker processes, with all cores;
* population: a `SingleTaskSampler` collects paths of candidates instead of tasks, as searches do;
* alone: `mujoco.rollout` simulates the same paths with the same controls, one call per path;
* stepwise: the library's engine simulates these paths with one call per control step, as in sampling.
"""
import copy
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, Callable, Mapping, NamedTuple

import mujoco
import mujoco.rollout
import numpy as np

from benchmarks.processes import Figures
from benchmarks.sampling import collect
from benchmarks.training import build, configure
from benchmarks.workload import timed
from meta_policy_search.actors import actor_from_policy
from meta_policy_search.envs import make_env
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.np.algos import NOP
from meta_policy_search.samplers.single_task_sampler import SingleTaskSampler
from meta_policy_search.utils.threads import available_cores

ROBOTS = {
    "half_cheetah": "HalfCheetahRandDirecEnv",
    "walker2d": "Walker2DRandDirecEnv",
    "hopper": "HopperRandParamsEnv",
    "swimmer": "SwimmerRandVelEnv",
    "ant": "AntRandDirecEnv",
    "humanoid": "HumanoidRandDirecEnv",
}
"""Name of the robot in keys to environment."""


class Recording(NamedTuple):
    """Start states and controls of `k` sampled paths with up to `T` steps."""

    tasks: list  # [k]
    qpos: np.ndarray  # [k, nq], start positions
    qvel: np.ndarray  # [k, nv], start velocities
    lengths: np.ndarray  # int [k], steps of each path
    controls: np.ndarray  # [k, T, nu], zero after the end of a path
    last_observations: np.ndarray  # [k, O]


def measure_share(robot: str, settings: Mapping[str, Any], rounds: int) -> Figures:
    """Measures all variants in alternating turns.

    Args:
        robot: one of `ROBOTS`; populations are measured only for the first robot.
        settings: settings of an experiment that differ from its defaults.
        rounds: number of counted turns, at least one; one additional first turn is not counted.
    """
    variants: dict[str, Callable[[], float]] = {}
    for name, num_threads in (("one_thread", 1), ("all_cores", available_cores())):
        config = configure(**{**settings, "env": ROBOTS[robot], "env_kwargs": {"num_threads": num_threads}})
        trainer = build(config)
        recording = record(config, trainer)
        variants[f"{name}.sampling"] = lambda sampler=trainer.sampler: collect(sampler)
        if robot == next(iter(ROBOTS)):
            variants[f"{name}.population"] = _make_population(config, trainer)
        variants[f"{name}.alone"] = _make_alone(config, recording, num_threads)
        variants[f"{name}.stepwise"] = _make_stepwise(config, recording)
    with build(configure(**{**settings, "env": ROBOTS[robot], "parallel": True})).sampler as workers:
        variants["all_cores.workers"] = lambda: collect(workers)
        turns = [{key: variant() for key, variant in variants.items()} for _ in range(1 + rounds)]
    rates = {key: statistics.median(turn[key] for turn in turns[1:]) for key in variants}
    figures = {f"engine.{robot}.{key}_steps_per_s": rate for key, rate in rates.items()}
    for key, rate in rates.items():
        threads, variant = key.split(".")
        if variant != "alone":
            figures[f"engine.{robot}.{key}_share"] = rate / rates[f"{threads}.alone"]
    for variant in ("alone", "sampling"):
        figures[f"engine.{robot}.{variant}_scaling"] = rates[f"all_cores.{variant}"] / rates[f"one_thread.{variant}"]
    return figures


def record(config: SimpleNamespace, trainer: Trainer) -> Recording:
    """Samples paths; returns their start states and controls."""
    sampler, policy = trainer.sampler, trainer.policy
    sampler.update_tasks()
    places = [(m, r) for m in range(config.meta_batch_size) for r in range(config.rollouts_per_meta_task)]
    rngs = [sampler.path_rng(*place) for place in places]
    actor = actor_from_policy(policy)
    for rng in rngs:  # the policy's noise is drawn before the start state
        actor.draw_noise(rng, np.empty((config.max_path_length, policy.action_dim), np.float32))
    tasks = [sampler.tasks[m] for m, _ in places]
    start = make_batched(config, tasks)
    start.reset(np.arange(len(rngs)), rngs)
    state = start.engine.get_state()
    samples = sampler.obtain_samples()
    paths = [samples[m][r] for m, r in places]
    controls = np.zeros((len(paths), config.max_path_length, policy.action_dim))
    low, high = start.engine.control_low, start.engine.control_high
    for row, path in zip(controls, paths, strict=True):
        wanted = low + (path["actions"] / config.normalization_scale + 1.0) / 2.0 * (high - low)  # as `normalize` does
        row[:len(wanted)] = np.clip(wanted, low, high)
    return Recording(tasks, state.qpos, state.qvel, np.array([len(path["rewards"]) for path in paths]), controls,
                     np.array([path["last_observation"] for path in paths]))


def make_batched(config: SimpleNamespace, tasks: list) -> Any:
    """Returns a vectorized environment with one copy per task."""
    batched = make_env(config.env, **config.env_kwargs or {}).make_batched(len(tasks))
    batched.set_tasks(tasks)
    return batched


def _make_population(config: SimpleNamespace, trainer: Trainer) -> Callable[[], float]:
    """Returns a function that collects paths of `meta_batch_size` candidates; it returns the steps per second."""
    algo = NOP()
    algo.policy, algo.max_path_length = trainer.policy, config.max_path_length
    sampler = SingleTaskSampler(algo, trainer.env)
    params = trainer.policy.get_flat_params()
    candidates = params + 0.1 * np.random.standard_normal((config.meta_batch_size, len(params)))
    batch_size = config.rollouts_per_meta_task * config.max_path_length

    def population() -> float:
        paths, taken = timed(sampler.obtain_population_samples, 0, batch_size, candidates)
        return sum(len(path["rewards"]) for candidate in paths for path in candidate) / taken.wall

    return population


def _make_alone(config: SimpleNamespace, recording: Recording, num_threads: int) -> Callable[[], float]:
    """Returns a function that simulates one path per call of the engine; it returns the control steps per second."""
    batched = make_batched(config, recording.tasks)
    model, frame_skip = batched.engine.model, batched.robot.frame_skip
    models = {id(task): _model_of(task, model) for task in recording.tasks}
    states = np.concatenate((np.zeros((len(recording.tasks), 1)), recording.qpos, recording.qvel), axis=1)
    shares = [np.argsort(recording.lengths)[first::num_threads] for first in range(num_threads)]  # of equal work
    paths = [[(models[id(recording.tasks[p])], states[p:p + 1],
               np.repeat(recording.controls[p:p + 1, :recording.lengths[p]], frame_skip, axis=1)) for p in share]
             for share in shares]

    def simulate(share: list) -> None:
        data = [mujoco.MjData(model)]
        reached = np.empty((1, config.max_path_length * frame_skip, states.shape[1]))
        with mujoco.rollout.Rollout(nthread=0) as engine:  # nthread=0: in the calling thread
            for path_model, start, controls in share:
                num_steps = controls.shape[1]
                engine.rollout([path_model], data, start, controls, nstep=num_steps, state=reached[:, :num_steps],
                               skip_checks=True)
                if not np.isclose(reached[0, num_steps - 1, 0], num_steps * model.opt.timestep):
                    raise RuntimeError("alone: the physics engine stopped a simulation early")

    def alone() -> float:
        with ThreadPoolExecutor(num_threads) as threads:
            started = time.perf_counter()
            list(threads.map(simulate, paths))
            return recording.lengths.sum() / (time.perf_counter() - started)

    return alone


def _model_of(task: Any, model: mujoco.MjModel) -> mujoco.MjModel:
    """Returns the model of a task; for a task of physical parameters (a dict), a modified copy."""
    if not isinstance(task, Mapping):
        return model
    model = copy.copy(model)
    for name, values in task.items():
        getattr(model, name)[:] = values
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def _make_stepwise(config: SimpleNamespace, recording: Recording) -> Callable[[], float]:
    """Returns a function that simulates one control step per call; it returns the control steps per second."""
    batched = make_batched(config, recording.tasks)
    engine, lengths = batched.engine, recording.lengths
    active = [np.flatnonzero(lengths > step) for step in range(lengths.max())]
    controls = [recording.controls[ids, step] for step, ids in enumerate(active)]

    def stepwise() -> float:
        engine.set_state(recording.qpos, recording.qvel)
        started = time.perf_counter()
        for ids, held in zip(active, controls, strict=True):
            engine.step(held, None if len(ids) == len(lengths) else ids)
        return lengths.sum() / (time.perf_counter() - started)

    return stepwise
