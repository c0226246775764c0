"""Tests the comparison of training returns with the published figure: interpolation, table, and figure."""
import numpy as np
import pytest

from experiments.results import figure_2, reproduced
from experiments.results.entries import ENTRIES

NAME = "figure_2_ant_direction"


def run_of(iterations, slope=1.0):
    steps = 160_000.0 * np.arange(1, iterations + 1)
    return {"Itr": np.arange(iterations), "n_timesteps": steps, "Time": steps,
            "Step_0-AverageReturn": np.zeros(iterations), "Step_1-AverageReturn": slope * np.arange(iterations)}


def test_returns_are_means_of_the_last_iterations_before_a_number_of_steps():
    run = run_of(82)  # 13.12 million steps
    assert figure_2.return_at(run, 0.16) == 0.0
    assert figure_2.return_at(run, 1.6) == np.mean([5.0, 6.0, 7.0, 8.0, 9.0])
    assert figure_2.return_at(run, 12.8) == np.mean([75.0, 76.0, 77.0, 78.0, 79.0])
    assert figure_2.return_at(run, 13.0) == np.mean([77.0, 78.0, 79.0, 80.0, 81.0])
    assert figure_2.return_at(run, 14.0) is None


def test_steps_of_paths_that_end_early_count_as_in_the_public_code():
    """40 tasks x 20 paths x 100 steps x 2 collections count as 160,000 steps."""
    full = run_of(82)
    short = {**full, "n_timesteps": 0.6 * full["n_timesteps"]}
    np.testing.assert_array_equal(figure_2.counted(ENTRIES[NAME], short)["n_timesteps"], full["n_timesteps"])
    tables = [list(figure_2.table(ENTRIES[NAME], {"pro_mp": {1: run}})) for run in (full, short)]
    assert tables[0] == tables[1]


def test_table_lists_published_returns_and_intervals_over_seeds():
    entry = ENTRIES[NAME]
    training = {"pro_mp": {1: run_of(82), 2: run_of(82, 3.0)}, "trpo_maml": {1: run_of(82, 2.0)}}
    assert list(figure_2.table(entry, training)) == [
        "| return in training after million steps | number of seeds | 13 | 25 | 38 | 51 |", "|---|---|---|---|---|---|",
        "| ProMP, published | | 134 | 158 | 173 | 178 |", "| ProMP | 2 | 158 ± 1004 |  |  |  |",
        "| TRPO-MAML, published | | 122 | 146 | 156 | 162 |", "| TRPO-MAML | 1 | 158 |  |  |  |"]


def test_figure_shows_runs_and_the_published_points_that_training_reached(tmp_path, monkeypatch):
    panels = []

    def record(curves, x_label, ax):
        panels.append((curves, ax))
        ax.legend([], [])
        ax.plot(*curves["return"][0].runs[0])
        ax.fill_between([0.0, 1e6], -1e4, 1e4)  # an interval of two seeds

    monkeypatch.setattr(figure_2, "plot_comparison", record)
    figure_2.draw({NAME: ENTRIES[NAME]}, {NAME: {"pro_mp": {1: run_of(160)}}}, str(tmp_path / "a.svg"))
    [(curves, axes)] = panels
    assert [curve.label for curve in curves["return"]] == ["ProMP"]
    _, points = axes.lines
    [legend] = axes.figure.legends
    assert [text.get_text() for text in legend.texts] == ["ProMP"] and axes.get_legend() is None
    np.testing.assert_allclose(points.get_xydata(), [[13e6, 134.0], [25e6, 158.0]])
    low, high = axes.get_ylim()
    assert -50.0 < low < 0.0 and 158.0 < high < 210.0
    assert (tmp_path / "a.svg").stat().st_size > 0


def test_page_contains_table_and_figure(tmp_path, monkeypatch):
    for constant, name in (("FOLDER", "reproduced"), ("PAGE", "papers.md"), ("README", "README.md")):
        monkeypatch.setattr(reproduced, constant, str(tmp_path / name))
    (tmp_path / "README.md").write_text("<!-- returns in sampled tasks -->\n\n<!-- end -->", encoding="utf-8")
    reproduced.keep(NAME, "pro_mp", 1, np.zeros((3, 2)), run_of(82))
    assert str(tmp_path / "reproduced" / "figure_2.svg") in reproduced.write(NAME)
    page = (tmp_path / "papers.md").read_text(encoding="utf-8")
    assert "papers/figure_2.svg" in page
    assert "| ProMP | 1 | 79 |  |  |  |" in page


def test_figure_contains_only_the_entries_of_figure_2(tmp_path, monkeypatch):
    for constant, name in (("FOLDER", "reproduced"), ("PAGE", "papers.md"), ("README", "README.md")):
        monkeypatch.setattr(reproduced, constant, str(tmp_path / name))
    (tmp_path / "README.md").write_text("<!-- returns in sampled tasks -->\n\n<!-- end -->", encoding="utf-8")
    reproduced.keep("gradient_variance_training", "likelihood_ratio", 1, np.zeros((3, 2)), run_of(82))
    assert str(tmp_path / "reproduced" / "figure_2.svg") not in reproduced.write()
    assert "| likelihood ratio, published | | 4 | 33 |" in (tmp_path / "papers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in ENTRIES if name.startswith("figure_2")])
def test_training_reaches_the_first_published_point(name):
    entry = ENTRIES[name]
    for method in entry.methods:
        settings = {**entry.settings, **method.settings}
        steps = 2 * settings["n_itr"] * np.prod([settings[key] for key in (
            "meta_batch_size", "rollouts_per_meta_task", "max_path_length")])
        assert steps >= 0.98e6 * method.published_curve[0][0]
