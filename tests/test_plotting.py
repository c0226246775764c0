"""Reading what runs have logged, and the pictures: of one run, of several, and of where a policy goes."""
import subprocess
import sys

import numpy as np
import pytest

from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.plotting import (
    Curve,
    TaskTrajectories,
    mean_curve,
    mean_gain,
    plot_adaptation_curve,
    plot_comparison,
    plot_diagnostics,
    plot_learning_curve,
    plot_returns,
    plot_trajectories,
    read_progress,
    return_columns,
)

COLUMNS = ["n_timesteps", "Step_0-AverageReturn", "Step_1-AverageReturn", "AdaptationGain", "AdaptationGainCI95"]


@pytest.fixture
def folder(tmp_path):
    """A run of three iterations, written by hand."""
    (tmp_path / "progress.csv").write_text(
        f"{','.join(COLUMNS)},Note\n"
        "100,1.0,2.0,1.0,0.3,ok\n"
        "200,1.0,4.0,3.0,0.4,\n"
        "300,2.0,7.0,5.0,1.2,ok\n"
    )
    return tmp_path


def drawn(monkeypatch, *arguments, plot=plot_learning_curve, **keywords):
    """Returns the figure that `plot_learning_curve` (or another function) writes."""
    from matplotlib.figure import Figure

    figures = []
    savefig = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), savefig(self, *a, **k)))
    plot(*arguments, **keywords)
    return figures[0]


def write(path, columns):
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (path / "progress.csv").write_text("\n".join([",".join(columns), *rows]) + "\n")


def test_columns_are_read_by_name_and_what_is_no_number_is_nan(folder):
    progress = read_progress(folder)
    assert list(progress) == [*COLUMNS, "Note"]
    np.testing.assert_array_equal(progress["AdaptationGain"], [1.0, 3.0, 5.0])
    assert np.isnan(progress["Note"]).all()


def test_a_line_that_is_still_being_written_is_left_out(folder):
    with open(folder / "progress.csv", "a") as file:
        file.write("400,2.0,8.")
    np.testing.assert_array_equal(read_progress(folder)["n_timesteps"], [100, 200, 300])


def test_the_mean_gain_by_hand(folder):
    """The half width of a mean of independent means: sqrt(0.4^2 + 1.2^2) / 2."""
    gain = mean_gain(read_progress(folder), last=2)
    np.testing.assert_allclose(gain, (4.0, np.sqrt(1.6) / 2, 1.5, 5.5, 2))
    assert mean_gain(read_progress(folder)).num_itr == 3


def test_the_interval_of_the_mean_gain_covers_it():
    """Given 2,000 runs of 10 iterations with 40 tasks each, then the interval misses the true gain in 5% of them."""
    from scipy.stats import t

    rng = np.random.default_rng(1)
    gains = rng.normal(2.0, 3.0, size=(2000, 10, 40))
    half_widths = t.ppf(0.975, 39) * gains.std(axis=2, ddof=1) / np.sqrt(40)
    missed = 0
    for run_gains, run_half_widths in zip(gains.mean(axis=2), half_widths, strict=True):
        zeros = np.zeros(10)
        gain = mean_gain({"AdaptationGain": run_gains, "AdaptationGainCI95": run_half_widths,
                          "Step_0-AverageReturn": zeros, "Step_1-AverageReturn": zeros})
        missed += abs(gain.mean - 2.0) > gain.half_width
    assert 0.03 < missed / 2000 < 0.06


def test_the_picture_shows_every_step_and_the_gain_with_its_interval(folder, monkeypatch):
    figure = drawn(monkeypatch, folder)
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


def test_long_runs_are_drawn_as_running_means(tmp_path, monkeypatch):
    """Given 300 iterations, then lines are means of 7, and the interval that of such a mean: 1/sqrt(7) as wide."""
    rng = np.random.default_rng(1)
    n, gains = 300, rng.normal(size=300)
    zeros = np.zeros(n)
    write(tmp_path, dict(zip(COLUMNS, (np.arange(1, n + 1), zeros, gains, gains, zeros + 1.4), strict=True)))
    _, bottom = drawn(monkeypatch, tmp_path).axes
    gain = next(line for line in bottom.lines if line.get_label() == "gain, mean of 7 iterations").get_ydata()
    np.testing.assert_allclose(gain[3:-3], np.convolve(gains, np.ones(7) / 7, "valid"))
    np.testing.assert_allclose(gain[0], gains[:4].mean())
    vertices = bottom.collections[0].get_paths()[0].vertices
    at = np.sort(vertices[vertices[:, 0] == 150.0, 1])
    np.testing.assert_allclose(at, gain[149] + np.array([-1.4, 1.4]) / np.sqrt(7))


def test_the_picture_of_the_diagnostics(tmp_path, monkeypatch):
    write(tmp_path, {
        "n_timesteps": [100, 200], "MetaGradNorm": [0.5, 2.0], "MetaGradVariance": [4.0, 9.0],
        "MetaGradHalvesCosine": [-0.5, 0.25], "PrePostGradCosine": [0.75, "nan"],
        "Step_0-AdaptationKL": [0.01, 0.02], "Step_1-AdaptationKL": [0.03, 0.0],
    })
    panels = drawn(monkeypatch, tmp_path, plot=plot_diagnostics).axes
    lines = {line.get_label(): line.get_xydata() for axes in panels for line in axes.lines if len(line.get_xdata()) == 2
             and line.get_label()[0] != "_"}
    np.testing.assert_equal(lines, {
        "length": [[100, 0.5], [200, 2]], "standard deviation": [[100, 2], [200, 3]],
        "meta-gradients of two halves of the tasks": [[100, -0.5], [200, 0.25]],
        "gradients before and after adaptation": [[100, 0.75], [200, np.nan]],
        "adaptation step 1": [[100, 0.01], [200, 0.02]], "adaptation step 2": [[100, 0.03], [200, 0.0]],
    })
    assert [len(axes.get_legend().get_texts()) for axes in panels] == [2, 2, 2]
    assert [axes.get_yscale() for axes in panels] == ["log", "linear", "log"]
    assert (tmp_path / "diagnostics.png").read_bytes().startswith(b"\x89PNG")


def test_the_returns_of_a_search(tmp_path, monkeypatch):
    columns = {"n_timesteps": [10, 20, 30], "AverageReturn": [1.0, 2.0, 4.0], "BestCandidateReturn": [3.0, 5.0, 6.0]}
    write(tmp_path, columns)
    (axes,) = drawn(monkeypatch, tmp_path, plot=plot_returns).axes
    for label, key in (("mean", "AverageReturn"), ("best candidate", "BestCandidateReturn")):
        (line,) = [line for line in axes.get_lines() if line.get_label() == label]
        np.testing.assert_array_equal(line.get_xdata(), columns["n_timesteps"])
        np.testing.assert_array_equal(line.get_ydata(), columns[key])
    write(tmp_path, {key: columns[key] for key in ("n_timesteps", "AverageReturn")})  # an algorithm without candidates
    plot_returns(tmp_path, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    write(tmp_path, {"n_timesteps": [10]})
    with pytest.raises(ValueError, match="expected a column 'AverageReturn'"):
        plot_returns(tmp_path)


def test_a_run_without_diagnostics_says_what_is_missing(folder):
    with pytest.raises(ValueError, match="expected a column 'MetaGradNorm'"):
        plot_diagnostics(folder)


def test_one_task_has_no_interval(folder, monkeypatch):
    write(folder, dict(zip(COLUMNS, ([100], [1.0], [2.0], [1.0], ["nan"]), strict=True)))
    assert np.isnan(mean_gain(read_progress(folder)).half_width)
    _, bottom = drawn(monkeypatch, folder).axes
    assert not bottom.collections


def test_path_and_title(folder, tmp_path, monkeypatch):
    figure = drawn(monkeypatch, folder, tmp_path / "other.png", title="A run")
    assert figure.get_suptitle() == "A run"
    assert (tmp_path / "other.png").exists() and not (folder / "learning_curve.png").exists()
    assert drawn(monkeypatch, folder).get_suptitle() == "/".join(folder.parts[-3:])


@pytest.mark.parametrize("content, message", [
    (None, "expected a folder with a progress.csv"),
    ("", "expected at least one row"),
    ("n_timesteps\n", "expected at least one row"),
    ("n_timesteps\n1\n", "expected a column 'Step_0-AverageReturn', got only n_timesteps"),
    ("Step_0-AverageReturn\n1\n", "expected a column 'n_timesteps'"),
])
def test_what_cannot_be_drawn_is_said(content, message, tmp_path):
    if content is not None:
        (tmp_path / "progress.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        plot_learning_curve(tmp_path)
    assert not list(tmp_path.glob("*.png*"))


def adaptation_curve(monkeypatch, path, *curves, **arguments):
    """Returns the axes of the picture that `plot_adaptation_curve` writes."""
    from matplotlib.figure import Figure

    figures = []
    savefig = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), savefig(self, *a, **k)))
    assert plot_adaptation_curve(curves, path, **arguments) == str(path)
    return figures[0].axes[0]


def test_an_adaptation_curve_shows_means_with_intervals_and_the_tasks_of_the_first(tmp_path, monkeypatch):
    """Given two tasks, then half widths are 12.706 s / sqrt(2), and a reference is drawn without its tasks."""
    returns = np.array([[0.0, 10.0, 20.0], [2.0, 14.0, 20.0]])
    axes = adaptation_curve(monkeypatch, tmp_path / "a.png", ("ours", returns), ("theirs", returns[:, :2] - 1.0),
                            title="A title", note="a note")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert axes.figure.get_suptitle() == "A title" and axes.get_title() == "a note"
    ours, theirs = axes.containers
    assert [ours.get_label(), theirs.get_label()] == ["ours", "theirs"]
    np.testing.assert_array_equal(ours.lines[0].get_xydata(), [[0, 1], [1, 12], [2, 20]])
    np.testing.assert_allclose(theirs.lines[0].get_xydata(), [[0, 0], [1, 11]], atol=0.05)  # a little to the right
    (bars,) = ours.lines[2]
    low, high = np.array([segment[:, 1] for segment in bars.get_segments()]).T
    np.testing.assert_allclose(high - low, 2 * 12.7062047 * np.array([1.0, 2.0, 0.0]))
    tasks = [line.get_ydata() for line in axes.lines if line.get_alpha() is not None]
    np.testing.assert_array_equal(tasks, returns)


def test_an_adaptation_curve_of_one_task_has_no_bars(tmp_path, monkeypatch):
    axes = adaptation_curve(monkeypatch, tmp_path / "a.png", ("ours", np.array([[1.0, 2.0]])))
    (curve,) = axes.containers
    assert sum(segment.size for bars in curve.lines[2] for segment in bars.get_segments()) == 0
    np.testing.assert_array_equal(curve.lines[0].get_ydata(), [1.0, 2.0])


# Several runs ------------------------------------------------------------------------------------------------------


def arrays(*columns):
    return tuple(np.array(column, float) for column in columns)


def test_the_columns_of_returns():
    steps = {f"Step_{step}-AverageReturn": np.zeros(1) for step in (0, 2, 10)}
    assert return_columns(steps) == {"return before adaptation": "Step_0-AverageReturn",
                                     "return after adaptation": "Step_10-AverageReturn"}
    assert return_columns({"AverageReturn": np.zeros(1)}) == {"return": "AverageReturn"}
    with pytest.raises(ValueError, match="expected a column 'Step_0-AverageReturn', got only Itr"):
        return_columns({"Itr": np.zeros(1)})


def test_runs_on_different_grids_are_averaged_where_all_of_them_are():
    """Given y = 2x on 0, 2, 4 and y = 2x + 4 on 1, 2, 5 (and no number at 4), then the mean is 2x + 2 on 1, 2, 4.

    Two runs of which one is four above the other: s = 4 / sqrt(2), and the half width is 12.706 s / sqrt(2).
    """
    curve = Curve("ours", [arrays([0, 2, 4], [0, 4, 8]), arrays([1, 2, 4, 5], [6, 8, np.nan, 14])])
    places, (mean, half_width) = mean_curve(curve)
    np.testing.assert_array_equal(places, [1, 2, 4])
    np.testing.assert_allclose(mean, [4, 6, 10])
    np.testing.assert_allclose(half_width, 12.7062047 * 2.0)


@pytest.mark.parametrize("runs", [
    [arrays([0, 1], [1, 1]), arrays([2, 3], [1, 1])],
    [arrays([0, 1], [1, 1]), arrays([0, 1], [np.nan, np.nan])],
])
def test_runs_that_have_no_place_in_common_have_no_mean(runs, tmp_path):
    places, interval = mean_curve(Curve("ours", runs))
    assert len(places) == len(interval.mean) == len(interval.half_width) == 0
    plot_comparison({"return": [Curve("ours", runs)]}, tmp_path / "a.png", "A title")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def solid(axes):
    """Returns the lines of a panel that are not faint, which are those of means."""
    return [line for line in axes.lines if line.get_alpha() is None]


def test_a_comparison_shows_means_intervals_and_runs(tmp_path, monkeypatch):
    """Given three runs and one, then the first curve has a band and its runs, and labels keep their looks."""
    x = [0, 1, 2]
    three = Curve("three", [arrays(x, [0, 0, 3]), arrays(x, [1, 0, 3]), arrays(x, [2, 0, 3])])
    one = Curve("one", [arrays(x, [5, 6, 7])])
    figure = drawn(monkeypatch, {"before": [three, one], "after": [one]}, tmp_path / "a.png", "A title",
                   plot=plot_comparison, x_label="environment steps")
    top, bottom = figure.axes
    mean_of_three, line_of_one = solid(top)
    np.testing.assert_array_equal(mean_of_three.get_xydata(), [[0, 1], [1, 0], [2, 3]])
    np.testing.assert_array_equal(line_of_one.get_xydata(), [[0, 5], [1, 6], [2, 7]])
    runs = [line.get_ydata() for line in top.lines if line.get_alpha() is not None]
    np.testing.assert_array_equal(runs, [y for _, y in three.runs])
    (band,) = top.collections
    half_width = 4.30265273 / np.sqrt(3)  # s = 1
    corners = {(x, round(y, 6)) for x, y in band.get_paths()[0].vertices}
    assert corners >= {(0, round(1 - half_width, 6)), (0, round(1 + half_width, 6)), (1, 0), (2, 3)}
    (again,) = solid(bottom)
    assert again.get_color() == line_of_one.get_color() != mean_of_three.get_color()
    assert [axes.get_ylabel() for axes in (top, bottom)] == ["before", "after"]
    assert bottom.get_xlabel() == "environment steps" and figure.get_suptitle() == "A title"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["three", "one"]
    assert "95% interval over runs" in top.get_title()


def test_many_curves_look_different(tmp_path, monkeypatch):
    curves = [Curve(str(i), [arrays([0, 1], [i, i])]) for i in range(20)]
    (axes,) = drawn(monkeypatch, {"y": curves}, tmp_path / "a.png", "A title", plot=plot_comparison).axes
    assert len({(line.get_color(), line.get_linestyle()) for line in solid(axes)}) == 20
    assert axes.get_title() == ""  # no runs to explain


@pytest.mark.parametrize("smooth, expected", [(1, [0, 3, 6, 0]), (2, [0, 3, 6, 0]), (3, [1.5, 3, 3, 3])])
def test_smoothing_averages_rows_of_a_run(smooth, expected, tmp_path, monkeypatch):
    curve = Curve("ours", [arrays([0, 1, 2, 3], [0, 3, 6, 0])])
    (axes,) = drawn(monkeypatch, {"y": [curve]}, tmp_path / "a.png", "A title", plot=plot_comparison,
                    smooth=smooth).axes
    np.testing.assert_allclose(solid(axes)[0].get_ydata(), expected)
    with pytest.raises(ValueError, match="smooth: expected an integer of at least 1, got 0"):
        plot_comparison({"y": [curve]}, tmp_path / "b.png", "A title", smooth=0)


def test_iterations_have_whole_numbers_and_hours_do_not(tmp_path, monkeypatch):
    curve = Curve("ours", [arrays([0, 0.5, 1], [0, 3, 6])])
    for is_count, expected in ((True, {"0", "1"}), (False, {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"})):
        monkeypatch.undo()
        figure = drawn(monkeypatch, {"y": [curve]}, tmp_path / "a.png", "A title", plot=plot_comparison,
                       is_count=is_count)
        axis = figure.axes[0].xaxis
        low, high = figure.axes[0].get_xlim()
        ticks = axis.get_ticklocs()
        labels = axis.get_major_formatter().format_ticks(ticks)
        assert {label for tick, label in zip(ticks, labels, strict=True) if low <= tick <= high} == expected


# Where a policy goes -----------------------------------------------------------------------------------------------


def test_trajectories_show_every_way_the_goal_and_walls(tmp_path, monkeypatch):
    ways = [[np.array([[0, 0], [1, step]], float), np.array([[0, 0], [-1, step]], float)] for step in range(3)]
    wall = np.array([[2.0, 0.0], [2.0, 1.0]])
    with_goal = TaskTrajectories(Scenery(2.0, goal=np.array([1.5, -0.5]), walls=[wall]), ways, [-3.0, -2.0, -1.0])
    towards = TaskTrajectories(Scenery(direction=np.array([0.0, 1.0])), [way[:1] for way in ways], [1.0, 2.0, 3.0])
    figure = drawn(monkeypatch, [with_goal, towards], tmp_path / "a.png", "A title", ["here", "there"],
                   plot=plot_trajectories)
    panels = np.array(figure.axes).reshape(3, 2)
    for step in range(3):
        lines = [line.get_xydata().tolist() for line in panels[step, 0].lines]
        for way in ways[step]:
            assert way.tolist() in lines and [way[0].tolist()] in lines and [way[-1].tolist()] in lines
        assert wall.tolist() in lines and [[1.5, -0.5]] in lines
        assert panels[step, 0].get_xlim() == pytest.approx((-2.3, 2.3))
        (arrow,) = panels[step, 1].texts
        assert arrow.xy[0] == 0.0 and arrow.xy[1] > 0.0
        assert ways[step][0].tolist() in [line.get_xydata().tolist() for line in panels[step, 1].lines]
        assert panels[step, 1].get_xlim() == pytest.approx((-2.3, 2.3))  # the same for all steps
    assert [axes.get_title() for axes in panels[0]] == ["here", "there"]
    assert [axes.get_ylabel() for axes in panels[:, 0]] == [
        "before adaptation", "after 1 adaptation step", "after 2 adaptation steps"]
    assert [axes.get_xlabel() for axes in panels[:, 0]] == ["return -3.00", "return -2.00", "return -1.00"]


def test_importing_does_not_load_matplotlib_or_tensorflow():
    program = ("import sys, meta_policy_search.plotting\n"
               "print([name for name in ('matplotlib', 'tensorflow') if name in sys.modules])")
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"
