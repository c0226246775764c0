"""Tests sampling with Ctrl-C at random moments: the collected data equal those of an undisturbed sampler."""
import contextlib
import signal
import sys
import time

import cloudpickle
import numpy as np
import pytest

from meta_policy_search.utils.statistics import task_timesteps
from tests.helpers.sampling import BatchedWanderer, Wanderer, assert_same, parallel, sampler_of, two_iterations

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class BatchedThreadedWanderer(BatchedWanderer):
    max_threads = 3


class ThreadedWanderer(Wanderer):
    batched_class = BatchedThreadedWanderer


class RandomInterrupts:
    """Interrupts calls after random times like Ctrl-C."""

    def __init__(self, seed):
        self._rng, self._is_on, self._usual, self.count = np.random.default_rng(seed), False, 0.0, 0

    def __enter__(self):
        self._before = signal.signal(signal.SIGALRM, self._interrupt)
        return self

    def __exit__(self, *exc_info):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, self._before)

    def _interrupt(self, *_):
        if self._is_on:
            self._is_on = False
            self.count += 1
            signal.raise_signal(signal.SIGINT)

    def repeat(self, function, restore):
        """Repeats a call until it is not interrupted; calls `restore` after each interruption."""
        while True:
            started = time.perf_counter()
            with contextlib.suppress(KeyboardInterrupt):
                if self._usual and self._rng.random() < 0.7:
                    self._is_on = True
                    signal.setitimer(signal.ITIMER_REAL, self._rng.uniform(1e-5, 1.3 * self._usual))
                value = function()
                self._is_on = False
                took = time.perf_counter() - started
                self._usual = 0.8 * (self._usual or took) + 0.2 * took
                return value
            restore()


def two_iterations_with(interrupts, sampler):
    """Returns the result of `two_iterations` despite interruptions."""
    data = []
    for _ in range(2):
        for step in range(2):
            state = sampler.get_state()

            def collect(begins=step == 0):
                if begins:
                    sampler.update_tasks()
                return sampler.obtain_samples()

            data.append(interrupts.repeat(collect, lambda state=state: sampler.set_state(state)))
    return data


CASES = [
    pytest.param(Wanderer(), {}, 40, id="arrays"),
    pytest.param(ThreadedWanderer(), {}, 40, id="threads"),
    pytest.param(Wanderer(), {}, 200, id="arrays, long"),
    pytest.param(Wanderer(), {"executor": "iterative", "envs_per_task": 2}, 200, id="one by one"),
    pytest.param(ThreadedWanderer(), {}, 200, id="threads, long"),
    pytest.param(Wanderer(), {"executor": parallel(2)}, 10, id="processes"),
]


@pytest.mark.parametrize(("env", "arguments", "count"), CASES)
@pytest.mark.thorough(but=("arrays", "threads"))
def test_interrupted_and_repeated_sampling_gives_equal_data(env, arguments, count):
    """After at least `count` interruptions, the data of each call equal those of an undisturbed sampler."""
    expected = [list(paths.values()) for paths in two_iterations(sampler_of(env))]
    with RandomInterrupts(seed=count) as interrupts, sampler_of(env, **arguments) as sampler:
        beginning = sampler.get_state()
        while interrupts.count < count:
            sampler.set_state(beginning)
            data = two_iterations_with(interrupts, sampler)
            assert_same([list(paths.values()) for paths in data], expected)
            assert sampler.total_timesteps_sampled == sum(task_timesteps(paths).sum() for paths in data)
