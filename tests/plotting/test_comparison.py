"""Tests figures that compare several runs, or several policies that adapt."""
import numpy as np
import pytest

from meta_policy_search.plotting import mean_curve, plot_adaptation_curve, plot_comparison


def arrays(*columns):
    return tuple(np.array(column, float) for column in columns)


def test_runs_on_different_grids_are_averaged_on_their_common_range():
    """The mean of y = 2x on 0, 2, 4 and y = 2x + 4 on 1, 2, 5 (NaN at 4) is 2x + 2 on 1, 2, 4.

    The runs differ by four: s = 4 / sqrt(2), and the half width is 12.706 s / sqrt(2).
    """
    curve = [arrays([0, 2, 4], [0, 4, 8]), arrays([1, 2, 4, 5], [6, 8, np.nan, 14])]
    places, (mean, half_width) = mean_curve(curve)
    np.testing.assert_array_equal(places, [1, 2, 4])
    np.testing.assert_allclose(mean, [4, 6, 10])
    np.testing.assert_allclose(half_width, 12.7062047 * 2.0)


@pytest.mark.parametrize("runs", [
    [arrays([0, 1], [1, 1]), arrays([2, 3], [1, 1])],
    [arrays([0, 1], [1, 1]), arrays([0, 1], [np.nan, np.nan])],
])
def test_runs_without_a_common_range_have_no_mean(runs, tmp_path):
    places, interval = mean_curve(runs)
    assert len(places) == len(interval.mean) == len(interval.half_width) == 0
    plot_comparison({"return": {"ours": runs}, "gain": {}}, tmp_path / "a.png", "A title")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def solid(axes):
    """Returns the opaque lines of a panel, which show means."""
    return [line for line in axes.lines if line.get_alpha() is None]


def test_comparison_shows_means_intervals_and_runs(tmp_path):
    """For six runs and one run, the first curve has a band and thin lines, and each label keeps its color."""
    x = [0, 1, 2]
    six = [arrays(x, [first, 0, 3]) for first in (0, 1, 2)] * 2
    one = {"one": [arrays(x, [5, 6, 7])]}
    figure = plot_comparison({"before": {"six": six, **one}, "after": one}, tmp_path / "a.png", "A title",
                             x_label="environment steps")
    top, bottom = figure.axes
    mean_of_six, line_of_one = solid(top)
    np.testing.assert_array_equal(mean_of_six.get_xydata(), [[0, 1], [1, 0], [2, 3]])
    np.testing.assert_array_equal(line_of_one.get_xydata(), [[0, 5], [1, 6], [2, 7]])
    runs = [line.get_ydata() for line in top.lines if line.get_alpha() is not None]
    np.testing.assert_array_equal(runs, [y for _, y in six])
    (band,) = top.collections
    half_width = 2.57058184 * np.sqrt(0.8 / 6)  # s^2 = 4 / 5
    corners = {(x, round(y, 6)) for x, y in band.get_paths()[0].vertices}
    assert corners >= {(0, round(1 - half_width, 6)), (0, round(1 + half_width, 6)), (1, 0), (2, 3)}
    (again,) = solid(bottom)
    assert again.get_color() == line_of_one.get_color() != mean_of_six.get_color()
    assert [axes.get_ylabel() for axes in (top, bottom)] == ["before", "after"]
    assert bottom.get_xlabel() == "environment steps" and figure.get_suptitle() == "A title"
    assert top.get_title() == "Thick lines: means. Thin lines: single runs. Bands: 95% intervals over runs."


def test_less_than_five_runs_have_no_band():
    """Given four runs, then they are thin lines with their mean, and the title promises no band."""
    (axes,) = plot_comparison({"y": {"ours": [arrays([0, 1], [i, i]) for i in range(4)]}}, lines="paths").axes
    assert not axes.collections and axes.get_title() == "Thick lines: means. Thin lines: single paths."
    assert len(axes.lines) == 5 and solid(axes)[0].get_ydata().tolist() == [1.5, 1.5]


def test_panels_of_returns_share_their_axis_and_the_legend_follows_the_last_values():
    curves = {quantity: {name: [arrays([0, 1], [0, last])] for name, last in zip("abc", lasts)}
              for quantity, lasts in (("return before adaptation", (3, 2, 1)), ("return after adaptation", (5, 90, 7)),
                                      ("gain", (0, 1, 2)))}
    figure = plot_comparison(curves)
    before, after, gain = figure.axes
    assert before.get_ylim() == after.get_ylim() != gain.get_ylim()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["c", "b", "a"]
    figure = plot_comparison({quantity: curves[quantity] for quantity in list(curves)[:2]})
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["b", "c", "a"]


def test_published_points_have_the_color_of_their_curve():
    points = {"ours": np.array([[0.5, 1.0], [1.0, 3.0], [9.0, 4.0]])}  # the last one is beyond the run
    figure = plot_comparison({"before": {"ours": [arrays([0, 1], [0, 1])]},
                              "after": {"ours": [arrays([0, 1], [1, 2])]}}, points=points)
    before, after = figure.axes
    line, squares = after.lines
    np.testing.assert_array_equal(squares.get_xydata(), [[0.5, 1.0], [1.0, 3.0]])
    assert squares.get_color() == line.get_color() and len(before.lines) == 1


def test_single_curve_has_no_legend_and_may_name_the_figure():
    curve = [arrays([0, 1], [1, 2])]
    for given, title in (("A title", "A title"), ("", "ours")):
        figure = plot_comparison({"y": {"ours": curve}}, title=given)
        assert figure.get_suptitle() == title and not figure.legends


@pytest.mark.parametrize("values, span", [([100.0, 100.001], 5.0), ([0.0, 8.0], 8.8)])
def test_axis_of_a_constant_curve_does_not_magnify_noise(values, span):
    """The axis spans at least 5% of its largest value; the curve stays in the middle."""
    (axes,) = plot_comparison({"y": {"ours": [arrays([0, 1], values)]}}).axes
    low, high = axes.get_ylim()
    assert high - low == pytest.approx(span, rel=0.06) and (low + high) / 2 == pytest.approx(np.mean(values))


def test_more_than_seven_curves_are_divided_among_panels(tmp_path):
    curves = {str(i): [arrays([0, 1], [i, i])] for i in range(20)}
    panels = plot_comparison({"y": curves}, tmp_path / "a.png", "A title").axes
    assert [len(solid(axes)) for axes in panels] == [7, 7, 6] and panels[0].get_title() == ""  # no single runs
    lines = [(line.get_color(), line.get_linestyle()) for axes in panels for line in solid(axes)]
    assert len(set(lines)) == 20
    (mine,) = plot_comparison({"y": curves}, ax=panels[0]).axes[:1]
    assert len(solid(mine)) == 27


@pytest.mark.parametrize("smooth, expected", [(1, [0, 3, 6, 0]), (2, [0, 3, 6, 0]), (3, [1.5, 3, 3, 3])])
def test_smoothing_averages_rows_of_a_run(smooth, expected):
    curve = [arrays([0, 1, 2, 3], [0, 3, 6, 0])]
    (axes,) = plot_comparison({"y": {"ours": curve}}, smooth=smooth).axes
    np.testing.assert_allclose(solid(axes)[0].get_ydata(), expected)
    gaps = [arrays([0, 0.5, 1, 2, 2.5, 3], [0, np.nan, 3, 6, np.nan, 0])]
    (axes,) = plot_comparison({"y": {"ours": gaps}}, smooth=smooth).axes
    np.testing.assert_allclose(solid(axes)[0].get_xydata(), np.transpose([[0, 1, 2, 3], expected]))
    with pytest.raises(ValueError, match="smooth: expected an integer of at least 1, got 0"):
        plot_comparison({"y": {"ours": curve}}, smooth=0)


def test_iteration_ticks_are_integers_and_hour_ticks_are_not():
    curve = [arrays([0, 0.5, 1], [0, 3, 6])]
    for is_count, expected in ((True, {"0", "1"}), (False, {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"})):
        figure = plot_comparison({"y": {"ours": curve}}, is_count=is_count)
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
