"""`EvalCallback` evaluates during training, saves the best policy, stops, and resumes, without changing training."""
import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import meta_policy_search as mps
from experiments import rl2, vpg_maml
from meta_policy_search.cli.main import main
from meta_policy_search.evaluation import eval_callback
from meta_policy_search.plotting import read_progress
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.snapshotter import SnapshotError, load_snapshot
from meta_policy_search.utils.statistics import mean_interval
from tests.helpers.trainers import build_trainer

N_ITR = 6


def make_trainer(callbacks=()):
    mps.set_seed(4)  # the second of three evaluations is the best
    return build_trainer(
        mps.VPGMAML, (2, 2, 5), N_ITR, mps.normalize(mps.MetaPointEnvCorner(reward_type="dense")),
        mps.MetaGaussianMLPPolicy(2, 2, 2, hidden_sizes=(4,)), mps.MetaSampleProcessor(mps.LinearFeatureBaseline()),
        callbacks=callbacks, inner_lr=0.5, learning_rate=0.1)


def make_callback(**arguments):
    return mps.EvalCallback(**{"every": 2, "tasks": 3, **arguments})


COLUMNS = ["Itr", "Eval-ReturnBefore", "Eval-ReturnBeforeCI95", "Eval-ReturnAfter", "Eval-ReturnAfterCI95"]


def rows_of(folder):
    """Returns `COLUMNS` of the rows with an evaluation, float64 `[rows, columns]`."""
    progress = read_progress(folder)
    table = np.stack([progress[name] for name in COLUMNS], axis=1)
    return table[np.isfinite(table[:, 1])]


def resume(run, folder, itr, callbacks=(), n_itr=N_ITR):
    """Resumes a copy of a run after an iteration."""
    shutil.copytree(run.folder, folder)
    run.trainer.callbacks, run.trainer.n_itr = list(callbacks), n_itr
    run.trainer.restore(load_snapshot(run.folder, itr))
    with logger.scoped_configure(folder, ["csv", "log"], "all", resume_at=itr + 1):
        run.trainer.train()


@pytest.fixture(scope="module")
def states():
    """The states of all random generators after the iterations of `run`."""
    return []


@pytest.fixture(scope="module")
def run(tmp_path_factory, states):
    """A run with three evaluations, of which the second is the best. Tests may only resume copies of it."""
    folder = tmp_path_factory.mktemp("run")
    with tf.Graph().as_default(), logger.scoped_configure(folder, ["csv"], "all"):
        trainer = make_trainer([make_callback(), recorder(states)])
        trainer.train()
        yield mps.Run(trainer, folder)


def recorder(states):
    return lambda trainer, row: states.append(repr(seeding.get_process_state()))


@pytest.mark.thorough
def test_training_is_the_same_without_the_callback(run, states, tmp_path):
    plain_states = []
    with logger.scoped_configure(tmp_path, ["csv"]):
        make_trainer([recorder(plain_states)]).train()
    assert plain_states == states
    np.testing.assert_equal(load_snapshot(tmp_path)["state"]["policy_params"],
                            load_snapshot(run.folder)["state"]["policy_params"])
    before, after = read_progress(tmp_path), read_progress(run.folder)
    assert list(before) == [name for name in after if not name.startswith("Eval-")]
    for name in before:
        if "Time" not in name:
            np.testing.assert_array_equal(before[name], after[name])


def test_rows_contain_the_returns_in_the_same_new_tasks(run):
    rows = rows_of(run.folder)
    assert rows[:, 0].tolist() == [1, 3, 5]
    mean, half_width = run.evaluate(tasks=3, seeds=(0,)).mean_return
    np.testing.assert_array_equal(rows[-1, 1:], [mean[0], half_width[0], mean[1], half_width[1]])


@pytest.mark.thorough
def test_best_policy_is_saved_and_loaded(run, capsys, tmp_path):
    assert np.argmax(rows_of(run.folder)[:, 3]) == 1 and run.best.trainer.itr == 4
    assert load_snapshot(run.folder)["itr"] == 5  # `best.pkl` is not the last snapshot
    actor, policy = mps.load_policy(run.folder, "best"), mps.load_policy(run.folder, 3)
    np.testing.assert_equal(actor.get_param_values(), policy.get_param_values())
    main(["evaluate", run.folder, "--snapshot", "best", "--num_tasks", "2", "--output", str(tmp_path)])
    assert f"{run.folder}, iteration 3 " in capsys.readouterr().out


@pytest.mark.thorough
def test_best_policy_is_saved_with_the_state_of_all_callbacks(tmp_path):
    with logger.scoped_configure(tmp_path, ["csv"], "all"):
        make_trainer([make_callback(), mps.EarlyStopping("Itr", patience=99)]).train()
    best = load_snapshot(tmp_path, "best")
    (*_, first), (*_, second) = best["state"]["callbacks"]
    assert second == (float(best["itr"]), 0) and first[0] == rows_of(tmp_path)[best["itr"] // 2, 3]


@pytest.mark.thorough(but="4")
@pytest.mark.parametrize("itr", range(N_ITR - 1))
def test_resumed_run_equals_an_uninterrupted_run(run, tmp_path, itr):
    resume(run, tmp_path / "again", itr)
    np.testing.assert_array_equal(rows_of(tmp_path / "again"), rows_of(run.folder))
    _, callback, state = load_snapshot(tmp_path / "again")["state"]["callbacks"][0]
    assert state == callback.get_state() == (rows_of(run.folder)[1, 3], 1)
    for which in ("best", None):
        before, after = (load_snapshot(folder, which) for folder in (run.folder, tmp_path / "again"))
        assert after["itr"] == before["itr"]
        np.testing.assert_equal(after["state"]["policy_params"], before["state"]["policy_params"])


def test_best_policy_after_the_snapshot_is_removed(run, tmp_path):
    resume(run, tmp_path / "again", itr=2, callbacks=[make_callback(every=99)], n_itr=4)
    assert rows_of(tmp_path / "again")[:, 0].tolist() == [1]
    with pytest.raises(SnapshotError, match="again contains no best.pkl: train with an EvalCallback"):
        load_snapshot(tmp_path / "again", "best")


@pytest.mark.parametrize("values, arguments, stops_after", [
    ([1, 2, 2, 2, 9], {"patience": 2}, 4),
    ([1, 2, 2, 3, 3], {"patience": 2}, None),
    ([1, 2, 3, 4], {"patience": 1, "target": 3.0}, 3),
    ([3, 2, 1], {}, None),
])
def test_training_stops_without_improvement_or_at_the_target(
        run, tmp_path, monkeypatch, values, arguments, stops_after):
    evaluation = SimpleNamespace(task_returns=[0] * 3, success_rate=None)
    monkeypatch.setattr(eval_callback, "make_evaluator", lambda *_, **__: SimpleNamespace(
        evaluate=lambda *_, **__: evaluation))
    monkeypatch.setattr(run.trainer, "itr", 0)
    callback, answers = make_callback(every=1, **arguments), []
    with logger.scoped_configure(tmp_path, ["csv"], "none"):
        for itr, value in enumerate(values):
            run.trainer.itr, evaluation.mean_return = itr, mean_interval([[0.0, value]] * 3)
            answers.append(callback(run.trainer, {}))
            assert run.trainer.is_best == (itr == np.argmax(values[:itr + 1]))
    assert answers.index(True) + 1 == stops_after if stops_after else not any(answers)


def test_returns_of_rl2_are_those_of_the_first_and_last_episode(tmp_path):
    sizes = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 1, "episodes_per_trial": 3}
    run = mps.train(mps.MetaBernoulliBanditEnv(num_arms=3), "rl2", 1, dump_path=tmp_path / "run", log_formats=["csv"],
                    callbacks=[mps.EvalCallback(every=1, tasks=20, num_steps=4, seed=7)], **sizes)
    (row,) = rows_of(run.folder)
    mean, half_width = run.evaluate(20, num_steps=4, seeds=(7,)).mean_return
    assert row.tolist() == [0, mean[0], half_width[0], mean[4], half_width[4]] and mean[0] != mean[4]


def test_fixed_tasks_are_evaluated(tmp_path, capsys):
    sizes = {"rollouts_per_meta_task": 1, "meta_batch_size": 2, "max_path_length": 2, "hidden_sizes": (2,)}
    run = mps.train("MetaPointEnvNavigation", "vpg_maml", n_itr=1, dump_path=tmp_path / "run", callbacks=[
        mps.EvalCallback(every=1, tasks="train")], **sizes)
    output = capsys.readouterr().out
    assert "in 100 tasks: return " in output and "warning" not in output
    mps.train("MetaPointEnvNavigation", "vpg_maml", n_itr=1, dump_path=tmp_path / "none", eval_every=2, **sizes)
    assert "warning: the run has no evaluation, because n_itr=1 is less than eval_every=2" in capsys.readouterr().out
    assert rows_of(run.folder)[0, 1] == run.evaluate("train", seeds=(0,)).mean_return.mean[0]


@pytest.mark.thorough
def test_scripts_evaluate_and_report_the_best_policy(tmp_path, capsys):
    arguments = ["--smoke", "--eval_every", "1", "--eval_tasks", "2", "--env", "MetaPointEnvMomentum"]
    assert vpg_maml.main([*arguments, "--dump_path", str(tmp_path / "run")]) == 0
    assert rows_of(tmp_path / "run")[:, 0].tolist() == [0, 1]
    best = load_snapshot(tmp_path / "run", "best")["itr"]
    output = capsys.readouterr().out
    assert "Adaptation changes the return of the best policy by " in output
    assert f": iteration {best}, 20 sampled tasks\n" in output and "in 2 tasks: return " in output
    assert "warning" not in output


@pytest.mark.parametrize("changed, message", [
    ({"eval_every": -1}, "eval_every: expected an integer of at least 0, got -1"),
    ({"eval_tasks": 0}, "eval_tasks: expected an integer of at least 1, got 0"),  # also without evaluations
    ({"eval_tasks": 7}, "eval_tasks: expected no value without eval_every, got 7"),
])
def test_wrong_settings_are_refused(changed, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        mps.train("MetaPointEnv", dump_path=tmp_path / "wrong", **changed)


@pytest.mark.thorough
def test_script_of_rl2_evaluates_trials_of_one_episode(tmp_path, capsys):
    assert rl2.main(["--smoke", "--eval_every", "2", "--episodes_per_trial", "1", "--dump_path", str(tmp_path)]) == 0
    ((itr, before, _, after, _),) = rows_of(tmp_path).tolist()
    assert itr == 1 and before == after
    assert "warning" not in capsys.readouterr().out


def test_overwriting_a_run_deletes_its_evaluations(run, tmp_path):
    shutil.copytree(run.folder, tmp_path / "run")
    with logger.scoped_configure(tmp_path / "run", ["csv"], overwrite=True):
        assert "best.pkl" not in os.listdir(tmp_path / "run")


def test_other_loops_and_a_second_callback_are_refused(run, monkeypatch):
    trainer, callback = run.trainer, make_callback()
    with pytest.raises(TypeError, match="expected a Trainer, of an algorithm that adapts to tasks, got a LocalRunner"):
        callback(mps.LocalRunner(), {})
    with pytest.raises(ValueError, match="folder: expected a run folder, got none"):
        callback(trainer, {})
    monkeypatch.setattr(trainer, "callbacks", [callback, make_callback()])
    with pytest.raises(ValueError, match="callbacks: expected at most one EvalCallback"):
        callback(trainer, {})


@pytest.mark.parametrize("arguments, error", [
    ({"every": 0}, ValueError), ({"tasks": 0}, ValueError), ({"tasks": []}, ValueError), ({"num_steps": 0}, ValueError),
    ({"tasks": "tests"}, ValueError), ({"seed": -1}, ValueError), ({"patience": 0}, ValueError),
    ({"target": np.nan}, ValueError), ({"target": "5"}, TypeError)])
def test_arguments_are_checked(arguments, error):
    with pytest.raises(error, match=f"^{next(iter(arguments))}: expected"):
        mps.EvalCallback(**arguments)
