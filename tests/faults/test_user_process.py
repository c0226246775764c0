"""Training leaves the user's process as it was, and a callback cannot train its own run."""
import random
from pathlib import Path

import numpy as np
import pytest

import meta_policy_search as mps
from tests.helpers.processes import run_script
from tests.helpers.runs import read_rows
from tests.helpers.trainers import build_trainer

SMALL = {"algo": "vpg_maml", "meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 3,
         "hidden_sizes": (4,), "progress_bar": False, "log_formats": ["csv"]}
ENV = "MetaPointEnvCornerGoals"


def generators():
    return random.getstate(), np.random.get_state()[1].tolist(), np.random.get_state()[2]


def test_the_random_generators_of_the_user_are_unchanged(tmp_path):
    np.random.seed(7)
    random.seed(8)
    before = generators()
    with pytest.raises(ValueError, match="n_itr"):
        mps.train(ENV, n_itr=0, **SMALL)
    assert generators() == before
    run = mps.train(ENV, n_itr=1, dump_path=tmp_path / "run", **SMALL)
    assert generators() == before
    run.trainer.train_itr()
    assert generators() == before
    mps.load_run(run.folder).resume(2)
    assert generators() == before


def test_a_seed_that_the_user_set_stays_set(tmp_path):
    """Given a seed, then a training with another seed has no effect on parts that are built afterwards."""
    def weights():
        return mps.np.policies.GaussianMLPPolicy(2, 2, hidden_sizes=(3,)).get_flat_params()

    mps.set_seed(5)
    expected = weights()
    mps.set_seed(5)
    mps.train(ENV, n_itr=1, seed=9, dump_path=tmp_path / "run", **SMALL)
    np.testing.assert_array_equal(weights(), expected)


def test_importing_the_package_with_tensorflow_draws_no_random_numbers(tmp_path):
    run_script(tmp_path, """
        import random
        import numpy as np
        before = random.getstate(), str(np.random.get_state())
        import meta_policy_search.policies
        assert before == (random.getstate(), str(np.random.get_state()))
    """)


@pytest.mark.thorough
def test_a_continued_trainer_draws_what_an_uninterrupted_one_draws(tmp_path):
    """Given tasks from the global generator, then numbers that the user draws between calls do not matter."""
    class Env(mps.MetaPointEnvNavigation):
        def sample_tasks(self, n_tasks):
            return np.random.uniform(-0.5, 0.5, (n_tasks, 2))

    whole = mps.train(Env(), n_itr=2, dump_path=tmp_path / "whole", **SMALL)
    part = mps.train(Env(), n_itr=1, dump_path=tmp_path / "part", **SMALL)
    np.random.seed(0)
    part.resume(2)
    assert read_rows(whole.folder) == read_rows(part.folder)
    np.testing.assert_array_equal(part.policy.get_flat_params(), whole.policy.get_flat_params())


@pytest.mark.thorough(but="train_itr")
@pytest.mark.parametrize("train_again", [
    lambda trainer, folder: trainer.train_itr(),
    lambda trainer, folder: mps.load_run(folder).resume(4),
], ids=["train_itr", "resume"])
def test_a_callback_cannot_train_its_own_run(train_again, tmp_path):
    def callback(trainer, row):
        if trainer.itr == 1:
            train_again(trainer, tmp_path / "run")

    with pytest.raises(RuntimeError, match="a callback cannot train its own run"):
        mps.train(ENV, n_itr=3, callbacks=[callback], dump_path=tmp_path / "run", **SMALL)
    assert [row["Itr"] for row in read_rows(tmp_path / "run")] == ["0"]
    assert len(mps.load_run(tmp_path / "run").resume(3).progress["Itr"]) == 3


def test_n_itr_can_be_assigned_in_a_callback(tmp_path):
    def shorten(trainer, row):
        with pytest.raises(TypeError, match="n_itr: expected an integer of at least 1, got '5'"):
            trainer.n_itr = "5"
        trainer.n_itr = 2

    run = mps.train(ENV, n_itr=4, callbacks=[shorten], dump_path=tmp_path / "run", **SMALL)
    assert len(run.progress["Itr"]) == 2 and run.is_complete


def test_assigned_callbacks_and_progress_bar_are_checked():
    trainer = build_trainer(n_itr=2)
    trainer.progress_bar = "yes"
    with pytest.raises(TypeError, match="progress_bar: expected True or False, got 'yes'"):
        trainer.train()
    trainer.progress_bar, trainer.callbacks = False, [print, "print"]
    with pytest.raises(TypeError, match="callbacks: expected a list of functions or callable objects, got "):
        trainer.train()
    trainer.callbacks = [lambda trainer, row: True]
    trainer.train()
    assert trainer.itr == 1 and trainer.stopped


def test_a_run_that_was_killed_before_it_recorded_that_it_stopped_does_not_continue(tmp_path, monkeypatch):
    """Given a callback that stops the run, and a process that ends after the row and the snapshot."""
    with monkeypatch.context() as patch:
        patch.setattr("meta_policy_search.run_folder.record_end", lambda *args, **kwargs: None)
        mps.train(ENV, n_itr=4, callbacks=[lambda trainer, row: trainer.itr == 1], dump_path=tmp_path / "run", **SMALL)
    run = mps.load_run(tmp_path / "run")
    assert not run.is_complete
    assert len(run.resume().progress["Itr"]) == 2 and run.is_complete


@pytest.mark.thorough
def test_paths_of_the_user_may_begin_with_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    run = mps.train(ENV, n_itr=1, dump_path="~/runs/one", **SMALL)
    assert run.folder == str(tmp_path / "home/runs/one")
    loaded = mps.load_run(Path("~/runs/one"))
    loaded.policy.save_npz("~/weights/one.npz")
    loaded.plot("~/figures/one.png")
    loaded.evaluate(2).save("~/evaluation")
    assert mps.load_policy("~/weights/one.npz", hidden_sizes=(4,)).get_flat_params().size
    with mps.logger.scoped_configure("~/runs/two", ["csv"]):
        mps.logger.logkv("Itr", 0)
        mps.logger.dumpkvs()
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["evaluation", "figures", "runs", "weights"]
    assert not (tmp_path / "~").exists()
    with pytest.raises(ValueError, match="dump_path: expected a path, got ''"):
        mps.train(ENV, dump_path="", **SMALL)
