"""The reference table: configurations with equal effort, successive halving, stored data and the page."""
import collections

import numpy as np
import pytest

from experiments import reference_table
from experiments.reproduction import entries, figures, reference, reference_page
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
        check_settings(settings.pop("algo"), settings)


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


def test_successive_halving_keeps_the_configurations_with_the_highest_scores(tmp_path, monkeypatch):
    """Configuration 5 is the best until half of the steps, 2 at the end; 7 fails."""
    calls = []

    def train(self, phase, left, seeds, share):
        calls.append((phase, sorted(left), len(seeds), share))
        scores = {5: 10.0, 2: 9.0 + share, 1: 3.0, 0: 2.0, 7: -np.inf}
        return [(configuration, scores.get(configuration, 1.0) + (configuration == 2 and share == 1.0), [(seed,)])
                for configuration in left for seed in seeds]

    monkeypatch.setattr(reference_table.Search, "train", train)
    search = reference_table.Search("navigation", "promp", tmp_path, 1, smoke=False)
    rows = search.run()
    assert calls == [("tune", list(range(8)), 2, 0.25), ("tune", [0, 1, 2, 5], 2, 0.5), ("tune", [2, 5], 2, 1.0),
                     ("final", [2], 10, 1.0)]
    assert search.chosen == 2 and len(rows) == 2 * (8 + 4 + 2) + 10


def rows_of(method, returns, configuration=3):
    """The final rows of a method: for each seed, the return after one step in each of two tasks."""
    return [(method, "final", configuration, seed, 1.0, "4e6", "60", *(("1e6", "20") if mean > -15.0 else ("", "")),
             task, "", -40.0, mean + task, mean, mean) for seed, mean in zip(SEEDS, returns, strict=True)
            for task in range(2)]


def test_page_counts_failures_and_names_only_simultaneous_differences(tmp_path, monkeypatch):
    monkeypatch.setattr(entries, "DATA", tmp_path)
    monkeypatch.setattr(figures, "FIGURES", tmp_path)
    noise = np.random.default_rng(1).normal(size=10)
    found = {"trpo_maml": -12.0 + 0.1 * noise, "all_tasks": np.where(np.arange(10) < 2, -30.0, -20.0 - 0.1 * noise),
             "promp": -12.0 - 0.1 * noise}
    for method, returns in found.items():
        reference_table.store(reference.data_path("navigation"), method, rows_of(method, returns))
    reference_table.store(reference.data_path("navigation"), "promp", rows_of("promp", found["promp"]))  # replaced
    page = reference_page.page()
    assert "| one policy for all tasks (TRPO) | 10 | 2 | -40.0 ± 0.0 |" in page
    assert "| ProMP | 10 | 0 | -40.0 ± 0.0 |" in page and "| TRPO-MAML | `rollouts_per_meta_task=" in page
    assert "one policy for all tasks, with one gradient step: +" in page
    (row,) = [line for line in page.splitlines() if line.startswith("| TRPO-MAML | 10")]
    assert "| one policy for all tasks (TRPO) | 1 | 20 |" in row and "ProMP" not in row
    reference_page.draw("navigation")
    assert "dots: test of each seed" in (tmp_path / "reference_navigation.svg").read_text()


def test_stated_return_is_reached_by_the_mean_of_five_iterations():
    """The last of these iterations counts; a single return above the stated one does not."""
    progress = {"n_timesteps": 100.0 * np.arange(1, 21), "Time": np.arange(1.0, 21.0),
                "Step_0-AverageReturn": np.full(20, -40.0),
                "Step_1-AverageReturn": np.array([-40.0] * 5 + [0.0] + [-40.0] * 4 + [-14.0] * 10)}
    assert reference.reaches("navigation", progress) == (1500.0, 15.0)
    assert np.isnan(reference.reaches("half_cheetah_direction", progress)).all()


@pytest.mark.thorough
@pytest.mark.slow
def test_smoke_run_tunes_and_tests(tmp_path):
    assert reference_table.main(["navigation", "--smoke", "--methods", "rl2", "--output", str(tmp_path)]) == 0
    rows = reference.read_rows(tmp_path / "navigation-smoke" / "reference.csv")
    assert tuple(rows[0]) == reference.COLUMNS and len(rows) == 4 * (8 + 4 + 2 + 1)
    assert [row["phase"] for row in rows[-4:]] == ["final"] * 4
