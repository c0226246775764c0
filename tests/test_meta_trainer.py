"""Tests the training loop: rows, callbacks, sessions, stopping and resuming."""
import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats

from meta_policy_search import EarlyStopping, MetaSampler, StatefulCallback, Trainer, load_snapshot, logger
from meta_policy_search.meta_algos import TRPOMAML, VPGMAML, MetaAlgo, ProMP
from meta_policy_search.run_folder import read_params
from meta_policy_search.samplers import MetaSampleProcessor, SampleProcessor, Sampler
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.checks import Columns
from tests.helpers.runs import read_rows
from tests.helpers.trainers import build_trainer

M, P, T = 3, 4, 8


def build(algo_cls=VPGMAML, seed=1, n_itr=2, **arguments):
    return build_trainer(algo_cls, (M, P, T), n_itr, seed=seed, **arguments)


@pytest.fixture(scope="module")
def trained():
    """Returns a trainer of TRPO-MAML with two adaptation steps after two iterations, and their rows."""
    rows = []
    with tf.Graph().as_default():
        trainer = build(TRPOMAML, num_inner_grad_steps=2, callbacks=[lambda trainer, row: rows.append(row)])
        trainer.train()
    return trainer, rows


@pytest.mark.parametrize("algo_cls", [ProMP, VPGMAML])
def test_zero_adaptation_steps_train_one_policy_for_all_tasks(algo_cls):
    """Without adaptation steps, an iteration collects paths once and updates the policy from them."""
    rows = []
    with tf.Graph().as_default():
        trainer = build(algo_cls, num_inner_grad_steps=0, callbacks=[lambda trainer, row: rows.append(row)])
        before = trainer.policy.get_param_values()
        trainer.train()
    assert [row["n_timesteps"] for row in rows] == [M * P * T, 2 * M * P * T]
    assert not any(name.startswith("Step_1-") for name in rows[0]) and rows[0]["AdaptationGain"] == 0.0
    assert np.isfinite(list(rows[-1].values())).all()
    assert any(np.any(value != before[name]) for name, value in trainer.policy.get_param_values().items())


@pytest.fixture(scope="module")
def shared():
    """A small trainer for tests of the training loop."""
    with tf.Graph().as_default():
        return build()


@pytest.fixture
def trainer(shared):
    shared.n_itr, shared.start_itr, shared.itr, shared.callbacks = 2, 0, 0, []
    shared.sampler.total_timesteps_sampled = 0
    return shared


def flat(trainer):
    return trainer.policy.get_flat_params()


# Rows


def test_values_of_a_row(trained):
    _, rows = trained
    assert [row["Itr"] for row in rows] == [0, 1]
    assert [row["n_timesteps"] for row in rows] == [3 * M * P * T, 6 * M * P * T]
    for row in rows:
        assert row["Step_0-NumTrajs"] == M * P
        assert row["Step_0-MinReturn"] < row["Step_0-AverageReturn"] < row["Step_0-MaxReturn"] < 0
        assert row["AdaptationGain"] == pytest.approx(row["Step_2-AverageReturn"] - row["Step_0-AverageReturn"])
        assert row["MeanKL"] <= 0.01
        inner, outer, sampling = row["Time-InnerStep"], row["Time-OuterStep"], row["Time-Sampling"]
        assert row["ItrTime"] == pytest.approx(row["Time-TotalInner"] + outer)
        assert row["Time-MAMLSteps"] == pytest.approx(inner + outer)
        assert row["Time-TotalInner"] >= sampling + inner + row["Time-SampleProc"]
    assert rows[1]["Time"] >= rows[0]["Time"] + rows[1]["ItrTime"]


def test_gain_interval_is_a_student_interval_over_tasks(trainer):
    # given the paths of each task
    seen, original = [], trainer.sampler.obtain_samples
    trainer.sampler.obtain_samples = lambda *args, **kwargs: seen.append(original(*args, **kwargs)) or seen[-1]
    try:
        row = trainer.train_itr()
    finally:
        del trainer.sampler.obtain_samples
    before, after = ([np.mean([path["rewards"].sum() for path in paths]) for paths in batch.values()] for batch in seen)
    gains = np.subtract(after, before)
    low, high = scipy.stats.t.interval(0.95, M - 1, gains.mean(), scipy.stats.sem(gains))
    assert row["AdaptationGain"] == pytest.approx(gains.mean())
    assert row["AdaptationGainCI95"] == pytest.approx((high - low) / 2)


def test_environment_and_policy_log_diagnostics_of_all_paths(trainer, monkeypatch):
    calls = []
    monkeypatch.setattr(type(trainer.env), "log_diagnostics",
                        lambda self, paths, prefix: calls.append((len(paths), prefix)))
    trainer.train_itr()
    assert calls == [(M * P, "Step_0-"), (M * P, "Step_1-")]


@pytest.mark.parametrize("part", ["env", "policy"])
def test_diagnostics_without_a_prefix_are_refused(part, trainer, monkeypatch):
    """Given a `log_diagnostics(paths)`, whose figures would overwrite each other, then the error names it."""
    def log_diagnostics(self, paths):
        pass

    monkeypatch.setattr(type(getattr(trainer, part)), "log_diagnostics", log_diagnostics)
    with pytest.raises(TypeError, match=r"log_diagnostics\(\) takes 2 positional arguments but 3 were given"):
        trainer.train_itr()


# Training loop


def test_start_itr_sets_the_first_iteration_and_its_random_streams(trainer):
    rows = []
    later = Trainer(trainer.algo, trainer.env, trainer.sampler, trainer.sample_processor, trainer.policy, n_itr=5,
                    start_itr=3, callbacks=[lambda trainer, row: rows.append((row["Itr"], trainer.sampler.tasks))])
    assert later.itr == 3
    later.train()
    later.train()
    assert [itr for itr, _ in rows] == [3, 4, 5, 6]
    for itr, tasks in rows:
        trainer.sampler.start_at(itr)
        trainer.sampler.update_tasks()
        np.testing.assert_array_equal(trainer.sampler.tasks, tasks)


class Minimal(Sampler):
    """Wraps a sampler and overrides only the documented methods."""

    def __init__(self, *args):
        self.sampler = MetaSampler(*args)

    def update_tasks(self):
        self.sampler.update_tasks()

    def obtain_samples(self, log=False, log_prefix=""):
        return self.sampler.obtain_samples(log, log_prefix)


def test_custom_sampler_with_the_documented_methods_trains():
    trainer = build(sampler_cls=Minimal)
    trainer.train()
    assert trainer.itr == 2
    assert type(trainer.sampler) is Minimal
    trainer.restore(trainer.get_itr_snapshot(1))


class MinimalAlgorithm(MetaAlgo):
    """Wraps an algorithm and overrides only the documented methods."""

    num_inner_grad_steps = 1

    def __init__(self, algo):
        self.inner = algo

    def adapt(self, samples, step_size=None):
        self.inner.adapt(samples)

    def optimize_policy(self, all_samples_data, log=True):
        self.inner.optimize_policy(all_samples_data, log)


def test_custom_algorithm_and_environment_with_the_documented_methods_train(trainer):
    """Subclasses with only the documented methods train, and the trainer stores the original objects."""
    algo, env, before = MinimalAlgorithm(trainer.algo), SimpleNamespace(), flat(trainer)
    other = Trainer(algo, env, trainer.sampler, trainer.sample_processor, trainer.policy, n_itr=1)
    assert other.algo is algo and other.env is env
    row = other.train_itr()
    assert (flat(other) != before).any() and "Step_0-AdaptationKL" not in row
    other.restore(other.get_itr_snapshot(0))
    with pytest.raises(ValueError, match="diagnostics: expected False, got True; .* has no diagnostics"):
        Trainer(algo, env, trainer.sampler, trainer.sample_processor, trainer.policy, n_itr=1, diagnostics=True)


def test_progress_bar_shows_iterations_on_request(trainer, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    trainer.train()
    assert terminal.getvalue() == ""
    monkeypatch.setattr(trainer, "progress_bar", True)
    trainer.train()
    assert "training" in terminal.getvalue() and "4/4" in terminal.getvalue()


# Callbacks


def test_callbacks_receive_trainer_and_row_and_can_stop_training(trainer):
    calls = []

    def stops(trainer, row):
        calls.append((trainer.itr, row["Itr"]))
        return True

    also_called = []
    trainer.callbacks = [stops, lambda trainer, row: also_called.append(1)]
    trainer.train()
    assert calls == [(0, 0)] and also_called == [1] and trainer.itr == 1


@pytest.mark.parametrize("answer, stops", [
    (True, True), (np.True_, True), (np.float64(2.0) > 1.0, True),
    (False, False), (np.False_, False), (None, False),
    ("continue", False), (1, False), (1.0, False), ([True], False), (np.ones(3), False),  # truthy, but not True
])
def test_only_python_or_numpy_true_stops_training(trainer, monkeypatch, answer, stops):
    monkeypatch.setattr(trainer, "perform_itr", lambda: None)
    trainer.callbacks = [lambda trainer, row: answer]
    trainer.train()
    assert trainer.itr == (1 if stops else 2)


@pytest.mark.parametrize("values, arguments, stops_after", [
    ([1, 2, 2, 2], {"patience": 2}, 4),
    ([1, 2, 2, 3, 3], {"patience": 2}, None),
    ([1.0, 1.5, 2.0], {"patience": 2, "min_delta": 1.0}, 3),
    ([3, 2, 1, 1], {"patience": 1, "higher_is_better": False}, 4),
    ([1, 5, 10], {"patience": 9, "target": 5}, 2),
    ([9, 5, 1], {"patience": 9, "target": 5, "higher_is_better": False}, 2),
    ([2, 1, 0, -1], {"patience": 9, "target": 0, "higher_is_better": False}, 3),  # zero is a valid target
    ([3, 2.5, 1.9], {"patience": 2, "min_delta": 1, "higher_is_better": False}, None),
    ([5, 6, 7], {"patience": 2, "target": 1, "higher_is_better": False}, 3),  # patience and target
    ([1.0, np.nan, np.nan], {"patience": 2}, 3),
])
def test_early_stopping(values, arguments, stops_after):
    callback = EarlyStopping("Return", **arguments)
    answers = [callback(None, {"Return": value}) for value in values]
    assert answers.index(True) + 1 == stops_after if stops_after else not any(answers)


@pytest.mark.parametrize(
    "arguments, error",
    [({"patience": 0}, ValueError), ({"patience": 1, "min_delta": -1.0}, ValueError),
     ({"patience": 1, "min_delta": np.inf}, ValueError), ({"patience": 1, "min_delta": "1"}, TypeError),
     ({"patience": 1, "higher_is_better": 1}, TypeError), ({"patience": 1, "target": np.nan}, ValueError),
     ({"patience": 1, "target": -np.inf}, ValueError), ({"patience": 1, "target": "5"}, TypeError)],
)
def test_arguments_of_early_stopping_are_checked(arguments, error):
    with pytest.raises(error, match=f"^{list(arguments)[-1]}: expected"):
        EarlyStopping("Return", **arguments)


@pytest.mark.parametrize("column, message", [
    ("Retrun", "expected the name of a column, got 'Retrun'; did you mean 'Return'"),
    ("Eval-ReturnAfter", "only rows with an evaluation have; use the arguments patience and target of EvalCallback"),
])
def test_early_stopping_on_a_missing_column_names_what_to_use(column, message):
    with pytest.raises(KeyError, match=message):
        EarlyStopping(column, patience=1)(None, Columns({"Return": 1.0, "Itr": 0}))


# Sessions


def test_finalized_graph_can_be_trained():
    rows = []
    trainer = build(ProMP, num_ppo_steps=2, callbacks=[lambda trainer, row: rows.append(row)])
    tf.get_default_graph().finalize()
    trainer.train()
    trainer.restore(trainer.get_itr_snapshot(1))
    trainer.policy.get_action(np.zeros(2), task=1)
    assert all({"LossBefore", "LossAfter", "KLInner", "KLCoeffInner"} <= set(row) for row in rows)


# Snapshots and resuming


class Rows(StatefulCallback):
    """Adds the number of each iteration to a list, which is its state."""

    def __init__(self):
        self.rows = []

    def __call__(self, trainer, row):
        self.rows.append(trainer.itr)

    def get_state(self):
        return self.rows

    def set_state(self, state):
        self.rows = list(state)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("no space left")], ids=["Ctrl-C", "error"])
def test_iteration_whose_callback_fails_is_repeated_with_all_callbacks(error, trainer, tmp_path):
    """The callbacks before the failed one get back their state, and the iteration writes one row."""
    calls, failures = [], [error]

    def fails_once(trainer, row):
        calls.append((trainer.itr, row["Itr"]))
        if trainer.itr == 1 and failures:
            raise failures.pop()

    early, rows = EarlyStopping("Itr", patience=5), Rows()
    trainer.callbacks = [early, rows, fails_once]
    logger.configure(tmp_path, ["csv"])
    with pytest.raises(type(error)):
        trainer.train()
    assert (trainer.itr, early.get_state(), len(read_rows(tmp_path))) == (1, (0.0, 0), 1)
    assert read_params(tmp_path)["error"] == (None if isinstance(error, KeyboardInterrupt) else "OSError")
    trainer.train()
    assert read_params(tmp_path)["error"] is None
    assert calls == [(0, 0), (1, 1), (1, 1)] and early.get_state() == (1.0, 0) and rows.rows == [0, 1]
    assert [row["Itr"] for row in read_rows(tmp_path)] == ["0", "1"]


def test_snapshot_contains_callbacks_with_state_and_names_of_others(trainer, tmp_path, recwarn):
    """A resumed run has the saved `EarlyStopping` with its state; a warning names the function, unless it is passed."""
    def plots(trainer, row):
        pass

    trainer.callbacks = [EarlyStopping("Itr", patience=1, higher_is_better=False), plots]
    logger.configure(tmp_path, ["csv"])
    trainer.train()
    snapshot = load_snapshot(tmp_path)
    (*_, saved_state), (name, *_) = snapshot["state"]["callbacks"]
    assert snapshot["state"]["stopped"] and saved_state == (0.0, 1) and name.endswith("plots")
    for callbacks, is_warned in ([], True), ([plots], False):
        trainer.callbacks = callbacks
        recwarn.clear()
        trainer.restore(snapshot)
        assert trainer.stopped and trainer.callbacks[0].get_state() == (0.0, 1)
        trainer.n_itr = trainer.itr + 1
        trainer.train()
        assert any("without the callbacks" in str(warning.message) for warning in recwarn) == is_warned


# Invalid arguments


async def wait(trainer, row):
    pass


class Waits:
    async def __call__(self, trainer, row):
        pass


class WithoutLog(MetaSampleProcessor):
    def process_samples(self, paths):
        return super().process_samples(paths)


@pytest.mark.parametrize("change, error, message", [
    ({"n_itr": 0}, ValueError, "n_itr"),
    ({"start_itr": 2}, ValueError, "start_itr: expected less than n_itr=2, got 2"),
    ({"num_inner_grad_steps": 2}, ValueError, "expected 1, .*, got 2; pass num_inner_grad_steps=1$"),
    ({"sess": "session"}, TypeError, "sess: expected a tf.Session or None, got 'session'"),
    ({"callbacks": [EarlyStopping]}, TypeError, "callbacks: expected a list of functions or callable objects, got"),
    ({"callbacks": [wait]}, TypeError, "callbacks: expected functions without async, got wait"),
    ({"callbacks": [Waits()]}, TypeError, "callbacks: expected functions without async, got Waits"),
    ({"callbacks": [lambda trainer: None]}, TypeError, r"callbacks: expected functions \(trainer, row\), got <lambda>"),
    ({"callbacks": print}, TypeError, "callbacks: expected a list of functions .*, got <built-in function print>"),
    ({"sample_processor": WithoutLog("ZeroBaseline")}, TypeError,
     r"^WithoutLog.process_samples: expected the arguments \(paths_meta_batch, log, log_prefix\), got \(paths\)"),
    ({"sample_processor": SampleProcessor("ZeroBaseline")}, TypeError, "expected a MetaSampleProcessor, got a"),
    ({"sample_processor": SimpleNamespace(process_samples=print)}, TypeError,
     "^sample_processor: expected a SampleProcessor, got "),
    ({"policy": SimpleNamespace(meta_batch_size=M)}, ValueError,
     "policy: expected the same object as algo.policy"),
])
def test_mismatched_components_are_refused(trainer, change, error, message):
    arguments = {name: getattr(trainer, name) for name in ("algo", "env", "sampler", "sample_processor", "policy",
                                                            "n_itr")}
    with pytest.raises(error, match=message):
        Trainer(**{**arguments, **change})


@pytest.mark.parametrize("method", ["get_state", "set_state"])
def test_stateful_callback_defines_its_state(method):
    with pytest.raises(TypeError, match=method):
        type("Incomplete", (Rows,), {method: getattr(StatefulCallback, method)})()


@pytest.mark.parametrize("name, value, reason", [
    ("Epoch", 0, "this name is reserved"), ("AverageReturn", 1.0, "this name is reserved"),
    ("Itr", 7, "the row already contains it"), ("n_timesteps", 1, "the row already contains it"),
    ("Step_1-AverageReturn", 1.0, "the row already contains it")])
def test_columns_by_which_rows_are_recognized_are_refused(name, value, reason, trainer):
    trainer.callbacks = [lambda trainer, row: logger.logkv(name, value)]
    with pytest.raises(ValueError, match=f"callbacks: expected no column {name}, because {reason}; log"):
        trainer.train()
    trainer.callbacks = []
    trainer.train()
