"""Tests properties of all figures: the returned figure, and axes provided by the user."""
import gc
import subprocess
import sys
import weakref

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.plotting import plot_adaptation_curve, plot_comparison, plot_learning_curve, plot_trajectories

CURVES = {"ours": [(np.arange(3.0), np.arange(3.0))]}
PLACES = [[np.zeros((2, 2))]] * 2
PICTURES = {  # number of rows and columns of panels
    "comparison": ((2, 1), lambda **how: plot_comparison({"a": CURVES, "b": CURVES}, **how)),
    "adaptation curve": ((1, 1), lambda **how: plot_adaptation_curve([("ours", np.array([[1.0, 2.0]]))], **how)),
    "trajectories": ((2, 3), lambda **how: plot_trajectories([(Scenery(2.0), PLACES, [0.0] * 2)] * 3, **how)),
}


@pytest.mark.thorough(but="adaptation curve")
@pytest.mark.parametrize("name", PICTURES)
def test_figure_is_returned_and_written_only_if_a_path_is_given(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (rows, columns), plot = PICTURES[name]
    figure = plot(title="A title")
    assert isinstance(figure, Figure) and len(figure.axes) == rows * columns and figure.get_suptitle() == "A title"
    assert figure._repr_png_().startswith(b"\x89PNG") and not list(tmp_path.iterdir())
    for name, begin in (("a.svg", b"<?xml"), ("a.PDF", b"%PDF"), ("a.jpg", b"\xff\xd8"), ("a.png", b"\x89PNG")):
        plot(path=tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begin)
    for name in ("a", "a.gif", "a.csv"):
        with pytest.raises(ValueError, match=r"path: expected a name that ends with .png, .*, got '.*'"):
            plot(path=tmp_path / name)


@pytest.mark.parametrize("name", PICTURES)
def test_figures_are_drawn_into_user_axes(name, tmp_path):
    shape, plot = PICTURES[name]
    figure = Figure()
    figure.suptitle("Mine")
    mine, unused = figure.subfigures(1, 2)
    axes = mine.subplots(*shape)  # single axes instead of an array
    other = unused.subplots()
    assert plot(title="A title", ax=axes, path=tmp_path / "a.png") is figure
    assert all(each.lines for each in np.ravel(axes)) and not other.lines
    assert figure.get_suptitle() == "Mine" and not figure.legends
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="ax: expected . axes, got 7"):
        plot(ax=[other] * 7)


def test_figures_need_no_latex_with_usetex(tmp_path):
    with matplotlib.rc_context({"text.usetex": True}):
        figure = plot_adaptation_curve([("a_b", np.array([[1.0, 2.0]]))], path=tmp_path / "a.png")
        assert figure._repr_png_().startswith(b"\x89PNG")


def test_legend_of_a_comparison_is_inside_user_axes():
    axes = Figure().subplots()
    plot_comparison({"a": CURVES}, ax=axes)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours"]


def test_single_axes_get_the_first_panel_of_a_run_and_no_file_is_written(folder):
    axes = Figure().subplots(2)
    plot_learning_curve(folder, ax=axes[0])
    assert axes[0].get_ylabel() == "mean return of a path" and not axes[1].lines
    plot_learning_curve(folder, ax=axes)
    assert axes[1].get_ylabel() == "gain from adaptation"
    assert [path.name for path in folder.iterdir()] == ["progress.csv"]


@pytest.mark.thorough
def test_figures_are_released_and_pyplot_is_not_loaded(tmp_path):
    figure = weakref.ref(plot_comparison({"a": CURVES}, tmp_path / "a.png"))
    gc.collect()
    assert figure() is None
    program = ("import sys, numpy; from meta_policy_search.plotting import plot_adaptation_curve\n"
               "plot_adaptation_curve([('ours', numpy.zeros((2, 2)))])._repr_png_()\n"
               "print('matplotlib.pyplot' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"


def test_long_titles_fit_into_the_figure():
    figure = plot_comparison({"a": CURVES}, title="a word " * 40)
    figure.draw_without_rendering()
    extent = figure._suptitle.get_window_extent()
    assert 0.0 < extent.x0 < extent.x1 < figure.bbox.x1 and figure.get_suptitle().count("\n") > 1
