"""Tests figures of runs from the command line: selected runs, curves, trajectories and invalid arguments."""
import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest

import meta_policy_search as mps
from experiments import maml_trpo
from meta_policy_search import plotting
from meta_policy_search.cli import plot
from meta_policy_search.cli.main import main
from meta_policy_search.run_folder import RunInfo, find_run, find_runs
from tests.helpers import commands
from tests.helpers.runs import write_rows

META = ("Itr", "n_timesteps", "Time", "Step_0-AverageReturn", "Step_1-AverageReturn", "AdaptationGain")
mistake = functools.partial(commands.mistake, functools.partial(commands.run, "plot"))


def write_run(folder, rows=3, factor=1.0, columns=META, algorithm="promp", **settings):
    """Writes a run by hand; row `i` has `factor * i + c` in column `c` (from 0), except in the iteration column."""
    write_rows(folder, {name: [i if name == "Itr" else factor * i + c for i in range(rows)]
                        for c, name in enumerate(columns)})
    if algorithm is not None:
        settings = {"env": "MetaPointEnv", "seed": 1, "n_itr": 3, "inner_lr": 0.1, **settings}
        (folder / "params.json").write_text(json.dumps({"algorithm": algorithm, "settings": settings}))
    return folder


@pytest.fixture
def comparison(monkeypatch):
    """Returns a function that runs a command and returns what it plotted."""
    def run(*arguments):
        drawn = []

        def draw(*args, **kwargs):
            drawn.append((*args, kwargs))
            return plotting.plot_comparison(*args, **kwargs)

        monkeypatch.setattr(plot, "plot_comparison", draw)
        assert main(["plot", *map(str, arguments)]) == 0
        return drawn[0]

    return run


def labels(panels):
    return list(next(iter(panels.values())))


def test_folders_are_searched_for_runs_without_duplicates_and_in_order(tmp_path, monkeypatch):
    for name in ("b/seed2", "b/seed1", "a", "b/seed1/evaluation/old", "c"):
        write_run(tmp_path / name)
    (tmp_path / "b" / "notes").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_runs(["b", "a/"]) == ["b/seed1", "b/seed2", "a"]
    assert find_runs([str(tmp_path)]) == [str(tmp_path / name) for name in ("a", "b/seed1", "b/seed2", "c")]


def test_only_run_of_a_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a/b/run", "c/run1", "c/run2"):
        write_run(tmp_path / name)
    for number in range(5):
        write_run(tmp_path / "many" / str(number))
    (tmp_path / "empty").mkdir()
    assert find_run("a") == find_run("a/b/run") == "a/b/run"
    for folder, message in (("c", "expected one run, got 2: c/run1, c/run2$"),
                            ("many", "expected one run, got 5: many/0, many/1, many/2, many/3, ...$"),
                            ("gone", "gone, which does not exist"),
                            ("empty", "empty, which contains no progress.csv"),
                            ("a/b/run/progress.csv", "progress.csv, which is not a folder")):
        with pytest.raises(ValueError, match=f"^runs: .*{message}"):
            find_run(folder, "runs")


def run_of(folder, settings, rows=4):
    return RunInfo(str(folder), {"settings": settings, "given": ["inner_lr"]}, "", {"Itr": [0] * rows})


@pytest.mark.parametrize("settings, expected", [
    # differ only in the seed and in settings without effect on the numbers
    ([{"algorithm": "a", "env": "E", "seed": 1, "n_itr": 5}, {"algorithm": "a", "env": "E", "seed": 2, "n_itr": 9}],
     {"a, E": ["0", "1"]}),
    # two algorithms, one with a setting that the other lacks
    ([{"algorithm": "a", "env": "E", "clip": 0.3}, {"algorithm": "b", "env": "E"},
      {"algorithm": "a", "env": "E", "clip": 0.3}],
     {"a": ["0", "2"], "b": ["1"]}),
    # settings that differ because of the algorithms' defaults, and one chosen setting
    ([{"algorithm": "e_maml", "exploration": True, "inner_lr": 0.1},
      {"algorithm": "trpo_maml", "exploration": False, "inner_lr": 0.1}], {"e_maml": ["0"], "trpo_maml": ["1"]}),
    ([{"algorithm": "e_maml", "inner_lr": 0.1}, {"algorithm": "trpo_maml", "inner_lr": 0.2}],
     {"e_maml, inner_lr 0.1": ["0"], "trpo_maml, inner_lr 0.2": ["1"]}),
    # a grid of settings and environments
    ([{"algorithm": "a", "env": env, "lr": lr, "seed": seed} for env in "EF" for lr in (0.1, None) for seed in (1, 2)],
     {"E, lr 0.1": ["0", "1"], "E, lr null": ["2", "3"], "F, lr 0.1": ["4", "5"], "F, lr null": ["6", "7"]}),
    ([{"env_kwargs": {"a": 1, "b": 2}}, {"env_kwargs": {"b": 2, "a": 1}}, {"env_kwargs": {}}],
     {'env_kwargs {"a": 1, "b": 2}': ["0", "1"], "env_kwargs {}": ["2"]}),
    # a run without settings among others, and a default policy
    ([{"folder": "x"}, {"env": "E", "inner_lr": 0.1}, {"env": "E", "inner_lr": 0.2}],
     {"0": ["0"], "inner_lr 0.1": ["1"], "inner_lr 0.2": ["2"]}),
    ([{"env": "E", "policy": None}, {"env": "E", "policy": "m:P"}], {"policy null": ["0"], "policy P": ["1"]}),
    # runs of a custom script
    ([{"folder": "x"}, {"folder": "y"}], {"x": ["0"], "y": ["1"]}),
    # brief labels
    ([{"algorithm": "a", "env": "a/objects.pkl:A"}, {"algorithm": "a", "env": "B"}], {"A": ["0"], "B": ["1"]}),
    ([{"baseline": "A(\n    x=1,\n)"}, {"baseline": "B"}], {"baseline A": ["0"], "baseline B": ["1"]}),
    # differ because of the algorithms
    *(([{"algorithm": "promp", name: value}, {"algorithm": "rl2", name: other}], {"promp": ["0"], "rl2": ["1"]})
      for name, value, other in (("num_inner_grad_steps", 1, 0),
                                 ("baseline", "LinearFeatureBaseline", "ValueHeadBaseline"))),
])
def test_runs_that_differ_only_in_the_seed_form_a_group(settings, expected):
    groups = plot.group_runs([run_of(i, one) for i, one in enumerate(settings)])
    assert {label: [run.folder for run in group] for label, group in groups.items()} == expected


def test_repeated_seeds_and_short_runs_are_skipped(capsys):
    runs = [run_of(name, {"seed": seed}, rows)
            for name, rows, seed in (("a", 4, 1), ("b", 1, 2), ("c", 3, 1), ("d", 2, 3))]
    assert [run.folder for run in plot.drop_runs(runs)] == ["a", "d"]
    assert capsys.readouterr().err.splitlines() == [
        "Skipping c, which repeats a",
        "Skipping b, which has less than half of the rows of a"]
    runs[2].progress["Itr"][0] = 7  # another run with this seed
    assert [run.folder for run in plot.drop_runs(runs)] == ["a", "c", "d"]
    unknown = [run_of(folder, {"folder": folder}) for folder in "ab"]
    assert plot.drop_runs(unknown) == unknown  # without settings, no run is a repetition


def test_seeds_of_two_settings_are_two_curves(tmp_path, comparison):
    """Two settings with two seeds and one seed give two curves, for pre-update and post-update returns."""
    write_run(tmp_path / "a1", seed=1)
    write_run(tmp_path / "a2", seed=2, factor=3.0, rows=5, n_itr=5)
    write_run(tmp_path / "b1", seed=1, inner_lr=0.2)
    panels, path, title, _ = comparison(tmp_path)
    assert Path(path).resolve() == tmp_path / "comparison.png"
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert title == "ProMP on MetaPointEnv, seeds 1, 2"
    assert list(panels) == ["return before adaptation", "return after adaptation"]
    assert labels(panels) == ["inner_lr 0.1 (2 runs)", "inner_lr 0.2"]
    (x1, y1), (x2, y2) = panels["return after adaptation"]["inner_lr 0.1 (2 runs)"]
    np.testing.assert_array_equal(x1, [0, 1, 2])
    np.testing.assert_array_equal(y1, [4, 5, 6])
    np.testing.assert_array_equal(x2, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(y2, [4, 7, 10, 13, 16])
    (_, before), = panels["return before adaptation"]["inner_lr 0.2"]
    np.testing.assert_array_equal(before, [3, 4, 5])


@pytest.mark.parametrize("x, factor, expected, label", [
    ("iterations", 1.0, [0, 1, 2], "iteration"),
    ("steps", 1.0, [1, 2, 3], "environment steps, all tasks"),
    ("time", 100.0, [2 / 60, 102 / 60, 202 / 60], "time, minutes"),
])
def test_x_axis(x, factor, expected, label, tmp_path, comparison):
    write_run(tmp_path / "a", factor=factor)
    panels, _, _, how = comparison(tmp_path / "a", "--x", x)
    np.testing.assert_allclose(panels["return after adaptation"]["promp, MetaPointEnv"][0][0], expected)
    assert how == {"x_label": label, "is_count": x != "time", "smooth": 1}


def test_columns_and_smoothing(tmp_path, comparison):
    write_run(tmp_path / "a")
    panels, path, _, how = comparison(tmp_path / "a", "--columns", "Time,AdaptationGain",
                                          "--smooth", 3, "--output", tmp_path / "mine.png")
    assert list(panels) == ["Time", "AdaptationGain"] and how["smooth"] == 3
    np.testing.assert_array_equal(panels["AdaptationGain"]["promp, MetaPointEnv"][0][1], [5, 6, 7])
    assert path == str(tmp_path / "mine.png") and (tmp_path / "mine.png").exists()


def test_single_task_runs_and_meta_runs_in_one_figure(tmp_path, comparison, capsys):
    """A search run, whose rows have one return, appears next to a meta-run in all panels for which it has numbers."""
    write_run(tmp_path / "cem", columns=("Epoch", "Itr", "n_timesteps", "AverageReturn"), algorithm="cem")
    (tmp_path / "cem" / "progress.csv").write_text("Epoch,Itr,n_timesteps,AverageReturn\n0,19,5,1.0\n1,39,9,2.0\n")
    panels, *_ = comparison(tmp_path / "cem")
    assert panels["return"]["cem, MetaPointEnv"][0][0].tolist() == [0, 1]  # epochs, not candidates
    assert list(panels) == ["return"] and labels(panels) == ["cem, MetaPointEnv"]
    write_run(tmp_path / "meta")
    panels, *_ = comparison(tmp_path, "--x", "steps")
    assert {quantity: list(curves) for quantity, curves in panels.items()} == {
        "return": ["cem"], "return before adaptation": ["promp"], "return after adaptation": ["promp"]}
    panels, *_ = comparison(tmp_path, "--columns", "AverageReturn", "--overwrite")
    assert labels(panels) == ["cem"]
    skipped = f"Skipping {tmp_path / 'meta'} in the panel AverageReturn: the run has no such column"
    assert skipped in capsys.readouterr().err


def test_runs_without_rows_and_unreadable_runs_are_skipped(tmp_path, comparison, capsys):
    write_run(tmp_path / "a")
    write_run(tmp_path / "failed", rows=0)
    (write_run(tmp_path / "broken") / "params.json").write_text("{")
    panels, *_ = comparison(tmp_path)
    assert labels(panels) == ["promp, MetaPointEnv"]
    broken, failed = capsys.readouterr().err.splitlines()
    assert broken.startswith(f"Skipping {tmp_path / 'broken'}: could not read {tmp_path / 'broken'}/params.json")
    assert failed.startswith(f"Skipping {tmp_path / 'failed'}: run_folder: expected at least one row")


def test_runs_of_a_custom_script(tmp_path, comparison):
    write_run(tmp_path / "mine", algorithm=None)
    panels, _, title, _ = comparison(tmp_path)
    assert labels(panels) == [str(tmp_path / "mine")] and title == "mine"
    write_run(tmp_path / "other", algorithm=None)
    assert comparison(tmp_path)[2] == "Comparison of runs"


def test_figure_is_overwritten_only_on_request(tmp_path, capsys):
    folder = write_run(tmp_path / "a")
    assert main(["plot", str(folder)]) == 0
    picture = folder / "comparison.png"
    picture.write_text("mine")
    capsys.readouterr()
    message = mistake(capsys, folder)
    assert "output: expected a file that does not exist, got" in message and "--overwrite" in message
    assert picture.read_text() == "mine"
    assert main(["plot", str(folder), "--overwrite"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("arguments, message", [
    (["nowhere"], "run_folder: expected a run folder or a folder that contains runs, got nowhere, which does not"),
    (["empty"], "expected at least one row in empty/progress.csv, got none"),
    (["a", "--columns", "AdaptationGian"], "got 'AdaptationGian'; did you mean 'AdaptationGain'"),
    (["bare", "--columns", "Step"], "expected a column 'Itr', got only Step"),
    (["a", "--smooth", "0"], "--smooth: expected an integer of at least 1, got 0"),
    (["a", "--num_steps", "2"], "--num_steps: expected no value without --trajectories, got 2"),
    (["a", "--trajectories", "--x", "time"], "--x: expected no value with --trajectories, got time"),
    (["broken"], "could not read broken/params.json"),
    (["a", "cem", "--trajectories"], "--trajectories: expected one run, got 2: a, cem"),
    (["a", "cem", "empty", "bare", "broken", "--trajectories"], "expected one run, got 5: a, cem, empty, bare, [.]{3}"),
    (["cem", "--trajectories"], "the folder cem contains no snapshot"),
])
def test_invalid_arguments_are_reported(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "a")
    write_run(tmp_path / "cem", algorithm="cem")
    write_run(tmp_path / "empty", rows=0)
    write_run(tmp_path / "bare", columns=("Step",))
    (write_run(tmp_path / "broken") / "params.json").write_text("{")
    (tmp_path / "without runs").mkdir()
    assert re.search(f"^meta-policy-search plot: error: .*({message})", mistake(capsys, *arguments), flags=re.MULTILINE)
    assert not list(tmp_path.rglob("*.png"))


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A run in a point environment; tests must not change it."""
    return commands.train(maml_trpo, tmp_path_factory.mktemp("runs") / "point", "--env", "MetaPointEnvCorner")


@pytest.mark.thorough
def test_trajectories_of_a_run(run_folder, tmp_path, monkeypatch):
    """For two tasks and two steps, the figure shows the paths whose returns the evaluation reports."""
    from meta_policy_search.evaluation import recording

    drawn = []
    monkeypatch.setattr(recording, "plot_trajectories",
                        lambda *args: drawn.append(args) or plotting.plot_trajectories(*args))
    output = tmp_path / "paths.png"
    assert main(["plot", str(run_folder), "--trajectories", "--tasks", "[[2, 2], [-2, 2]]", "--num_steps", "2",
                 "--seed", "3", "--num_paths", "1", "--rollouts", "3", "--max_path_length", "5", "--output",
                 str(output)]) == 0
    ((tasks, _, title, names, _),) = drawn
    assert title == f"Paths of {run_folder}, iteration 1" and names == ["task 1: (2, 2)", "task 2: (-2, 2)"]
    expected = mps.load_evaluator(str(run_folder), rollouts_per_meta_task=3, max_path_length=5).evaluate(
        [[2, 2], [-2, 2]], num_steps=2, seeds=[3])
    np.testing.assert_array_equal([returns for *_, returns in tasks], expected.returns[0])
    for (scenery, trajectories, _), goal in zip(tasks, ([2, 2], [-2, 2]), strict=True):
        np.testing.assert_array_equal(scenery.goal, goal)
        assert [[path.shape for path in paths] for paths in trajectories] == [[(6, 2)]] * 3
    assert output.read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
def test_environments_without_a_plane_are_refused_before_sampling(run_folder, tmp_path, monkeypatch, capsys):
    from meta_policy_search.envs import make_env

    evaluator = mps.load_evaluator(str(run_folder))
    evaluator.env = make_env("MetaBernoulliBanditEnv")
    monkeypatch.setattr(mps, "load_evaluator", lambda *arguments: evaluator)
    monkeypatch.setattr(type(evaluator), "record", lambda *arguments: pytest.fail("it was sampled"))
    message = mistake(capsys, run_folder, "--trajectories", "--output", tmp_path / "a.png")
    assert "expected a planar environment" in message and "got MetaBernoulliBanditEnv" in message
