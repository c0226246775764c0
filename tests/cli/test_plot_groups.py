"""Tests which runs form a curve of a comparison, and its label."""
import pytest

from meta_policy_search.cli import plot


def run_of(folder="a", rows=4, **settings):
    return plot.Run(folder, settings, {"Itr": [0] * rows})


@pytest.mark.parametrize("settings, labels", [
    ([{"n_itr": 3}, {"n_itr": 5}], ["promp, E"]),
    ([{"env": "a/objects.pkl:A"}, {"env": "B"}], ["A", "B"]),
    ([{"baseline": "A(\n    x=1,\n)"}, {"baseline": "B"}], ["baseline A", "baseline B"]),
    ([{"baseline": "A(x=1)"}, {"baseline": "A(x=2)"}], ["baseline A(x=1)", "baseline A(x=2)"]),
    # differ because of the algorithms: with and without a default in the command line
    ([{"num_inner_grad_steps": 1}, {"algorithm": "rl2", "num_inner_grad_steps": 0}], ["promp", "rl2"]),
    ([{"baseline": "LinearFeatureBaseline"}, {"algorithm": "rl2", "baseline": "ValueHeadBaseline"}], ["promp", "rl2"]),
    ([{"scale_reward": 1.0}, {"scale_reward": 2.0}], ["scale_reward 1.0", "scale_reward 2.0"]),
])
def test_labels_are_brief(settings, labels):
    runs = [run_of(**{"algorithm": "promp", "env": "E", "seed": seed, **own}) for seed, own in enumerate(settings)]
    assert list(plot.group_runs(runs)) == labels


def test_repeated_seeds_and_short_runs_are_skipped(capsys):
    runs = [run_of("a", 4, seed=1), run_of("b", 1, seed=2), run_of("c", 3, seed=1), run_of("d", 2, seed=3)]
    assert [run.folder for run in plot.drop_runs(runs)] == ["a", "d"]
    assert capsys.readouterr().err.splitlines() == [
        "Skipping c, which repeats the settings and the seed of a",
        "Skipping b, which has 1 rows, less than half of the 4 rows of a"]
    unknown = [plot.Run(folder, {"folder": folder}, {"Itr": [0]}) for folder in "ab"]
    assert plot.drop_runs(unknown) == unknown  # without settings, no run is a repetition


def test_title_of_runs_without_settings_is_brief(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "progress.csv").write_text("Itr,AverageReturn\n0,1.0\n1,1.0\n")
    titles = []
    monkeypatch.setattr(plot, "plot_comparison", lambda panels, path, title, **how: titles.append(title))
    assert plot.main([str(tmp_path / "one")]) == plot.main([str(tmp_path)]) == 0
    assert titles == ["one", "Comparison of runs"]
