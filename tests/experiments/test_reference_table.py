"""The reference table: configurations with equal effort, successive halving, stored data and the page."""
import collections

import numpy as np
import pytest

from experiments import reference_table
from experiments.reproduction import entries, figures, pages, reference, reference_page
from experiments.reproduction.reference import METHODS, SEEDS, WORLDS
from meta_policy_search.run import check_settings


@pytest.mark.parametrize("world", WORLDS)
def test_configurations_are_valid_and_contain_each_value_equally_often(world):
    for method, searched in METHODS.items():
        found = reference.configurations(world, method)
        assert found == reference.configurations(world, method) and len(found) == 8
        for name, values in searched.space.items():
            counts = collections.Counter(configuration[name] for configuration in found)
            assert set(counts) == set(values) and max(counts.values()) - min(counts.values()) <= 1
        settings = reference.train_settings(world, method, 0, 1.0)
        check_settings(searched.algo, settings)
        # The settings replace all published settings of a training script.
        assert entries.script_settings(searched.algo, settings) == {"algo": searched.algo, **settings}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("share", [0.25, 1.0])
def test_trainings_have_equal_environment_steps(world, share):
    for method in METHODS.keys() - {"random"}:
        for configuration in range(8):
            found = reference.train_settings(world, method, configuration, share)
            collected = found.get("episodes_per_trial", found.get("num_inner_grad_steps", 1) + 1)
            steps = collected * found["n_itr"] * found["meta_batch_size"] * found["rollouts_per_meta_task"]
            assert steps * found["max_path_length"] == pytest.approx(share * 4e6, rel=0.05), (method, configuration)


def test_protocol_states_the_numbers_of_the_program():
    text = (entries.HERE / "protocol.md").read_text(encoding="utf-8")
    for name, world in WORLDS.items():
        assert f"| {name} | {world.stated_return:g} | {world.failed_below:g} |" in text
        assert world.million_steps == 4.0
    assert (reference.SHARES, reference.TUNING_SEEDS, SEEDS) == (
        ((0.25, 8), (0.5, 4), (1.0, 2)), (101, 102), tuple(range(201, 211)))
    used = {seed for entry in entries.ENTRIES.values() for method in entry.methods for seed in method.seeds}
    assert not used & {*SEEDS, *reference.TUNING_SEEDS}
    assert reference.TUNING_TASKS != reference.TEST_TASKS


def test_returns_of_further_steps_on_the_page_on_problems_come_from_the_data():
    runs = reference.final_runs("corner")["trpo_maml"]
    cells = [pages.cell(entries.over_seeds_and_tasks(entries.differences(runs, f"after_{step}", runs, "after_1")))
             for step in (2, 3)]
    assert f"({', '.join(cells)};" in (pages.DOCS / "not_learning.rst").read_text(encoding="utf-8")


def test_second_step_of_the_one_policy_in_the_readme_comes_from_the_data():
    readme = " ".join((pages.DOCS.parent / "README.md").read_text(encoding="utf-8").split())
    for world in ("navigation", "half_cheetah_velocity"):
        runs = reference.final_runs(world)
        found = entries.differences(runs["trpo_maml"], "after_1", runs["all_tasks"], "after_2")
        p = entries.p_value(found)
        difference = pages.cell(entries.over_seeds_and_tasks(found), "+")
        assert (f"({difference}; {pages.p_text(p)}; corrected for four worlds: "
                f"{pages.p_text(min(4 * p, 1.0))})") in readme


def test_lost_adaptation_of_promp_in_the_notes_comes_from_the_data():
    runs, world = reference.final_runs("half_cheetah_direction")["promp"].values(), WORLDS["half_cheetah_direction"]
    assert all(run["steps_to_return"][0] < 4e6 for run in runs)
    low, middle, high = sorted(entries.mean_of(run, "after_1") for run in runs)[:3]
    assert f"in the test ({low:.1f}, {middle:.0f} and {high:.0f})" in world.notes and high < world.stated_return


def test_successive_halving_keeps_the_configurations_with_the_highest_scores(tmp_path, monkeypatch):
    """Configuration 5 is the best until half of the steps, 2 at the end; 7 fails."""
    calls = []

    def train(entry, chosen, output, processes, test_seed):
        assert entry.rollouts == 20 and entry.test_tasks == 40 and all(method in entry.methods for method, _ in chosen)
        calls.append(([method.name for method in entry.methods], chosen[0][0].settings["n_itr"],
                      sorted({seed for _, seed in chosen}), test_seed))
        scores = {"promp,5": 10.0, "promp,2": 9.0 + len(calls), "promp,1": 3.0, "promp,0": 2.0, "promp,7": 20.0}
        runs = [(method.name, seed) for method, seed in chosen if (method.name, seed) != ("promp,7", 102)]
        return {run: columns_of(scores.get(run[0], 1.0) - 0.5) for run in runs}, {run: PROGRESS for run in runs}

    monkeypatch.setattr(reference_table.reproduce, "train", train)
    search = reference_table.Search("navigation", "promp", tmp_path, 1, smoke=False)
    (chosen, is_complete), runs = search.run(), search.runs
    numbers, n_itr, seeds, test_seeds = zip(*calls, strict=True)
    assert list(map(len, numbers)) == [8, 4, 2, 1] and numbers[1:] == (
        ["promp,2", "promp,5", "promp,1", "promp,0"], ["promp,2", "promp,5"], ["promp,2"])
    assert seeds == ([101, 102],) * 3 + (list(SEEDS),) and test_seeds == (2, 2, 2, 1)
    assert n_itr[0] < n_itr[1] < n_itr[2] == n_itr[3]
    assert chosen == 2 and is_complete and len(runs) == 2 * (8 + 4 + 2) - 1 + 10
    assert ("promp,7,0.25", 101) in runs and runs["promp", 201]["configuration"].tolist() == [2.0, 2.0]
    assert runs["promp", 201]["seconds_to_return"].tolist() == [15.0, 15.0]


@pytest.mark.parametrize("complete_phases", [1, 2, 3])
def test_interrupted_search_continues_with_the_tests_of_complete_phases(tmp_path, monkeypatch, complete_phases):
    """A policy that was trained further can no longer be tested after a quarter of the steps."""
    calls, stops = [], False

    def train(entry, chosen, output, processes, test_seed):
        calls.append([(method.name, method.settings["n_itr"], seed) for method, seed in chosen])
        if stops and len(calls) == complete_phases + 1:
            raise KeyboardInterrupt
        output.mkdir(exist_ok=True)
        runs = [(method.name, seed) for method, seed in chosen]
        return {(name, seed): columns_of(seed / int(f"{name[-1]}7")) for name, seed in runs}, {
            run: PROGRESS for run in runs}

    monkeypatch.setattr(reference_table.reproduce, "train", train)

    def search(name):
        return reference_table.Search("navigation", "promp", tmp_path / name, 1, smoke=False)

    expected, phases = search("uninterrupted").run(), calls[:]
    calls.clear()
    stops = True
    with pytest.raises(KeyboardInterrupt):
        search("continued").run()
    stops = False
    assert search("continued").run() == expected
    assert calls == phases[:complete_phases + 1] + phases[complete_phases:]
    assert len({(tmp_path / name / "reference.csv").read_text() for name in ("continued", "uninterrupted")}) == 1


def test_failed_final_training_is_reported_and_the_other_seeds_are_stored(tmp_path, monkeypatch):
    def train(entry, chosen, output, processes, test_seed):
        output.mkdir(exist_ok=True)
        runs = [(method.name, seed) for method, seed in chosen if seed != 203]
        return {run: columns_of(1.0) for run in runs}, {run: PROGRESS for run in runs}

    monkeypatch.setattr(reference_table.reproduce, "train", train)
    monkeypatch.setattr(entries, "DATA", tmp_path)
    assert reference_table.main(["navigation", "--methods", "promp", "--output", str(tmp_path)]) == 1
    stored = entries.read_runs(tmp_path / "navigation" / "reference.csv")
    assert {seed for method, seed in stored if method == "promp"} == {*SEEDS} - {203}


PROGRESS = {"n_timesteps": 100.0 * np.arange(1, 21), "Time": np.arange(1.0, 21.0),
            "Step_0-AverageReturn": np.full(20, -40.0),
            "Step_1-AverageReturn": np.array([-40.0] * 5 + [0.0] + [-40.0] * 4 + [-14.0] * 10)}


def columns_of(mean, first=-40.0):
    """The test of a run: the returns after 0 to 3 steps in each of two tasks."""
    tasks = np.arange(2.0)
    return {"task": tasks, "after_0": np.full(2, first), "after_1": mean + tasks, "after_2": np.full(2, mean),
            "after_3": np.full(2, mean)}


def runs_of(method, returns):
    """The final runs of a method: for each seed, the return after one step in each of two tasks."""
    costs = [(4e6, 60.0, 1e6, 20.0) if mean > -15.0 else (4e6, 60.0, np.nan, np.nan) for mean in returns]
    names = ("n_timesteps", "seconds", "steps_to_return", "seconds_to_return")
    return {(method, seed): {**columns_of(mean), "configuration": np.full(2, 3.0), **{
        name: np.full(2, value) for name, value in zip(names, of_run, strict=True)}}
        for seed, mean, of_run in zip(SEEDS, returns, costs, strict=True)}


def test_page_counts_failures_and_names_only_simultaneous_differences(tmp_path, monkeypatch):
    monkeypatch.setattr(entries, "DATA", tmp_path)
    monkeypatch.setattr(figures, "FIGURES", tmp_path)
    noise = np.random.default_rng(1).normal(size=10)
    found = {"trpo_maml": -12.0 + 0.1 * noise, "all_tasks": np.where(np.arange(10) < 2, -30.0, -20.0 - 0.1 * noise),
             "promp": -12.0 - 0.1 * noise}
    for method, returns in found.items():
        reference_table.store(reference.data_path("navigation"), method, runs_of(method, returns))
    reference_table.store(reference.data_path("navigation"), "promp", runs_of("promp", found["promp"]))  # replaced
    page = reference_page.page()
    assert "| one policy for all tasks (TRPO) | 10 | 2 | -40.0 ± 0.0 |" in page
    assert "| ProMP | 10 | 0 | -40.0 ± 0.0 |" in page and "| `rollouts_per_meta_task=" in page
    assert "one policy for all tasks, both after one gradient step (step sizes below): +" in page
    (row,) = [line for line in page.splitlines() if line.startswith("| TRPO-MAML | one policy")]
    assert row.startswith("| TRPO-MAML | one policy for all tasks (TRPO) | 1 (1 to 1) | `rollouts_per_meta_task=")
    assert row.endswith("`inner_lr=0.1` (-) |")  # the smallest searched step
    reference_page.draw("navigation")
    assert "dots: test of each seed" in (tmp_path / "reference_navigation.svg").read_text()


def test_page_counts_seeds_that_failed_in_one_of_few_tasks(tmp_path, monkeypatch):
    """Two corners return `mean` and `mean + 1`: both together fail with three seeds, the lower one with six."""
    monkeypatch.setattr(entries, "DATA", tmp_path)
    runs = runs_of("promp", [0.6] * 4 + [0.2] * 3 + [-0.9] * 3)
    reference_table.store(reference.data_path("corner"), "promp", {
        run: {**columns, "goal": np.arange(2.0)} for run, columns in runs.items()})
    page = reference_page.page()
    assert "| ProMP | 10 | 3 |" in page and "| method | seeds that failed in a task |" in page
    assert "| ProMP | 6 | 1 (1 to 1) | `" in page


@pytest.mark.parametrize("million_steps, expected", [
    ([1.0, 3.0, 2.0], "2 (1 to 3)"), ([1.0, 2.0, 3.0, 4.0], "2.5 (1 to 4)"),
    ([np.nan, 0.5, 1.0], "1 (0.5 to not reached)"), ([np.nan, 1.0], ""), ([np.nan, np.nan], "")])
def test_steps_to_the_stated_return_have_a_median_and_a_range(million_steps, expected):
    runs = {seed: {"steps_to_return": np.array([1e6 * value])} for seed, value in enumerate(million_steps)}
    assert reference_page._million_steps(runs) == expected


def test_stated_return_is_reached_by_the_mean_of_five_iterations():
    """The last of these iterations counts; a single return above the stated one does not."""
    assert reference.of_training("navigation", PROGRESS) == {
        "n_timesteps": 2000.0, "seconds": 20.0, "steps_to_return": 1500.0, "seconds_to_return": 15.0}
    of_cheetah = reference.of_training("half_cheetah_direction", PROGRESS)
    assert np.isnan([of_cheetah["steps_to_return"], of_cheetah["seconds_to_return"]]).all()


def test_updates_of_a_training_are_stored_as_means():
    columns = reference.of_training("navigation", {**PROGRESS, "KLOuter": np.linspace(0.0, 2.0, 20)})
    np.testing.assert_allclose(columns["KLOuter"], 1.0)


@pytest.mark.thorough
@pytest.mark.slow
def test_smoke_run_tunes_and_tests(tmp_path):
    assert reference_table.main(["navigation", "--smoke", "--methods", "rl2", "--output", str(tmp_path)]) == 0
    runs = entries.read_runs(tmp_path / "navigation-smoke" / "reference.csv")
    assert len(runs) == 8 + 4 + 2 + 1 and ("rl2", SEEDS[0]) in runs
    assert all({"after_3", "n_timesteps", "configuration"} <= columns.keys() for columns in runs.values())
