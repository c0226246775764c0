"""Tests samplers that are interrupted, receive tasks from the caller, or have very long paths."""
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import cloudpickle
import numpy as np
import pytest

from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
from meta_policy_search.evaluation.recording import next_start_rngs
from meta_policy_search.samplers import rollout_loop
from meta_policy_search.samplers.errors import EnvWorkerError
from meta_policy_search.utils.statistics import task_timesteps
from tests.helpers.sampling import BatchedWanderer, M, Scripted, Wanderer, assert_same, flat_paths, parallel, sampler_of

cloudpickle.register_pickle_by_value(sys.modules[__name__])
TASKS = [0.5, -0.5, 2.0]


def paths_of(sampler):
    return list(sampler.obtain_samples().values())


# Tasks


@pytest.mark.parametrize("executor", [None, "iterative", parallel(2)])
def test_tasks_given_to_the_executor_are_sampled(executor):
    expected = sampler_of(Wanderer())
    expected.update_tasks(TASKS)
    with sampler_of(Wanderer(), executor=executor) as sampler:
        sampler.vec_env.set_tasks(TASKS)
        assert sampler.tasks == TASKS
        assert_same(paths_of(sampler), paths_of(expected))
        assert_same(paths_of(sampler), paths_of(expected))  # the next adaptation step uses the same tasks

        sampler.start_at(5)
        expected.start_at(5)
        sampler.vec_env.set_tasks(TASKS[::-1])
        expected.update_tasks(TASKS[::-1])
        assert_same(paths_of(sampler), paths_of(expected))
        assert_same(sampler.get_state(), expected.get_state())


def test_tasks_given_during_an_iteration_are_part_of_the_sampler_state():
    sampler, other = sampler_of(Wanderer()), sampler_of(Wanderer())
    sampler.obtain_samples()
    sampler.vec_env.set_tasks(TASKS)
    other.set_state(sampler.get_state())
    assert other.tasks == TASKS
    assert_same(paths_of(sampler), paths_of(other))


def test_new_tasks_are_drawn_if_none_are_given_and_after_refused_tasks():
    class Picky(Scripted):
        def set_task(self, task):
            if task == 5:
                raise ValueError("not five")
            self.task = task

    sampler = sampler_of(Picky())
    with pytest.raises(ValueError, match="not five"):
        sampler.vec_env.set_tasks([9, 5, 9])
    sampler.obtain_samples()
    assert sampler.tasks == [9, 2, 9]
    sampler.vec_env.set_tasks([3, 3, 3])
    sampler.start_at(1)  # next iteration
    sampler.obtain_samples()
    assert sampler.tasks == [9, 2, 9]


# Interruption


class Slow(Wanderer):
    """Its steps take a minute unless a file exists."""

    def __init__(self, path=None):
        super().__init__()
        self.path = path

    def step(self, action):
        if self.path is not None and not os.path.exists(self.path):
            time.sleep(60.0)
        return super().step(action)


@pytest.mark.thorough
def test_workers_restart_after_ctrl_c_and_give_equal_data(tmp_path):
    """Ctrl-C during a step ends all workers; the next call starts new workers."""
    path = tmp_path / "quick"
    expected = paths_of(sampler_of(Slow()))
    with sampler_of(Slow(str(path)), executor=parallel(2)) as sampler:
        sampler.update_tasks()
        timer = subprocess.Popen([sys.executable, "-c", f"import os, signal, time; time.sleep(1.0); "
                                                        f"os.kill({os.getpid()}, signal.SIGINT)"])
        with pytest.raises(KeyboardInterrupt):
            sampler.obtain_samples()
        timer.wait()
        path.touch()
        with pytest.raises(RuntimeError, match="paths have ended: reset"):
            sampler.vec_env.step_envs(np.zeros((1, 2)), [0])
        assert_same(paths_of(sampler), expected)  # with the tasks of the ended workers


class Impatient(Wanderer):
    """Simulates repeated Ctrl-C during a step in one of three threads."""

    class batched_class(BatchedWanderer):
        max_threads = 3
        pressed = []

        def step(self, actions, env_ids=None):
            if not self.pressed:
                self.pressed.append(True)
                for _ in range(4):
                    os.kill(os.getpid(), signal.SIGINT)
                    time.sleep(0.1)
                time.sleep(0.2)
            return super().step(actions, env_ids)


def test_repeated_ctrl_c_leaves_no_running_threads():
    """After Ctrl-C and more of it while threads end, no thread steps the environments once the error is raised."""
    sampler, expected = sampler_of(Impatient()), paths_of(sampler_of(Wanderer()))
    with pytest.raises(KeyboardInterrupt):
        sampler.obtain_samples()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sampling")]
    assert_same(paths_of(sampler), expected)


def test_killed_worker_is_replaced_in_the_next_call():
    expected = paths_of(sampler_of(Wanderer()))
    with sampler_of(Wanderer(), executor=parallel(2)) as sampler:
        sampler.update_tasks()
        os.kill(sampler.vec_env._workers[1].process.pid, signal.SIGKILL)
        with pytest.raises(EnvWorkerError, match="SIGKILL"):
            sampler.obtain_samples()
        assert_same(paths_of(sampler), expected)


# Long paths


def test_memory_depends_on_actual_steps_and_not_on_max_path_length():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    paths = sampler_of(Wanderer(), max_path_length=10 ** 6).obtain_samples()
    assert time.process_time() - started < 1.0
    assert task_timesteps(paths).sum() < 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # KiB


@pytest.mark.parametrize("arguments", [{}, {"envs_per_task": 1}, {"executor": "iterative", "envs_per_task": 3}])
def test_long_paths_do_not_depend_on_the_initial_buffer_size(arguments, monkeypatch):
    """A buffer that starts with 4 steps and grows to 50 gives the actions of a larger buffer."""
    monkeypatch.setattr(rollout_loop, "INITIAL_BUFFER_STEPS", 49)
    expected = sampler_of(Wanderer(), max_path_length=50).obtain_samples()
    assert max(len(path["rewards"]) for path in flat_paths(expected)) > 8
    monkeypatch.setattr(rollout_loop, "INITIAL_BUFFER_STEPS", 4)
    paths = sampler_of(Wanderer(), max_path_length=50, **arguments).obtain_samples()
    assert_same(list(paths.values()), list(expected.values()))


def test_noise_of_short_paths_precedes_their_environment_draws():
    sampler = sampler_of(MetaPointEnvCorner(), max_path_length=rollout_loop.INITIAL_BUFFER_STEPS)
    sampler.update_tasks()
    by_hand = sampler.path_rng(1, 2)
    noise = by_hand.standard_normal((rollout_loop.INITIAL_BUFFER_STEPS, 2), dtype=np.float32)
    started = next_start_rngs(sampler)[1][2]
    assert started.bit_generator.state == by_hand.bit_generator.state
    path = sampler.obtain_samples()[1][2]
    infos = path["agent_infos"]
    np.testing.assert_allclose((path["actions"] - infos["mean"]) / np.exp(infos["log_std"]),
                               noise[:len(path["actions"])], atol=1e-4)


def test_long_paths_can_be_reproduced():
    """Start states drawn by hand equal those of the sampler for paths of up to 10,000 steps."""
    sampler = sampler_of(Wanderer(), max_path_length=10_000)
    sampler.update_tasks()
    starts = [[rng.normal(size=2) for rng in rngs] for rngs in next_start_rngs(sampler)]
    paths = sampler.obtain_samples()
    assert_same([[path["observations"][0] for path in paths[m]] for m in range(M)], starts)
