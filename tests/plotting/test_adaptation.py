"""Returns over adaptation steps."""
import numpy as np

from meta_policy_search.plotting import plot_adaptation_curve


def test_an_adaptation_curve_shows_means_with_intervals_and_the_tasks_of_the_first(tmp_path, drawn):
    """Given two tasks, then half widths are 12.706 s / sqrt(2), and a reference is drawn without its tasks."""
    returns = np.array([[0.0, 10.0, 20.0], [2.0, 14.0, 20.0]])
    (axes,) = drawn(plot_adaptation_curve, [("ours", returns), ("theirs", returns[:, :2] - 1.0)], tmp_path / "a.png",
                    title="A title", note="a note").axes
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


def test_an_adaptation_curve_of_one_task_has_no_bars(tmp_path, drawn):
    (axes,) = drawn(plot_adaptation_curve, [("ours", np.array([[1.0, 2.0]]))], tmp_path / "a.png").axes
    (curve,) = axes.containers
    assert sum(segment.size for bars in curve.lines[2] for segment in bars.get_segments()) == 0
    np.testing.assert_array_equal(curve.lines[0].get_ydata(), [1.0, 2.0])
