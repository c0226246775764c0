"""A process has one seed and one logger: while a thread trains, other threads cannot train or change them."""
import threading

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.evaluation import MetaEvaluator
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger, set_seed
from tests.helpers.trainers import build_trainer


def build(seed):
    with tf.Graph().as_default():
        return build_trainer(n_itr=3, seed=seed)


def error_in_another_thread(work):
    """Returns what `work` raises in another thread."""
    errors = []

    def call():
        try:
            work()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return errors[0] if errors else None


@pytest.fixture(scope="module")
def alone():
    """Weights after a training that no other thread disturbs."""
    trainer = build(1)
    trainer.train()
    return trainer.policy.get_flat_params()


@pytest.mark.parametrize("work", [
    lambda other, folder: other.train(),
    lambda other, folder: mps.train("MetaPointEnv", seed=5, dump_path=folder),
    lambda other, folder: mps.LocalRunner().train(1),
    lambda other, folder: MetaEvaluator.from_trainer(other).evaluate(2),
    lambda other, folder: set_seed(5),
    lambda other, folder: logger.configure(folder, ["csv"]),
    lambda other, folder: logger.reset(),
], ids=["train", "mps.train", "LocalRunner", "evaluate", "set_seed", "configure", "reset"])
@pytest.mark.thorough(but="mps.train", ci=("LocalRunner", "evaluate", "configure"))
def test_second_thread_is_refused_and_does_not_change_the_first(work, alone, tmp_path):
    """Given a training, when another thread trains or changes seed or logger, then it gets an error, and only it."""
    other, trainer, errors = build(2), build(1), []
    before = other.policy.get_flat_params()
    trainer.callbacks.append(lambda *_: errors.append(error_in_another_thread(lambda: work(other, tmp_path / "other"))))
    logger.configure(tmp_path / "run", ["csv"])
    trainer.train()
    assert [type(error) for error in errors] == [RuntimeError] * 3
    assert "another thread of this process is training" in str(errors[0])
    np.testing.assert_array_equal(trainer.policy.get_flat_params(), alone)
    np.testing.assert_array_equal(other.policy.get_flat_params(), before)
    assert (tmp_path / "run" / "progress.csv").read_text().count("\n") == 4 and not (tmp_path / "other").exists()


def test_threads_may_train_sequentially(alone):
    """Given a training that ended, also by an error, then another thread can train."""
    trainer, failing = build(1), build(3)
    failing.callbacks.append(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        failing.train()
    assert error_in_another_thread(trainer.train) is None
    np.testing.assert_array_equal(trainer.policy.get_flat_params(), alone)


def test_callback_may_train_and_set_seeds(alone):
    """Given callbacks that train another run and set a seed, then the run equals one without callbacks."""
    trainer, other = build(1), build(2)
    trainer.callbacks += [lambda *_: other.train_itr(), lambda *_: set_seed(5)]
    trainer.train()
    np.testing.assert_array_equal(trainer.policy.get_flat_params(), alone)


def test_callback_cannot_replace_the_outputs(tmp_path):
    trainer = build(1)
    for work in (lambda *_: logger.configure(tmp_path / "other"), lambda *_: logger.reset()):
        trainer.callbacks = [work]
        with pytest.raises(RuntimeError, match="in a callback, use logger.scoped_configure"):
            trainer.train()
