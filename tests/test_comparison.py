"""Tests `compare`: runs of several algorithms and seeds in processes, their table and their plot."""
import re
from pathlib import Path

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search import comparison as comparison_module
from meta_policy_search import parallel_runs
from meta_policy_search.run import check_settings
from tests.helpers.runs import write_rows
from tests.test_resume_check import Bounded

TINY = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 5, "hidden_sizes": (4,)}


@pytest.fixture(scope="module")
def local_classes():
    """An environment and an algorithm that no module contains, as in a notebook."""
    class Corner(mps.MetaPointEnvCorner):
        pass

    class Slow(mps.VPGMAML):
        pass

    return Corner, Slow


@pytest.fixture(scope="module")
def arguments(tmp_path_factory, local_classes):
    env_class, algo_class = local_classes
    return {"env": env_class(reward_type="dense"), "algorithms": [algo_class], "seeds": [7], "n_itr": 1,
            "folder": tmp_path_factory.mktemp("comparison") / "a", "settings_of": {"Slow": {"learning_rate": 1e-5}},
            "inner_lr": 0.2, **TINY}


@pytest.fixture(scope="module")
def comparison(arguments):
    return mps.compare(**arguments)


@pytest.mark.thorough
def test_classes_and_settings_reach_the_processes(comparison, local_classes):
    (folder,) = comparison.runs["Slow"]
    trainer = mps.load_run(folder).trainer
    assert (type(trainer.env.unwrapped), type(trainer.algo)) == local_classes
    assert trainer.env.unwrapped.reward_type == "dense"
    assert (trainer.algo.inner_lr, trainer.algo.learning_rate) == (0.2, 1e-5)


def test_second_call_skips_complete_runs(comparison, arguments, capsys, monkeypatch):
    monkeypatch.setattr(parallel_runs, "ProcessPoolExecutor", None)
    assert mps.compare(**arguments, resume=True).runs == comparison.runs
    assert capsys.readouterr().out.startswith("1 of 1 runs complete; 0 at a time")


def test_evaluation_in_given_tasks_has_the_returns_of_the_runs(comparison):
    """Given a run, then the table contains its returns in the tasks, here without the noise of the policy."""
    (folder,), tasks = comparison.runs["Slow"], [(2.0, 2.0), (-2.0, 2.0)]
    _, after = mps.load_run(folder).evaluate(tasks, deterministic=True).mean_return.mean
    text = str(comparison.evaluate(tasks, deterministic=True))
    assert "Means over 2 tasks\n" in text and text.splitlines()[-1].split()[1] == f"{after:.2f}"
    with pytest.raises(ValueError, match="because Corner has no fixed tasks, got 'test'"):
        comparison.evaluate("test")


@pytest.mark.thorough
def test_run_equals_that_of_train(comparison, arguments, tmp_path):
    settings = {key: arguments[key] for key in ("env", "n_itr", "inner_lr", *TINY)}
    alone = mps.train(algo="vpg_maml", seed=7, learning_rate=1e-5, dump_path=tmp_path / "run", **settings).folder
    alone, compared = (mps.plotting.read_progress(folder) for folder in (alone, *comparison.runs["Slow"]))
    for name in ("AdaptationGain", "Step_1-AverageReturn"):
        np.testing.assert_array_equal(compared[name], alone[name])


@pytest.mark.parametrize("changes, message", [
    ({"inner_lr": 0.3}, "different settings: inner_lr 0.2 .run., 0.3"),
    ({"settings_of": {"Slow": {"learning_rate": 1e-4}}}, "different settings: learning_rate 1e-05 .run., 0.0001"),
    ({"settings_of": {}}, "different settings: learning_rate 1e-05 .run., 0.001"),
    ({"env": mps.MetaPointEnvCorner(reward_type="dense")}, "different settings: env 'Corner' .run., 'MetaPointEnvCorn"),
    ({"env arguments": "sparse"}, "different settings: env_kwargs {'reward_type': 'dense'} .run., {} .now."),
    ({"folder": None}, "folder: expected the folder of the runs, because resume=True was given, got None"),
    ({"resume": False}, "already contains runs. Continue them with resume=True .--resume on the command line., or"),
])
def test_changed_settings_are_refused(changes, message, comparison, arguments, local_classes):
    """A folder never mixes runs of different settings."""
    if reward_type := changes.pop("env arguments", None):
        changes = {"env": local_classes[0](reward_type=reward_type)}
    with pytest.raises(ValueError, match=message):
        mps.compare(**{**arguments, "resume": True, **changes})


# Table and plot of runs written by hand ----------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path):
    """Three complete runs of ProMP; one complete and one incomplete run of RL2; no complete run of TRPO-MAML.

    In row `i` of the ProMP run with seed `s`, the return is `s` before and `10 s` after adaptation.
    """
    def write(name, rows, columns):
        write_rows(tmp_path / name, {"n_timesteps": [100 * (i + 1) for i in range(rows)],
                                     **{column: [value] * rows for column, value in columns.items()}})
        return str(tmp_path / name), 12

    meta = [write(f"promp{seed}", 12, {"Step_0-AverageReturn": seed, "Step_1-AverageReturn": 10 * seed,
                                             "WorstQuarterReturn": 5})
            for seed in (1, 2, 3)]
    trials = {"Step_0-AverageReturn": 7, "Step_0-FirstEpisodeReturn": 5, "Step_0-LastEpisodeReturn": 2}
    return {"promp": dict(meta), "rl2": dict([write("rl2_1", 12, trials), write("rl2_2", 3, trials)]),
            "trpo_maml": dict([write("trpo", 1, {"Step_0-AverageReturn": 0, "Step_1-AverageReturn": 0})])}


def test_table_has_means_and_intervals_over_seeds(runs):
    """Given three seeds that return 10, 20 and 30, then s = 10, and the half width is 4.303 s / sqrt(3) = 24.84.

    RL2 has one complete run, which is paired with the first seed of ProMP.
    """
    comparison = mps.Comparison("Corner, seeds 1, 2, 3", runs)
    assert comparison.runs == {"promp": list(runs["promp"]), "rl2": list(runs["rl2"])[:1],
                               "trpo_maml": []}
    title, source, *notes, header, promp, rl2, trpo = str(comparison).splitlines()
    rows = [promp, rl2, trpo]
    assert source == "Means over the last quarter of the iterations (at most ten)"
    assert [note.partition(":")[0] for note in notes] == ["worst quarter", "gain", "difference"]
    assert title.endswith("return after adaptation (+-: 95% intervals over seeds)")
    assert [re.split(r"  +", row.strip()) for row in rows] == [
        ["ProMP", "20.00 +- 24.84", "5.00 +- 0.00", "+18.00 +- 22.36 (+9.00)", "1,200", "3 of 3"],
        ["RL2", "2.00", "-3.00 (-3.00)", "-8.00", "1,200", "1 of 2"], ["TRPO-MAML", "0 of 1"]]
    one = mps.Comparison("Corner", {"promp": dict([*runs["promp"].items()][:1])})
    assert "(one seed: no intervals)" in str(one) and "+-" not in str(one)


def test_single_task_runs_have_no_gain_and_no_difference_from_runs_that_adapt(runs, tmp_path):
    write_rows(tmp_path, {"n_timesteps": [100], "AverageReturn": [5.0]})
    cem = {"cem": {str(tmp_path): 1}}
    assert str(mps.Comparison("Corner", cem)).startswith("Corner, return (")
    for group in (cem, {"promp": runs["promp"], **cem}):
        *_, row = str(mps.Comparison("Corner", group)).splitlines()
        assert re.split(r"  +", row.strip()) == ["CEM", "5.00", "100", "1 of 1"]


def test_differences_are_paired_by_seed(runs, tmp_path):
    """Given a second algorithm with the same runs in another order, then the differences are 0, 10 and -10."""
    a, b, c = runs["promp"].items()
    *_, row = str(mps.Comparison("Corner", {"first": dict([a, b, c]), "second": dict([a, c, b])})).splitlines()
    assert "+0.00 +- 24.84" in row


def test_plot_shows_complete_runs_over_environment_steps(runs, tmp_path):
    figure = mps.Comparison("Corner", runs).plot(tmp_path / "a.png")
    before, after = figure.axes
    assert (before.get_ylabel(), after.get_ylabel()) == ("return before adaptation", "return after adaptation")
    promp, rl2 = [line for line in after.lines if line.get_alpha() is None]
    np.testing.assert_array_equal(promp.get_xydata(), [[100 * i, 20] for i in range(1, 13)])
    np.testing.assert_array_equal(rl2.get_ydata(), [2] * 12)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ProMP", "RL2"]
    assert after.get_xlabel() == "environment steps, all tasks" and (tmp_path / "a.png").exists()
    with pytest.raises(ValueError, match="plot: expected at least one complete run, got none"):
        mps.Comparison("Corner", {"trpo_maml": runs["trpo_maml"]}).plot()


# Arguments ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def started(monkeypatch):
    """The runs that would be trained, by name; they are interrupted at once."""
    runs = {}
    monkeypatch.setattr(comparison_module, "train_all", lambda output, new, *how: (runs.update(new) or [], True))
    return runs


def test_settings_of_an_own_policy_reach_its_runs(started, tmp_path):
    mps.compare("MetaPointEnvCorner", ["promp", "vpg_maml"], [1], folder=tmp_path, bound=0.5,
                settings_of={"promp": {"policy": Bounded}})
    assert started["promp,seed=1"]["bound"] == 0.5 and "bound" not in started["vpg_maml,seed=1"]
    check_settings("promp", {"policy": "tests.test_resume_check:Bounded", "bound": 0.5})


def test_nan_is_shown(runs, tmp_path):
    """The lowest gain is NaN if a gain is NaN, in any order of the runs."""
    rows = "n_timesteps,Step_0-AverageReturn,Step_1-AverageReturn\n" + "100,1,nan\n" * 12
    a, b, c = runs["promp"].items()
    Path(b[0], "progress.csv").write_text(rows)
    for order in ([a, b, c], [b, a, c]):
        assert "+nan (+nan)" in str(mps.Comparison("Corner", {"promp": dict(order)}))


def test_interrupted_comparison_says_how_to_continue(started, tmp_path, capsys):
    comparison = mps.compare("MetaPointEnvCorner", ["promp", "rl2"], 2, folder=tmp_path, hidden_size=8,
                             settings_of={"promp": {"inner_lr": 0.3}})
    assert comparison.runs == {"promp": [], "rl2": []}
    assert list(started) == ["promp,seed=1", "rl2,seed=1", "promp,seed=2", "rl2,seed=2"]
    assert [run.get("hidden_size") for run in started.values()] == [None, 8] * 2
    assert [run.get("inner_lr") for run in started.values()] == [0.3, None] * 2
    printed = capsys.readouterr().out
    assert f"repeat the call with folder='{tmp_path}' and resume=True" in printed
    assert re.findall(".*ignores it", printed) == ["hidden_size: not a setting of promp, which ignores it"]
    assert comparison.was_interrupted and not comparison.is_complete


@pytest.mark.parametrize("arguments, error, message", [
    ({"algorithms": "promp"}, TypeError, "algorithms: expected a list of names or classes, got 'promp'"),
    ({"algorithms": ["promp", "ProMP"]}, ValueError, "algorithms: expected at least one, without duplicates, got ['pr"),
    ({"algorithms": []}, ValueError, "algorithms: expected at least one, without duplicates, got []"),
    ({"seeds": [1, 1]}, ValueError, "seeds: expected at least one, without duplicates, got [1, 1]"),
    ({"seeds": 0}, ValueError, "seeds: expected an integer of at least 1, got 0"),
    ({"inner_lrr": 1.0}, TypeError, "unknown setting 'inner_lrr' for any of the algorithms; did you mean 'inner_lr'?"),
    ({"settings_of": {"rl2": {}}}, ValueError, "settings_of: expected names among promp, got 'rl2'"),
    ({"seed": 5}, ValueError, "seed: expected no value for a setting that varies (grid of sweep; seeds"),
    ({"dump_path": "a"}, TypeError, "for any of the algorithms; use folder"),
    ({"callbacks": []}, TypeError, "for any of the algorithms; use mps.train, which takes callbacks"),
    ({"settings_of": {"promp": {"seed": 9}}}, ValueError, "settings_of: expected neither 'env' nor 'seed'"),
    ({"settings_of": ["promp"]}, TypeError, "settings_of: expected a dict of dicts, got ['promp']"),
    ({"seeds": 3.0}, TypeError, "seeds: expected a number of seeds or a list of seeds, got 3.0"),
    ({"n_itr": 0}, ValueError, "n_itr: expected an integer of at least 1, got 0"),
    ({"resume": "yes"}, TypeError, "resume: expected True or False, got 'yes'"),
    ({"algorithms": ["trpo_maml"], "learning_rate": 0.1}, TypeError, "; use step_size (trust region"),
    ({"algorithms": ["promp", "trpo_maml"], "lr": 0.1}, TypeError, "; use learning_rate or step_size (trust region"),
    ({"policy": "MlpPolicy"}, ValueError, "policy: expected MODULE:NAME, such as my_module:MyClass or"),
])
def test_invalid_arguments_create_no_folder(arguments, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as raised:
        mps.compare(**{"env": "MetaPointEnvCorner", "algorithms": ["promp"], **arguments})
    assert message in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_names_of_environments_are_normalized(started, tmp_path):
    mps.register_env("MyCorner", mps.MetaPointEnvCorner)
    mps.compare("my_corner", ["promp"], seeds=np.arange(1, 3), folder=tmp_path)
    assert [run["env"] for run in started.values()] == ["MyCorner"] * 2


# Sweeps ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def swept(started, tmp_path):
    """Returns the runs that `sweep` would train, by name."""
    def runs_of(*arguments, **settings):
        comparison = mps.sweep(*arguments, folder=tmp_path, **settings)
        assert str(comparison).count("0 of") == len(comparison.runs)
        return comparison, started

    return runs_of


def test_sweep_groups_runs_by_everything_but_the_seed(swept, tmp_path):
    comparison, found = swept("MetaPointEnvCorner", "promp", {"seed": [3, 4], "inner_lr": [0.1, 0.2]}, n_itr=5)
    assert list(found) == ["inner_lr=0.1,seed=3", "inner_lr=0.2,seed=3", "inner_lr=0.1,seed=4", "inner_lr=0.2,seed=4"]
    assert list(comparison.runs) == ["inner_lr=0.1", "inner_lr=0.2"]
    assert found["inner_lr=0.2,seed=3"] == {"env": "MetaPointEnvCorner", "algo": "promp", "n_itr": 5, "seed": 3,
                                            "inner_lr": 0.2}
    assert comparison.title == "MetaPointEnvCorner, seeds 3, 4"
    header, *rows = (tmp_path / "summary.csv").read_text().splitlines()
    assert header == "run,seed,inner_lr,status,iterations" and rows[0] == '"inner_lr=0.1,seed=3",3,0.1,not done,0'


def test_sweep_over_algorithms_and_environments(swept):
    comparison, found = swept(None, None, {"algo": ["promp", mps.VPGMAML], "env": ["MetaPointEnv"]}, num_ppo_steps=3)
    assert list(found) == ["promp,env=MetaPointEnv", "VPGMAML,env=MetaPointEnv"] == list(comparison.runs)
    assert ["num_ppo_steps" in run for run in found.values()] == [True, False]


def test_long_names_of_runs_are_shortened(swept):
    """They have at most 100 bytes and differ, although their first 100 bytes are equal."""
    sizes = [[1] * 50, [1] * 50 + [2]]
    _, found = swept("MetaPointEnvCorner", "promp", {"hidden_sizes": sizes, "seed": [1]})
    assert len(found) == 2 and {len(name) for name in found} == {100}


@pytest.mark.parametrize("arguments, error, message", [
    (("MetaPointEnv", None, {}), TypeError, "algo: expected a subclass of MetaAlgo or RLAlgorithm, or its name, got"),
    (("MetaPointEnv", "promp", {"seed": 3}), ValueError, "grid, seed: expected a list of at least one value, got 3"),
    (("MetaPointEnv", "promp", {"sead": [3]}), TypeError, "unknown setting 'sead' for ProMP; did you mean 'seed'?"),
])
def test_invalid_grids_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        mps.sweep(*arguments)
