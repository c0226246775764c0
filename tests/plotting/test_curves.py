"""Tests the figures of one run."""
import json

import numpy as np
import pytest

from meta_policy_search.plotting import describe_run, mean_gain, plot_diagnostics, plot_learning_curve, read_progress
from tests.helpers.runs import write_rows

COLUMNS = ["n_timesteps", "Step_0-AverageReturn", "Step_1-AverageReturn", "AdaptationGain", "AdaptationGainCI95"]


def test_figure_shows_every_step_and_the_gain_with_its_interval(folder):
    figure = plot_learning_curve(folder)
    top, bottom = figure.axes
    before, after = top.lines
    np.testing.assert_array_equal(before.get_xydata(), [[100, 1], [200, 1], [300, 2]])
    np.testing.assert_array_equal(after.get_xydata(), [[100, 2], [200, 4], [300, 7]])
    assert [before.get_label(), after.get_label()] == ["before adaptation", "after 1 adaptation step"]
    assert len(top.get_legend().get_texts()) == 2
    gain = next(line for line in bottom.lines if line.get_label() == "gain")
    np.testing.assert_array_equal(gain.get_ydata(), [1, 3, 5])
    (band,) = bottom.collections
    corners = {(x, round(y, 9)) for x, y in band.get_paths()[0].vertices}
    assert corners >= {(100, 0.7), (100, 1.3), (200, 2.6), (200, 3.4), (300, 3.8), (300, 6.2)}
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")


def test_run_without_adaptation_has_one_panel(tmp_path):
    write_rows(tmp_path, {"n_timesteps": [10, 20], "Step_0-AverageReturn": [1.0, 3.0], "AdaptationGain": [0.0, 0.0],
                     "AdaptationGainCI95": [0.0, 0.0]})
    figure = plot_learning_curve(tmp_path)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["return"]
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), [[10, 1], [20, 3]])


def test_long_runs_are_drawn_as_running_means(tmp_path):
    """For 300 iterations, lines are means of 7 rows, and intervals are narrower by 1/sqrt(7)."""
    rng = np.random.default_rng(1)
    n, gains = 300, rng.normal(size=300)
    zeros = np.zeros(n)
    write_rows(tmp_path, dict(zip(COLUMNS, (np.arange(1, n + 1), zeros, gains, gains, zeros + 1.4), strict=True)))
    _, bottom = plot_learning_curve(tmp_path).axes
    gain = next(line for line in bottom.lines if line.get_label() == "gain, mean of 7 iterations").get_ydata()
    np.testing.assert_allclose(gain[3:-3], np.convolve(gains, np.ones(7) / 7, "valid"))
    np.testing.assert_allclose(gain[0], gains[:4].mean())
    vertices = bottom.collections[0].get_paths()[0].vertices
    at = np.sort(vertices[vertices[:, 0] == 150.0, 1])
    np.testing.assert_allclose(at, gain[149] + np.array([-1.4, 1.4]) / np.sqrt(7))


def test_figure_of_the_diagnostics(tmp_path):
    write_rows(tmp_path, {
        "n_timesteps": [100, 200], "MetaGradNorm": [0.5, 2.0], "MetaGradVariance": [4.0, 9.0],
        "MetaGradHalvesCosine": [-0.5, 0.25], "PrePostGradCosine": [0.75, "nan"],
        "Step_0-AdaptationKL": [0.01, 0.02], "Step_1-AdaptationKL": [0.03, 0.0],
    })
    panels = plot_diagnostics(tmp_path).axes
    lines = {line.get_label(): line.get_xydata() for axes in panels for line in axes.lines if len(line.get_xdata()) == 2
             and line.get_label()[0] != "_"}
    np.testing.assert_equal(lines, {
        "norm": [[100, 0.5], [200, 2]], "standard deviation": [[100, 2], [200, 3]],
        "meta-gradients of two halves of the tasks": [[100, -0.5], [200, 0.25]],
        "gradients before and after adaptation": [[100, 0.75], [200, np.nan]],
        "adaptation step 1": [[100, 0.01], [200, 0.02]], "adaptation step 2": [[100, 0.03], [200, 0.0]],
    })
    assert [len(axes.get_legend().get_texts()) for axes in panels] == [2, 2, 2]
    assert [axes.get_yscale() for axes in panels] == ["log", "linear", "log"]
    assert panels[0].get_title() == "Single iterations, without intervals"
    assert (tmp_path / "diagnostics.png").read_bytes().startswith(b"\x89PNG")


def test_diagnostics_without_gradient_give_no_warning(tmp_path, recwarn):
    """Gradients and divergences of zero, as in a very short run, have linear axes."""
    names = ("MetaGradNorm", "MetaGradVariance", "MetaGradHalvesCosine", "PrePostGradCosine", "Step_0-AdaptationKL")
    write_rows(tmp_path, {"n_timesteps": [100, 200], **dict.fromkeys(names, [0.0, 0.0])})
    panels = plot_diagnostics(tmp_path).axes
    assert [axes.get_yscale() for axes in panels] == ["linear"] * 3 and not recwarn.list


def test_figure_of_a_search_run(tmp_path):
    columns = {"n_timesteps": [10, 20, 30], "AverageReturn": [1.0, 2.0, 4.0], "BestCandidateReturn": [3.0, 5.0, 6.0]}
    write_rows(tmp_path, columns)
    (axes,) = plot_learning_curve(tmp_path).axes
    for label, key in (("mean", "AverageReturn"), ("best candidate", "BestCandidateReturn")):
        (line,) = [line for line in axes.get_lines() if line.get_label() == label]
        np.testing.assert_array_equal(line.get_xdata(), columns["n_timesteps"])
        np.testing.assert_array_equal(line.get_ydata(), columns[key])
    del columns["BestCandidateReturn"]  # an algorithm without candidates
    write_rows(tmp_path, columns)
    plot_learning_curve(tmp_path, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_one_task_has_no_interval(folder):
    write_rows(folder, dict(zip(COLUMNS, ([100], [1.0], [2.0], [1.0], ["nan"]), strict=True)))
    assert np.isnan(mean_gain(read_progress(folder)).half_width)
    _, bottom = plot_learning_curve(folder).axes
    assert not bottom.collections


def test_path_and_title(folder, tmp_path):
    figure = plot_learning_curve(folder, tmp_path / "other.png", title="A run")
    assert figure.get_suptitle() == "A run"
    assert (tmp_path / "other.png").exists() and not (folder / "learning_curve.png").exists()
    assert plot_learning_curve(folder).get_suptitle() == "/".join(folder.parts[-3:])


@pytest.mark.parametrize("content, message", [
    (None, "expected a folder with a progress.csv"),
    ("", "expected at least one row"),
    ("Itr;n_timesteps\n0;1\n", "expected commas between the columns of .*progress.csv, got 'Itr;n_timesteps'"),
    ("n_timesteps\n1\n", "expected a column 'Step_0-AverageReturn', got only n_timesteps"),
])
def test_runs_that_cannot_be_plotted_are_reported(content, message, tmp_path):
    if content is not None:
        (tmp_path / "progress.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        plot_learning_curve(tmp_path)
    with pytest.raises(ValueError, match=message.replace("Step_0-AverageReturn", "MetaGradNorm")):
        plot_diagnostics(tmp_path)
    assert not list(tmp_path.glob("*.png*"))


def test_title_names_the_settings_of_the_run(folder):
    settings = {"env": "MetaPointEnvCorner", "seed": 3, "inner_lr": 0.1}
    (folder / "params.json").write_text(json.dumps({"algorithm": "promp", "settings": settings}))
    assert describe_run(folder) == "ProMP on MetaPointEnvCorner, seed 3, inner step 0.1"
    assert plot_learning_curve(folder).get_suptitle() == describe_run(folder)
    (folder / "params.json").write_text("{")
    assert describe_run(folder) == "/".join(folder.parts[-3:])
