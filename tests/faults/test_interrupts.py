"""Interrupted training and sampling equal uninterrupted ones, bit for bit.

Iterations are atomic: parameters, optimizer, counters, row and snapshot. Interruptions are real SIGINTs: at chosen
calls, at random lines of the package (half of them spread evenly over the executed lines, and half over the distinct
lines, so that rows and snapshots are hit as often as inner loops), or after random times while paths are sampled.
"""
import contextlib
import inspect
import os
import signal
import sys
import threading
import time
from pathlib import Path
from signal import SIGINT, raise_signal

import cloudpickle
import numpy as np
import pytest

import meta_policy_search
from meta_policy_search import CEM, CMAES, DDPG, EnvSpec, LocalRunner, ReplayBuffer, logger, set_seed
from meta_policy_search.baselines import GaussianMLPBaseline, LinearFeatureBaseline
from meta_policy_search.envs import MetaPointEnvCorner
from meta_policy_search.meta_algos import TRPOMAML, ProMP
from meta_policy_search.np.exploration_policies import GaussianNoisePolicy
from meta_policy_search.np.policies import DeterministicMLPPolicy, GaussianMLPPolicy
from meta_policy_search.np.q_functions import MLPQFunction
from meta_policy_search.plotting import plot_learning_curve
from meta_policy_search.samplers import MetaSampleProcessor
from meta_policy_search.samplers.errors import EnvWorkerError
from meta_policy_search.samplers.vectorized_env_executor import MetaIterativeEnvExecutor
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import seeding
from meta_policy_search.utils.snapshotter import SnapshotError, load_snapshot
from meta_policy_search.utils.statistics import task_timesteps
from tests.helpers.runs import assert_same, read_rows
from tests.helpers.sampling import BatchedWanderer, Wanderer, parallel, paths_of, sampler_of, two_iterations
from tests.helpers.trainers import build_trainer

cloudpickle.register_pickle_by_value(sys.modules[__name__])

PACKAGE = str(Path(meta_policy_search.__file__).parent)
NUM_ITR = 5
N = 6  # candidates


@pytest.fixture(scope="module")
def built():
    """Returns a small trainer and a snapshot of its start."""
    with tf.Graph().as_default():
        trainer = build_trainer(n_itr=3, seed=1)
        return trainer, trainer.get_itr_snapshot(-1)


@pytest.fixture
def trainer(built, tmp_path):
    trainer, start = built
    trainer.restore(start)
    logger.configure(tmp_path, ["csv"])
    return trainer


def pressing(function, at):
    """Returns the function with Ctrl-C before its call number `at`, or after that call if `at` is negative."""
    calls = []

    def call(*args, **kwargs):
        calls.append(None)
        if at > 0 and len(calls) == at:
            raise_signal(SIGINT)
        answer = function(*args, **kwargs)
        if at < 0 and len(calls) == -at:
            raise_signal(SIGINT)
        return answer

    return call


def everything(trainer, folder):
    state = trainer.get_itr_snapshot(trainer.itr - 1)["state"]
    state["sampler"] = state["sampler"]["num_steps"]
    return read_rows(folder), repr({key: value for key, value in state.items() if key not in ("time", "outputs")})


# A trainer


@pytest.mark.parametrize("owner, method", [
    ("algo", "adapt"), ("algo", "optimize_policy"), ("policy", "switch_to_pre_update"), ("sampler", "obtain_samples"),
])
@pytest.mark.parametrize("at", [2, -2])
def test_interrupted_iteration_is_performed_once(owner, method, at, built, trainer, tmp_path, monkeypatch, messages):
    trainer.train()
    whole = everything(trainer, tmp_path)
    logger.configure(tmp_path, ["csv"], overwrite=True)
    trainer.restore(built[1])
    part = type(getattr(trainer, owner))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(part, method, pressing(getattr(part, method), at))
        trainer.train()
    (said,) = messages
    assert f"Interrupted in iteration {trainer.itr}, which was rolled back" in said
    assert len(read_rows(tmp_path)) == trainer.itr
    trainer.train()
    assert trainer.itr == 3 and everything(trainer, tmp_path) == whole


def test_learned_baseline_is_rolled_back_to_the_untrained_one(tmp_path, monkeypatch):
    params = []
    for at in (100, 1):  # never, and in iteration 0
        with tf.Graph().as_default(), logger.scoped_configure(tmp_path / str(at), ["csv"]):
            trainer = build_trainer(n_itr=2, seed=1, processor=MetaSampleProcessor(GaussianMLPBaseline((4,))))
            with monkeypatch.context() as patch:
                patch.setattr(trainer.algo, "optimize_policy", pressing(trainer.algo.optimize_policy, at))
                with contextlib.suppress(KeyboardInterrupt):
                    trainer.train()
            if trainer.itr < 2:
                trainer.train()
            params.append(trainer.policy.get_flat_params())
    np.testing.assert_array_equal(*params)


@pytest.mark.parametrize("method", ["dumpkvs", "save_itr_params"])
@pytest.mark.parametrize("at", [2, -2])
def test_iteration_interrupted_while_writing_its_row_is_completed(method, at, trainer, tmp_path, monkeypatch, messages):
    """After Ctrl-C during row or snapshot, both are written, and the message reports a completed iteration."""
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(logger, method, pressing(getattr(logger, method), at))
        trainer.train()
    assert messages == ["Interrupted in iteration 2, which was rolled back; earlier iterations are complete"]
    assert trainer.itr == len(read_rows(tmp_path)) == 2 and load_snapshot(tmp_path)["itr"] == 1
    trainer.train()
    assert [row["Itr"] for row in read_rows(tmp_path)] == ["0", "1", "2"]


def test_failed_iteration_is_rolled_back(trainer, monkeypatch, tmp_path):
    trainer.train_itr()
    before = everything(trainer, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(type(trainer.policy), "log_diagnostics", lambda *args: 1 / 0)
        for train in (trainer.train, trainer.train_itr):
            with pytest.raises(ZeroDivisionError):
                train()
    assert everything(trainer, tmp_path) == before and logger.getkvs() == {}


def test_iteration_without_a_snapshot_is_counted(trainer, monkeypatch, tmp_path):
    """If a snapshot cannot be written, its row is kept, and training continues with the next iteration."""
    with monkeypatch.context() as patch, pytest.raises(SnapshotError):
        patch.setattr(trainer.sampled_env, "cannot_be_pickled", (i for i in ()), raising=False)
        trainer.train()
    assert trainer.itr == len(read_rows(tmp_path)) == 1
    trainer.train()
    assert [row["Itr"] for row in read_rows(tmp_path)] == ["0", "1", "2"]


# Searches


def build_search(cls, policy_cls=DeterministicMLPPolicy, seed=3, folder=None):
    set_seed(seed)
    env = MetaPointEnvCorner(reward_type="dense")
    arguments = {"best_frac": 0.5} if cls is CEM else {}
    algo = cls(EnvSpec.of(env), policy_cls(2, 2, ()), LinearFeatureBaseline(), N, max_path_length=4, **arguments)
    runner = LocalRunner(folder)
    runner.setup(algo, env)
    return runner, algo


@pytest.mark.parametrize("at", [1, 4, -N, N + 1, -(N + 2), 2 * N, -2 * N, -3 * N])
@pytest.mark.parametrize("cls", [CEM, CMAES])
def test_returns_are_assigned_to_the_candidates_that_acted(cls, at, monkeypatch):
    """After Ctrl-C before or after the return of a candidate is stored, the resumed run equals an uninterrupted run."""
    whole, search = build_search(cls)
    average = whole.train(3, 8)
    runner, other = build_search(cls)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(type(other), "train_once", pressing(type(other).train_once, at))
        runner.train(3, 8)
    # the epoch is rolled back, and the policy has its initial parameters
    assert runner.step_itr == N * runner.epoch and runner.total_timesteps_sampled % N == 0
    np.testing.assert_array_equal(other.policy.get_flat_params(), other.cur_mean.astype(np.float32))
    assert runner.resume() == average
    assert (runner.step_itr, runner.total_timesteps_sampled) == (whole.step_itr, whole.total_timesteps_sampled)
    for name in ("cur_mean", "candidates", "best_return"):
        np.testing.assert_array_equal(getattr(other, name), getattr(search, name))
    np.testing.assert_array_equal(other.policy.get_flat_params(), search.policy.get_flat_params())


# An algorithm with a replay buffer


def test_algorithm_that_cannot_be_rolled_back_is_reported(monkeypatch, messages):
    env = MetaPointEnvCorner(reward_type="dense")
    spec, policy = EnvSpec.of(env), DeterministicMLPPolicy(2, 2, (4,))
    algo = DDPG(spec, policy, MLPQFunction(2, 2, (4,)), ReplayBuffer(spec, 10), min_buffer_size=10, max_path_length=4,
                exploration_policy=GaussianNoisePolicy(spec, policy))
    runner = LocalRunner()
    runner.setup(algo, env)
    monkeypatch.setattr(algo.replay_buffer, "add_paths", pressing(algo.replay_buffer.add_paths, 1))
    with pytest.raises(KeyboardInterrupt):
        runner.train(1, 8)
    assert "which cannot be rolled back" in messages[-1]


# Training with interruptions at random lines


class Lines:
    """Calls `on_line(number, place)` before each line of the package within a `with` block; numbers start at 0.

    With `functions`, it does so only before their lines.
    """

    def __init__(self, on_line, functions=()):
        self.on_line, self.number = on_line, 0
        self.codes = {inspect.unwrap(function).__code__ for function in functions}

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *exc_info):
        sys.settrace(self.before)

    def trace(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE) or self.codes and frame.f_code not in self.codes:
            return None
        if event == "line":
            self.number += 1
            self.on_line(self.number - 1, (frame.f_code.co_filename, frame.f_lineno))
        return self.trace


def press_at(moment, functions=()):
    """Sends SIGINT before the line of the given number, for a `with` block."""
    return Lines(lambda number, place: raise_signal(SIGINT) if number == moment else None, functions)


def draw_moments(run, num_moments, rng):
    """Draws moments of a run: half by executed lines, and half by distinct lines."""
    places = []
    with Lines(lambda number, place: places.append(place)):
        run()
    by_place = {}
    for number, place in enumerate(places):
        by_place.setdefault(place, []).append(number)
    numbers = list(by_place.values())
    return [rng.integers(len(places)) if i % 2 else rng.choice(numbers[rng.integers(len(numbers))])
            for i in range(num_moments)]


def train_interrupted(moments, resume, is_done):
    """Trains to the end with interruptions, whose times count from the last resume; returns their number."""
    hits = 0
    for moment in moments:
        try:
            with press_at(moment):
                if not is_done():
                    resume()
        except KeyboardInterrupt:
            hits += 1
    if not is_done():
        resume()
    return hits


def without_times(state):
    return {key: value for key, value in state.items() if key not in ("time", "outputs")}


def draw_once(trainer, row):
    if trainer.itr == 3:
        plot_learning_curve(logger.get_dir())


def names_in(folder):
    """Returns the names of files without figures; checks that existing figures are complete."""
    names = {path.name for path in folder.iterdir()}
    if "learning_curve.png" in names:
        assert (folder / "learning_curve.png").read_bytes()[-8:-4] == b"IEND"
    return sorted(names - {"learning_curve.png"})


class Training:
    """Repeats five iterations of a `Trainer` with a figure from the same start."""

    def __init__(self, algo_cls, draws, **arguments):
        self.trainer = build_trainer(algo_cls, n_itr=NUM_ITR, seed=1, callbacks=[draw_once] * draws,
                                      trainable_inner_step_size=True, **arguments)
        self.start = self.trainer.get_itr_snapshot(-1)

    def begin(self, folder):
        logger.configure(folder, ["csv"], snapshot_mode="last_gap")
        self.trainer.restore(self.start)

    def resume(self):
        self.trainer.train()

    def is_done(self):
        return self.trainer.itr == NUM_ITR

    def result(self, folder):
        with tf.Graph().as_default():
            saved = load_snapshot(folder)
        return (read_rows(folder), without_times(saved["state"]), saved["itr"],
                without_times(self.trainer.get_itr_snapshot(NUM_ITR - 1)["state"]), names_in(folder))


class Search:
    """Repeats epochs of CEM or CMA-ES with few candidates from the same start."""

    def __init__(self, algo_cls, num_epochs=NUM_ITR):
        self.algo_cls, self.num_epochs = algo_cls, num_epochs

    def begin(self, folder):
        self.runner, self.algo = build_search(self.algo_cls, GaussianMLPPolicy, seed=1, folder=folder)

    def resume(self):
        try:
            self.runner.resume(self.num_epochs)
        except RuntimeError as error:
            if "call restore() or train() first" not in str(error):
                raise
            self.runner.train(self.num_epochs, 8)

    def is_done(self):
        return self.runner.epoch == self.num_epochs

    def result(self, folder):
        saved, policy = load_snapshot(folder), self.algo.policy
        state, seeds = saved["state"], without_times(saved["state"])["seeding"]
        return (read_rows(folder), saved["itr"], state["step_itr"], state["total_timesteps_sampled"], seeds,
                *map(self.describe, (self.algo, saved["algo"])), policy.get_flat_params(),
                saved["policy"].get_flat_params(), names_in(folder))

    def describe(self, algo):
        return algo.cur_mean, algo.candidates, algo.best_return, algo._rng.bit_generator.state


def check_interrupted_runs(run, num_interrupts, tmp_path):
    """Interrupts runs the given number of times; each result must equal that of an uninterrupted run."""
    rng = np.random.default_rng(7)
    run.begin(tmp_path / "whole")
    moments = draw_moments(run.resume, 5 * num_interrupts, rng)
    whole = run.result(tmp_path / "whole")
    assert len(whole[0]) == NUM_ITR
    used = interrupts = 0
    while interrupts < num_interrupts:
        assert used < len(moments)
        folder = tmp_path / f"after_{used}"
        run.begin(folder)
        hits = train_interrupted(moments[used:used + 5], run.resume, run.is_done)
        assert_same(run.result(folder), whole)
        interrupts, used = interrupts + hits, used + 5


@pytest.mark.parametrize("algo_cls, arguments, num_interrupts", [
    (ProMP, {"num_ppo_steps": 2, "num_minibatches": 2, "anneal_factor": 0.9}, 5),
    pytest.param(ProMP, {"num_ppo_steps": 2, "num_minibatches": 2, "anneal_factor": 0.9}, 30, marks=pytest.mark.slow),
    pytest.param(TRPOMAML, {}, 30, marks=pytest.mark.slow),
], ids=["ProMP, short", "ProMP", "TRPOMAML"])
def test_interrupted_training_equals_uninterrupted_training(algo_cls, arguments, num_interrupts, tmp_path):
    with tf.Graph().as_default():
        check_interrupted_runs(Training(algo_cls, num_interrupts > 10, **arguments), num_interrupts, tmp_path)


@pytest.mark.parametrize("algo_cls", [CEM, CMAES])
@pytest.mark.thorough(but="CEM")
def test_interrupted_epochs_equal_uninterrupted_epochs(algo_cls, tmp_path):
    check_interrupted_runs(Search(algo_cls), 12, tmp_path)


def test_interruption_at_each_line_that_begins_or_ends_training_leaves_no_reservation(tmp_path):
    """The seed, the logger and the runner stay usable, and the random numbers of the caller do not change."""
    parts = LocalRunner._running, logger.in_training, seeding.generators_kept, seeding.rooted
    run, moments = Search(CEM, num_epochs=2), {}
    run.begin(tmp_path / "whole")
    with Lines(lambda number, place: moments.setdefault(place, number), parts):
        run.resume()
    assert len(moments) > 25
    for chosen in moments.values():
        state = np.random.get_state()[1].tolist()
        run.begin(tmp_path / str(chosen))
        with contextlib.suppress(KeyboardInterrupt), press_at(chosen, parts):
            run.resume()
        assert np.random.get_state()[1].tolist() == state
        if not run.is_done():
            run.resume()
        logger.reset()


# Sampling


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


class ThreadedWanderer(Wanderer):
    class batched_class(BatchedWanderer):
        max_threads = 3


class RandomInterrupts:
    """Interrupts calls after random times like Ctrl-C."""

    def __init__(self, seed):
        self.rng, self.is_on, self.usual, self.count = np.random.default_rng(seed), False, 0.0, 0

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self.interrupt)
        return self

    def __exit__(self, *exc_info):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, self.before)

    def interrupt(self, *_):
        if self.is_on:
            self.is_on = False
            self.count += 1
            signal.raise_signal(signal.SIGINT)

    def repeat(self, function, restore):
        """Repeats a call until it is not interrupted; calls `restore` after each interruption."""
        while True:
            started = time.perf_counter()
            with contextlib.suppress(KeyboardInterrupt):
                if self.usual and self.rng.random() < 0.7:
                    self.is_on = True
                    signal.setitimer(signal.ITIMER_REAL, self.rng.uniform(1e-5, 1.3 * self.usual))
                value = function()
                self.is_on = False
                took = time.perf_counter() - started
                self.usual = 0.8 * (self.usual or took) + 0.2 * took
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
    pytest.param(Wanderer(), {"executor": MetaIterativeEnvExecutor, "envs_per_task": 2}, 200, id="one by one"),
    pytest.param(Wanderer(), {"executor": parallel(2)}, 10, id="processes"),
]


@pytest.mark.parametrize(("env", "arguments", "count"), CASES)
@pytest.mark.thorough(but=("arrays", "threads"), ci="arrays")
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
