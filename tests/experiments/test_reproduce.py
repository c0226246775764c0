"""Tests the reproduction of published results: runs, stored data, statistics and tables."""
import dataclasses
import os
import re
import shutil
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from benchmarks.workload import SMOKE
from experiments import metaworld_evaluation, reproduce
from experiments.results import derivatives, gradient_variance, gradient_variance_published, reproduced
from experiments.results.entries import ENTRIES, MEASUREMENTS, all_settings, script_settings
from meta_policy_search.cli.train import SMOKE as TRAIN_SMOKE
from meta_policy_search.parallel_runs import check_settings
from meta_policy_search.tf_compat import tf

ROOT = Path(__file__).resolve().parent.parent.parent
NAME = "exploration_corner"
TINY = {"max_path_length": 5}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduced, "FOLDER", str(tmp_path / "reproduced"))
    monkeypatch.setattr(reproduced, "PAGE", str(tmp_path / "papers.md"))
    monkeypatch.setattr(reproduced, "README", shutil.copy(reproduced.README, tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path / "reproduced"


@pytest.fixture
def small_entry(monkeypatch):
    """An entry with one method that takes seconds and does not learn."""
    entry = ENTRIES[NAME]
    method = dataclasses.replace(entry.methods[0], seeds=(1,), published=(0.25, 0.5))
    entry = dataclasses.replace(entry, settings={**entry.settings, **SMOKE}, methods=[method], rollouts=2)
    monkeypatch.setitem(ENTRIES, NAME, entry)
    return entry


def progress(rows, offset=0.0):
    columns = ["Itr", "n_timesteps", "Time", "Step_0-AverageReturn", "Step_3-AverageReturn", "Loss"]
    return {column: offset + np.arange(rows) * (i + 1.0) for i, column in enumerate(columns)}


# Data --------------------------------------------------------------------------------------------------------------


def test_run_replaces_an_earlier_run_and_keeps_others(folder):
    returns = np.arange(6.0).reshape(2, 3)
    reproduced.keep(NAME, "a", 1, returns, progress(3))
    reproduced.keep(NAME, "b", 1, returns + 10.0, progress(2))
    reproduced.keep(NAME, "a", 1, returns + 20.0, progress(4, 0.5))
    kept, training = reproduced.read_scores(NAME), reproduced.read_training(NAME)
    np.testing.assert_allclose(kept["a"][1], returns + 20.0)
    np.testing.assert_allclose(kept["b"][1], returns + 10.0)
    np.testing.assert_allclose(training["a"][1]["Step_3-AverageReturn"], progress(4, 0.5)["Step_3-AverageReturn"])
    assert "Loss" not in training["b"][1] and len(training["b"][1]["Itr"]) == 2


def test_returns_of_groups_of_tasks_are_listed_by_seed(folder, monkeypatch):
    entry = dataclasses.replace(ENTRIES[NAME], groups={"left": -1.0, "right": 1.0})
    monkeypatch.setitem(ENTRIES, NAME, entry)
    method, scores = entry.methods[0], np.zeros((3, 4))
    scores[:, 3] = [10.0, 20.0, 40.0]
    reproduced.keep(NAME, method.name, 1, scores, progress(2), [-1.0, -1.0, 1.0])
    reproduced.keep(NAME, method.name, 2, scores, progress(2), [1.0, -1.0, 1.0])
    reproduced.keep(NAME, method.name, 3, scores, progress(2))  # an older run, without goals
    np.testing.assert_array_equal(reproduced.read_scores(NAME)[method.name][2], scores)
    assert reproduced.read_goals(NAME)[method.name][2].tolist() == [1.0, -1.0, 1.0]
    table = f"| return of each seed | left | right |\n|---|---|---|\n| {method.label} | 15, 20 | 40, 25 |"
    assert table in reproduced.page()


def test_page_states_the_samples_of_training(folder):
    for name, expected in {
            "half_cheetah_tasks": "20 or 40 tasks; paths per task and adaptation step: 20; steps per path: at most 100",
            "rl2_mdp": "1200 or 480 tasks; trials per task: 1; steps per episode: at most 10"}.items():
        entry, steps = ENTRIES[name], ENTRIES[name].num_steps + 1
        reproduced.keep(name, entry.methods[0].name, 1, np.zeros((3, steps)), progress(2))
        assert f"- Training: {expected}\n" in reproduced.page()


def test_score_of_a_policy_that_observes_the_task_is_the_return_without_adaptation(folder):
    reproduced.keep("half_cheetah_direction", "oracle", 1, np.array([[1.0, 2.0, 3.0, 4.0]] * 2), progress(2),
                    [-1.0, 1.0])
    (row,) = re.findall(r"^\| TRPO that observes the task .* \(column 0\) \|$", reproduced.page(), flags=re.MULTILINE)
    assert row.endswith("| 1.00 | 2.00 | 3.00 | 4.00 | 1.00 [1.00, 1.00] (column 0) |")


def test_figure_compares_episodes_of_rl2_with_adaptation_steps(folder, monkeypatch):
    panels = {}
    monkeypatch.setattr(reproduced, "plot_comparison", lambda given, *args: panels.update(given))
    columns = {"Step_0-FirstEpisodeReturn": np.full(3, -1.0), "Step_0-LastEpisodeReturn": np.full(3, 6.0)}
    trial = {**{name: values for name, values in progress(3).items() if not name.startswith("Step_3")}, **columns}
    reproduced.keep("rl2_navigation", "pro_mp", 1, np.ones((2, 2)), progress(3))
    reproduced.keep("rl2_navigation", "rl2", 1, np.ones((2, 2)), trial)
    reproduced.draw("rl2_navigation")
    assert {panel: [curve.runs[0][1][-1] for curve in curves] for panel, curves in panels.items()} == {
        "return before adaptation": [-1.0, 8.0], "return after adaptation": [6.0, 10.0]}


def test_results_are_stored_by_seed(folder):
    reproduced.keep_measured("derivatives", "dice", 2, {1: 0.5, 2: 0.25})
    reproduced.keep_measured("derivatives", "dice", 3, {1: 1.5, 2: 1.25})
    assert reproduced.read_measured("derivatives") == {"dice": {2: {1: 0.5, 2: 0.25}, 3: {1: 1.5, 2: 1.25}}}


def test_intervals_over_seeds_require_two_seeds(folder):
    reproduced.keep_measured("gradient_variance", "dice", 1, {1: 0.5})
    assert reproduced.page().endswith("| DiCE | 1 | 0.50 |\n")
    reproduced.keep_measured("gradient_variance", "dice", 2, {1: 0.5})
    assert reproduced.page().endswith("| DiCE | 2 | 0.50 ± 0.00 |\n")


def test_only_selected_or_missing_measurements_run(folder, monkeypatch):
    """A measurement that stops with an error keeps the methods before; the next call measures the others."""
    runs, failing = [], [("dice", 2)]

    def measure(seed, methods):
        for method in methods:
            if (method, seed) in failing:
                raise RuntimeError("disk full")
            runs.append((method, seed))
            yield method, {1: 1.0, 2: 0.0, 3: 0.0}

    monkeypatch.setattr(derivatives, "measure", measure)
    monkeypatch.setattr(reproduced, "write", lambda *names: [])
    few = dataclasses.replace(MEASUREMENTS["derivatives"], seeds=(1, 2), methods={"dice": "DiCE", "loaded": "Loaded"})
    monkeypatch.setitem(MEASUREMENTS, "derivatives", few)
    assert reproduce.main(["derivatives", "--methods", "loaded", "--seeds", "2"]) == 0
    with pytest.raises(RuntimeError, match="disk full"):
        reproduce.main(["derivatives"])
    failing.clear()
    assert reproduce.main(["derivatives"]) == 0 and reproduce.main(["derivatives"]) == 0
    assert runs == [("loaded", 2), ("dice", 1), ("loaded", 1), ("dice", 2)]
    assert reproduce.main(["derivatives", "--methods", "dice", "--seeds", "2"]) == 0
    assert runs[4:] == [("dice", 2)]


# Derivatives -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def process():
    return derivatives.draw_process(np.random.default_rng(5))


def value_of(process, logits):
    policy = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    values = np.zeros(derivatives.STATES)
    for _ in range(1000):
        values = process.rewards + derivatives.DISCOUNT * np.einsum("sa,sat,t->s", policy, process.transitions, values)
    return values


def test_exact_derivatives_equal_those_of_the_value(process):
    np.testing.assert_allclose(process.transitions.sum(axis=-1), 1.0)
    with tf.Graph().as_default(), tf.Session() as sess:
        logits = tf.constant(process.logits)
        values = derivatives.true_value(process, logits)
        first, second, _ = sess.run(derivatives.derivatives_of(tf.reduce_mean(values), logits))
        np.testing.assert_allclose(sess.run(values), value_of(process, process.logits))
    step = np.zeros_like(process.logits)
    step[0, 0] = 1e-4
    up, at, down = (value_of(process, process.logits + sign * step).mean() for sign in (1.0, 0.0, -1.0))
    np.testing.assert_allclose(first[0, 0], (up - down) / 2e-4, rtol=1e-5)
    np.testing.assert_allclose(second[0, 0], (up - 2.0 * at + down) / 1e-8, rtol=1e-2, atol=1e-3)


def test_paths_follow_policy_and_process(process):
    paths = derivatives.sample_paths(process, np.random.default_rng(1))
    states, actions = paths.states[:, :-1], paths.actions
    policy = np.exp(process.logits) / np.exp(process.logits).sum(axis=1, keepdims=True)
    for state in range(derivatives.STATES):
        taken = actions[states == state]
        if len(taken) > 1000:
            np.testing.assert_allclose(np.bincount(taken, minlength=derivatives.ACTIONS) / len(taken), policy[state],
                                       atol=0.05)
    assert np.all(process.transitions[states, actions, paths.states[:, 1:]] > 0.0)


def test_advantages_are_sums_of_later_rewards():
    rewards, values = np.ones((1, derivatives.STEPS)), np.arange(derivatives.STEPS + 1.0)[None]
    weights = derivatives.DISCOUNT ** np.arange(derivatives.STEPS)
    one = derivatives.advantages_of(rewards, values, 0.0)
    np.testing.assert_allclose(one[0], weights * (1.0 + derivatives.DISCOUNT * values[0, 1:] - values[0, :-1]))
    everything = derivatives.advantages_of(rewards, values, 1.0)
    last = derivatives.DISCOUNT ** derivatives.STEPS * values[0, -1]
    np.testing.assert_allclose(everything[0, 0], weights.sum() + last)


@pytest.mark.thorough
def test_estimates_converge_to_the_exact_values():
    methods = ("low_variance", "loaded", "loaded_lambda_0")
    measured = dict(derivatives.measure(1, methods))
    assert all(measured[method][1] > 0.99 for method in methods)
    assert measured["loaded_lambda_0"][2] > 0.9


# Noise of the meta-gradient -----------------------------------------------------------------------------------------


def test_relative_standard_deviation_covers_all_components():
    gradients = np.array([[3.0, 4.0], [3.0, 6.0], [3.0, 2.0]])
    assert gradient_variance.relative_std(gradients) == pytest.approx(2.0 / 5.0)


@pytest.mark.thorough
def test_all_estimators_are_measured_at_all_snapshots(monkeypatch):
    monkeypatch.setattr(gradient_variance, "CHECKPOINTS", (0, 1))
    monkeypatch.setattr(gradient_variance, "DRAWINGS", 2)
    sizes = {"env": "MetaPointEnvNavigation", "meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 5}
    methods = list(MEASUREMENTS["gradient_variance"].methods)
    measured = dict(gradient_variance.measure(1, methods, **sizes))
    assert list(measured) == methods
    ((name, again),) = gradient_variance.measure(1, methods[1:2], **sizes)
    assert name == methods[1] and again == measured[name]
    assert all(list(by_itr) == [0, 1] for by_itr in measured.values())
    assert all(value > 0.0 for by_itr in measured.values() for value in by_itr.values())


def test_mean_relative_standard_deviation_is_over_parameters():
    gradients = np.array([[3.0, 4.0], [3.0, 6.0], [3.0, 2.0]])
    assert gradient_variance_published.mean_relative_std(gradients) == pytest.approx(np.sqrt(8.0 / 3.0) / 4.0 / 2.0)


@pytest.mark.thorough
def test_policies_of_each_estimator_are_measured_in_equal_tasks(folder, monkeypatch, tmp_path):
    name, seen = gradient_variance_published.TRAINING, []
    small = {"env": "MetaPointEnvNavigation", "n_itr": 3, "meta_batch_size": 2, "rollouts_per_meta_task": 2,
             "max_path_length": 5, "snapshot_gap": 2}
    entry = ENTRIES[name]
    monkeypatch.setitem(ENTRIES, name, dataclasses.replace(
        entry, settings={**entry.settings, **small}, methods=entry.methods[1:3]))
    monkeypatch.setattr(gradient_variance_published, "DRAWINGS", 3)
    sample = gradient_variance_published.sample_and_adapt

    def recorded(trainer, new_tasks):
        samples = sample(trainer, new_tasks)
        seen.append((list(map(tuple, trainer.sampler.tasks)), samples[0][0]["rewards"].sum()))
        return samples

    monkeypatch.setattr(gradient_variance_published, "sample_and_adapt", recorded)
    assert reproduce.main([name, "--seeds", "1", "--output", str(tmp_path)]) == 0
    methods = list(MEASUREMENTS["gradient_variance_published"].methods)[1:3]
    measured = dict(gradient_variance_published.measure(1, methods, str(tmp_path / name)))
    assert list(measured) == methods
    assert all(list(by_itr) == [0, 2] and by_itr[0] == by_itr[2] > 0.0 for by_itr in measured.values())
    assert all(seen[i][0] == seen[i - 1][0] and seen[i][1] != seen[i - 1][1] for i in range(len(seen)) if i % 3)


# Entries -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_have_valid_settings_and_report_few_seeds(name):
    entry = ENTRIES[name]
    for method in entry.methods:
        settings = script_settings(method.script, {**entry.settings, **method.settings})
        check_settings(settings.pop("algo"), settings)
        assert len(method.seeds) >= 3 or "seed" in entry.differs


@pytest.mark.thorough
def test_entry_is_trained_evaluated_and_plotted_once(folder, small_entry, tmp_path, capsys):
    arguments = [NAME, "--output", str(tmp_path / "runs"), "--processes", "1"]
    assert reproduce.main(arguments) == 0
    assert sorted(os.listdir(folder)) == [f"{NAME}.csv", f"{NAME}.svg", f"{NAME}_training.csv", "weights"]
    returns = reproduced.read_scores(NAME)
    assert returns[small_entry.methods[0].name][1].shape == (40, 4)
    weights = np.load(folder / "weights" / f"{NAME},{small_entry.methods[0].name},seed=1.npz")
    assert sum(weights[key].size for key in weights) > 0
    page = (tmp_path / "papers.md").read_text(encoding="utf-8")
    assert "published | | | | 0.25 | 0.50 |  |  | |" in page and f"experiments.reproduce {NAME}`" in page
    capsys.readouterr()
    assert reproduce.main(arguments) == 0
    assert "1 of 1 runs complete" in capsys.readouterr().out
    np.testing.assert_allclose(reproduced.read_scores(NAME)[small_entry.methods[0].name][1],
                               returns[small_entry.methods[0].name][1], atol=1e-5)


def test_first_step_of_a_test_has_the_size_of_training(monkeypatch):
    evaluator, run = mock.MagicMock(), mock.MagicMock()
    evaluator.algo.inner_lr = 0.2
    evaluator.evaluate.return_value.task_returns = np.zeros((40, 4))
    monkeypatch.setattr(reproduce.mps, "load_evaluator", lambda *arguments, **more: evaluator)
    monkeypatch.setattr(reproduce, "reproduced", mock.MagicMock())
    monkeypatch.setattr(reproduce, "read_progress", mock.MagicMock())
    for name in ("half_cheetah_direction_settings", "partial_adaptation_direction"):
        reproduce._test(name, ENTRIES[name], ENTRIES[name].methods[1], 1, run)
    del evaluator.algo.inner_lr  # RL2 has none
    reproduce._test("rl2_navigation", ENTRIES["rl2_navigation"], ENTRIES["rl2_navigation"].methods[0], 1, run)
    assert [call.args for call in evaluator.evaluate.call_args_list] == [
        (40, 3, [0.2, 0.1]), (40, 3, None), (40, 1, None)]


def test_figures_of_measurements_are_not_those_of_their_training(folder):
    """`gradient_variance` has no training; `gradient_variance_training.csv` is the data of another entry."""
    reproduced.keep_measured("gradient_variance", "dice", 1, {1: 0.5})
    reproduced.keep("gradient_variance_training", "dice", 1, np.zeros((3, 2)),
                    {**progress(2), "Step_1-AverageReturn": np.zeros(2)})
    reproduced.write("gradient_variance")
    assert sorted(os.listdir(folder)) == ["gradient_variance.csv", "gradient_variance_training.csv",
                                          "gradient_variance_training_training.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES)
def test_each_entry_completes_at_tiny_size(name, folder, monkeypatch, tmp_path):
    entry = ENTRIES[name]
    methods = [dataclasses.replace(method, seeds=(1,), settings={
        **method.settings, **TINY, **{key: value for key, value in TRAIN_SMOKE.items()
                                      if key in all_settings(method.script, {})}}) for method in entry.methods]
    monkeypatch.setitem(ENTRIES, name, dataclasses.replace(entry, methods=methods, rollouts=2, test_tasks=6))
    assert reproduce.main([name, "--output", str(tmp_path / "runs")]) == 0
    scores = reproduced.read_scores(name)
    assert sorted(scores) == sorted(method.name for method in methods)
    assert all(np.isfinite(scores[method.name][1]).all() for method in methods)
    assert f"experiments.reproduce {name}`" in (tmp_path / "papers.md").read_text(encoding="utf-8")


@pytest.mark.thorough
def test_meta_world_score_is_the_success_rate(folder, monkeypatch, tmp_path):
    pytest.importorskip("metaworld", reason="needs the extra metaworld")
    evaluate = metaworld_evaluation.evaluate_on_metaworld

    def evaluate_and_tell(*arguments, adaptation_steps, **more):
        result = evaluate(*arguments, adaptation_steps=adaptation_steps, adaptation_episodes=1, evaluation_episodes=1,
                          max_path_length=3, **more)
        assert result.rounds == [0.0, 0.0, 0.0]
        return result._replace(rounds=[adaptation_steps + 0.25 * goal for goal in range(3)])

    monkeypatch.setattr(metaworld_evaluation, "evaluate_on_metaworld", evaluate_and_tell)
    entry = ENTRIES["meta_world_reach"]
    entry = dataclasses.replace(entry, settings={**entry.settings, **SMOKE}, methods=entry.methods[:1], test_tasks=3)
    monkeypatch.setitem(ENTRIES, "meta_world_reach", entry)
    assert reproduce.main(["meta_world_reach", "--output", str(tmp_path / "runs"), "--processes", "1"]) == 0
    np.testing.assert_allclose(reproduced.read_scores("meta_world_reach")["pro_mp"][1],
                               [[0.0, 1.0], [0.25, 1.25], [0.5, 1.5]])
    assert "| success rate | seeds |" in (tmp_path / "papers.md").read_text(encoding="utf-8")


@pytest.mark.thorough
def test_failed_run_is_reported(folder, small_entry, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(small_entry.settings, "adapt_params", ["nothing"])
    assert reproduce.main([NAME, "--output", str(tmp_path / "runs")]) == 1
    assert "adapt_params" in capsys.readouterr().out and not folder.joinpath(f"{NAME}.csv").exists()


@pytest.mark.parametrize("flags, said", [
    (["--methods", "likelihod_ratio"], "log_likelihood"), (["--seeds", "-1"], "--seeds"),
    (["--processes", "0"], "--processes")])
def test_invalid_arguments_are_reported(flags, said, tmp_path, capsys):
    with pytest.raises(SystemExit):
        reproduce.main([NAME, "--output", str(tmp_path), *flags])
    assert said in capsys.readouterr().err


def test_similar_names_of_entries_are_suggested(capsys):
    with pytest.raises(SystemExit):
        reproduce.main(["derivative"])
    assert "NAME: expected one of" in (message := capsys.readouterr().err) and "did you mean 'derivatives'?" in message


def test_interrupted_runs_leave_the_page_unchanged(folder, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(reproduce, "train_all", lambda *arguments: ([], True))
    assert reproduce.main([NAME, "--output", str(tmp_path / "runs")]) == reproduce.INTERRUPTED
    assert "run the same command to resume" in capsys.readouterr().out
    assert not (tmp_path / "papers.md").exists()


def test_without_a_name_the_tables_are_written(folder, tmp_path, capsys):
    assert reproduce.main([]) == 0
    assert capsys.readouterr().out.count("\n") == 2 and (tmp_path / "papers.md").exists()


# Stored data -------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_tables_equal_the_stored_data():
    number = re.compile(r"-?\d+\.\d+")
    readme = Path(reproduced.README).read_text(encoding="utf-8")
    page = Path(reproduced.PAGE).read_text(encoding="utf-8")
    for kept, now in ((page, reproduced.page()), (readme, reproduced.readme(readme))):
        assert number.sub("x", kept) == number.sub("x", now)
        np.testing.assert_allclose([float(n) for n in number.findall(kept)], [float(n) for n in number.findall(now)],
                                   atol=0.0101)


def test_every_stored_run_has_weights_and_training_rows():
    for name in ENTRIES:
        for method, runs in reproduced.read_scores(name).items():
            for seed in runs:
                assert os.path.exists(reproduced.weights_path(name, method, seed))
                assert seed in reproduced.read_training(name)[method]
