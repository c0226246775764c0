"""Tests training that is interrupted repeatedly at random moments and resumes in the same process.

Each interruption is a real SIGINT at a line of the package. Half of them are spread evenly over the executed lines, and
half over the distinct lines, so that rows, snapshots and ends of iterations are hit as often as the inner loops.
"""
import csv
import sys
from pathlib import Path
from signal import SIGINT, raise_signal

import numpy as np
import pytest

import meta_policy_search
from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import MetaPointEnvCorner
from meta_policy_search.envs.env_spec import EnvSpec
from meta_policy_search.local_runner import LocalRunner
from meta_policy_search.meta_algos import TRPOMAML, ProMP
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.np.algos import CEM, CMAES
from meta_policy_search.np.policies import GaussianMLPPolicy
from meta_policy_search.plotting import plot_learning_curve
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger
from meta_policy_search.utils.snapshotter import load_snapshot
from meta_policy_search.utils.utils import set_seed

PACKAGE = str(Path(meta_policy_search.__file__).parent)
NUM_ITR = 5


class Lines:
    """Calls `on_line(number, place)` before each line of the package within a `with` block; numbers start at 0."""

    def __init__(self, on_line):
        self._on_line, self._number = on_line, 0

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *exc_info):
        sys.settrace(self._before)

    def _trace(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            self._number += 1
            self._on_line(self._number - 1, (frame.f_code.co_filename, frame.f_lineno))
        return self._trace


def press_at(moment):
    """Returns a function that sends SIGINT before the line of the given number."""
    return Lines(lambda number, place: raise_signal(SIGINT) if number == moment else None)


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


def read_rows(folder):
    with open(folder / "progress.csv", newline="") as file:
        return [{key: value for key, value in row.items() if "Time" not in key} for row in csv.DictReader(file)]


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
        set_seed(1)
        env = MetaPointEnvCorner(reward_type="dense")
        policy = MetaGaussianMLPPolicy(2, 2, 2, hidden_sizes=())
        algo = algo_cls(policy, meta_batch_size=2, trainable_inner_step_size=True, **arguments)
        self._trainer = Trainer(algo, env, MetaSampler(env, policy, 2, 2, 4),
                                MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True), policy, NUM_ITR,
                                callbacks=[draw_once] * draws)
        self._start = self._trainer.get_itr_snapshot(-1)

    def begin(self, folder):
        logger.configure(folder, ["csv"], snapshot_mode="last_gap")
        self._trainer.restore(self._start)

    def resume(self):
        self._trainer.train()

    def is_done(self):
        return self._trainer.itr == NUM_ITR

    def result(self, folder):
        with tf.Graph().as_default():
            saved = load_snapshot(folder)
        return (read_rows(folder), without_times(saved["state"]), saved["itr"],
                without_times(self._trainer.get_itr_snapshot(NUM_ITR - 1)["state"]), names_in(folder))


class Search:
    """Repeats five epochs of CEM or CMA-ES from the same start."""

    def __init__(self, algo_cls):
        self._algo_cls = algo_cls

    def begin(self, folder):
        set_seed(1)
        env = MetaPointEnvCorner(reward_type="dense")
        self._algo = self._make_algo(EnvSpec.of(env))
        self._runner = LocalRunner(folder)
        self._runner.setup(self._algo, env)

    def _make_algo(self, spec):
        return self._algo_cls(spec, GaussianMLPPolicy(2, 2, ()), LinearFeatureBaseline(), 20, max_path_length=4)

    def resume(self):
        try:
            self._runner.resume(NUM_ITR)
        except RuntimeError as error:
            if "call restore() or train() first" not in str(error):
                raise
            self._runner.train(NUM_ITR, 8)

    def is_done(self):
        return self._runner.epoch == NUM_ITR

    def result(self, folder):
        saved, policy = load_snapshot(folder), self._algo.policy
        state, seeds = saved["state"], without_times(saved["state"])["seeding"]
        return (read_rows(folder), saved["itr"], state["step_itr"], state["total_timesteps_sampled"], seeds,
                *map(self._describe, (self._algo, saved["algo"])), policy.get_flat_params(),
                saved["policy"].get_flat_params(), names_in(folder))

    def _describe(self, algo):
        return algo.cur_mean, algo.candidates, algo.best_return, algo._rng.bit_generator.state


def assert_equal(a, b):
    """Compares nested containers: numbers bit for bit, other objects by their `repr`."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = list(a.values()), list(b.values())
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_equal(x, y)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    else:
        assert a == b or repr(a) == repr(b)


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
        assert_equal(run.result(folder), whole)
        interrupts, used = interrupts + hits, used + 5


@pytest.mark.parametrize("algo_cls, arguments, num_interrupts", [
    (ProMP, {"num_ppo_steps": 2, "num_minibatches": 2, "anneal_factor": 0.9}, num_interrupts)
    for num_interrupts in (8, 30)
] + [pytest.param(TRPOMAML, {}, 30, marks=pytest.mark.slow)], ids=["ProMP, short", "ProMP", "TRPOMAML"])
@pytest.mark.thorough(but="ProMP, short")
def test_interrupted_training_equals_uninterrupted_training(algo_cls, arguments, num_interrupts, tmp_path):
    with tf.Graph().as_default():
        check_interrupted_runs(Training(algo_cls, num_interrupts > 10, **arguments), num_interrupts, tmp_path)


@pytest.mark.parametrize("algo_cls, num_interrupts", [(CEM, 12), (CEM, 40), (CMAES, 40)],
                         ids=["CEM, short", "CEM", "CMAES"])
@pytest.mark.thorough(but="CEM, short")
def test_interrupted_epochs_equal_uninterrupted_epochs(algo_cls, num_interrupts, tmp_path):
    check_interrupted_runs(Search(algo_cls), num_interrupts, tmp_path)
