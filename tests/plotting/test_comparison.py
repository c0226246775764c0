"""Tests figures that compare several runs, or several policies that adapt."""
import numpy as np
import pytest

from meta_policy_search.plotting import Curve, mean_curve, plot_adaptation_curve, plot_comparison


def arrays(*columns):
    return tuple(np.array(column, float) for column in columns)


def test_runs_on_different_grids_are_averaged_on_their_common_range():
    """The mean of y = 2x on 0, 2, 4 and y = 2x + 4 on 1, 2, 5 (NaN at 4) is 2x + 2 on 1, 2, 4.

    The runs differ by four: s = 4 / sqrt(2), and the half width is 12.706 s / sqrt(2).
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
def test_runs_without_a_common_range_have_no_mean(runs, tmp_path):
    places, interval = mean_curve(Curve("ours", runs))
    assert len(places) == len(interval.mean) == len(interval.half_width) == 0
    plot_comparison({"return": [Curve("ours", runs)]}, tmp_path / "a.png", "A title")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def solid(axes):
    """Returns the opaque lines of a panel, which show means."""
    return [line for line in axes.lines if line.get_alpha() is None]


def test_comparison_shows_means_intervals_and_runs(tmp_path):
    """For three runs and one run, the first curve has a band and thin lines, and each label keeps its style."""
    x = [0, 1, 2]
    three = Curve("three", [arrays(x, [0, 0, 3]), arrays(x, [1, 0, 3]), arrays(x, [2, 0, 3])])
    one = Curve("one", [arrays(x, [5, 6, 7])])
    figure = plot_comparison({"before": [three, one], "after": [one]}, tmp_path / "a.png", "A title",
                   x_label="environment steps")
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


def test_single_curve_has_no_legend_and_may_name_the_figure():
    curve = Curve("ours", [arrays([0, 1], [1, 2])])
    for given, title in (("A title", "A title"), ("", "ours")):
        figure = plot_comparison({"y": [curve]}, title=given)
        assert figure.get_suptitle() == title and not figure.legends


@pytest.mark.parametrize("values, span", [([100.0, 100.001], 5.0), ([0.0, 8.0], 8.8)])
def test_axis_of_a_constant_curve_does_not_magnify_noise(values, span):
    """The axis spans at least 5% of its largest value; the curve stays in the middle."""
    (axes,) = plot_comparison({"y": [Curve("ours", [arrays([0, 1], values)])]}).axes
    low, high = axes.get_ylim()
    assert high - low == pytest.approx(span, rel=0.06) and (low + high) / 2 == pytest.approx(np.mean(values))


def test_many_curves_have_different_styles(tmp_path):
    curves = [Curve(str(i), [arrays([0, 1], [i, i])]) for i in range(20)]
    (axes,) = plot_comparison({"y": curves}, tmp_path / "a.png", "A title").axes
    assert len({(line.get_color(), line.get_linestyle()) for line in solid(axes)}) == 20
    assert axes.get_title() == ""  # no individual runs in the legend


@pytest.mark.parametrize("smooth, expected", [(1, [0, 3, 6, 0]), (2, [0, 3, 6, 0]), (3, [1.5, 3, 3, 3])])
def test_smoothing_averages_rows_of_a_run(smooth, expected, tmp_path):
    curve = Curve("ours", [arrays([0, 1, 2, 3], [0, 3, 6, 0])])
    (axes,) = plot_comparison({"y": [curve]}, tmp_path / "a.png", "A title",
                    smooth=smooth).axes
    np.testing.assert_allclose(solid(axes)[0].get_ydata(), expected)
    with pytest.raises(ValueError, match="smooth: expected an integer of at least 1, got 0"):
        plot_comparison({"y": [curve]}, tmp_path / "b.png", "A title", smooth=0)


def test_iteration_ticks_are_integers_and_hour_ticks_are_not(tmp_path):
    curve = Curve("ours", [arrays([0, 0.5, 1], [0, 3, 6])])
    for is_count, expected in ((True, {"0", "1"}), (False, {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"})):
        figure = plot_comparison({"y": [curve]}, tmp_path / "a.png", "A title",
                       is_count=is_count)
        axis = figure.axes[0].xaxis
        low, high = figure.axes[0].get_xlim()
        ticks = axis.get_ticklocs()
        labels = axis.get_major_formatter().format_ticks(ticks)
        assert {label for tick, label in zip(ticks, labels, strict=True) if low <= tick <= high} == expected


def test_adaptation_curve_shows_means_with_intervals_and_the_tasks_of_the_first(tmp_path):
    """For two tasks, half widths are 12.706 s / sqrt(2), and a reference is drawn without its tasks."""
    returns = np.array([[0.0, 10.0, 20.0], [2.0, 14.0, 20.0]])
    (axes,) = plot_adaptation_curve([("ours", returns), ("theirs", returns[:, :2] - 1.0)], tmp_path / "a.png",
                    title="A title", note="a note").axes
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert axes.figure.get_suptitle() == "A title" and axes.get_title() == "a note"
    ours, theirs = axes.containers
    assert [ours.get_label(), theirs.get_label()] == ["ours", "theirs"]
    np.testing.assert_array_equal(ours.lines[0].get_xydata(), [[0, 1], [1, 12], [2, 20]])
    np.testing.assert_allclose(theirs.lines[0].get_xydata(), [[0, 0], [1, 11]], atol=0.05)  # shifted right
    (bars,) = ours.lines[2]
    low, high = np.array([segment[:, 1] for segment in bars.get_segments()]).T
    np.testing.assert_allclose(high - low, 2 * 12.7062047 * np.array([1.0, 2.0, 0.0]))
    tasks = [line.get_ydata() for line in axes.lines if line.get_alpha() is not None]
    np.testing.assert_array_equal(tasks, returns)


def test_adaptation_curve_of_one_task_has_no_error_bars(tmp_path):
    (axes,) = plot_adaptation_curve([("ours", np.array([[1.0, 2.0]]))], tmp_path / "a.png").axes
    (curve,) = axes.containers
    assert sum(segment.size for bars in curve.lines[2] for segment in bars.get_segments()) == 0
    np.testing.assert_array_equal(curve.lines[0].get_ydata(), [1.0, 2.0])


@pytest.mark.parametrize("distance, lowest, highest", [(10.0, (-4.0, 0.0), (14.0, 18.0)),
                                                       (0.01, (-1.0, -0.06), (4.07, 5.0))])
def test_narrow_bands_are_shown_completely_and_wide_bands_do_not_flatten_the_lines(distance, lowest, highest):
    """With two runs, the half width of the interval is 12.7 standard errors. Lines drawn later extend the axis."""
    x = np.arange(5.0)
    (axes,) = plot_comparison({"return": [Curve("a", [(x, x), (x, x + distance)])]}).axes
    low, high = axes.get_ylim()
    assert lowest[0] <= low < lowest[1] and highest[0] < high <= highest[1]
    axes.plot([0.0, 4.0], [50.0, 50.0])
    assert axes.get_ylim()[1] == high if distance == 10.0 else axes.get_ylim()[1] > 50.0


def test_panel_without_curves_is_empty():
    assert not plot_comparison({"return": []}).axes[0].lines
