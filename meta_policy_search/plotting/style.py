"""Common functions of all plots: figures and their files, colors, axes and labels."""
import contextlib
import functools
import io
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from meta_policy_search.utils.files import PathLike, atomic_file, file_format, output_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure
else:
    Figure = "matplotlib.figure.Figure"

# Distinguishable with red-green color blindness; the first two are blue and orange.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#555555")
GAIN_COLOR, NOISE_COLOR = "#009e73", "#d55e00"
REFERENCE_COLORS = ("#555555", "#d55e00", "#0072b2", "#e69f00")
_FORMATS = ("png", "svg", "pdf", "eps", "jpg", "webp")  # by the ending of a file name
GRID_COLOR = "#dddddd"
_TITLE_WIDTH = 11  # characters per inch
NOTE_STYLE = {"fontsize": 9, "color": "#555555"}
_LOOK: Any = {"font.family": "DejaVu Sans", "font.size": 10, "axes.edgecolor": "#777777",
              "text.usetex": False, "svg.hashsalt": "meta_policy_search"}


@contextlib.contextmanager
def figure_axes(path: Optional[PathLike], title: str, height: float, width: float = 8.0, rows: int = 1,
                columns: int = 1, ax: Any = None, **options: Any) -> Iterator[np.ndarray]:
    """Yields Matplotlib axes, and writes their figure to `path` when the `with` block ends.

    Args:
        path: file to write: the ending (such as `.svg` or `.png`) determines the format; None for no file.
        title: title of a new figure.
        height: height of a new figure, inches.
        width: width of a new figure, inches.
        rows: number of rows of axes.
        columns: number of columns of axes.
        ax: axes of the user, a single object or an array; None creates a new figure.
        **options: arguments of `Figure.subplots` for a new figure.

    Returns:
        The axes, an array `[rows, columns]`.

    Raises:
        ValueError: `ax` has a different number of axes, or the ending of `path` is no format of a figure.
    """
    import matplotlib

    form = "" if path is None else file_format(path, _FORMATS)
    with matplotlib.rc_context(_LOOK):
        if ax is None:
            all_axes = _new_figure(title, (width, height)).subplots(rows, columns, squeeze=False, **options)
        else:
            if np.size(ax) != rows * columns:
                raise ValueError(f"ax: expected {rows * columns} axes, got {np.size(ax)}")
            all_axes = np.array(ax, dtype=object).reshape(rows, columns)
        yield all_axes
        if path is not None:
            dates = {"svg": "Date", "pdf": "CreationDate"}  # files without a date are reproducible
            with atomic_file(output_path(path)) as file:
                figure_of(all_axes).savefig(file, dpi=200, format=form,
                                            metadata={dates[form]: None} if form in dates else None)


def _new_figure(title: str, size: tuple[float, float]) -> Figure:
    """Returns a figure that pyplot does not keep a reference to, and that notebooks display."""
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=size, layout="constrained")
    figure._repr_png_ = functools.partial(_as_png, figure)  # type: ignore[attr-defined]
    title = title.encode(errors="backslashreplace").decode()  # folder names may contain undecodable bytes
    figure.suptitle(textwrap.fill(title, int(_TITLE_WIDTH * size[0])), fontsize=11, parse_math=False)
    return figure


def _as_png(figure: Figure) -> bytes:
    import matplotlib

    file = io.BytesIO()
    with matplotlib.rc_context(_LOOK):
        figure.savefig(file, format="png")
    return file.getvalue()


def figure_of(all_axes: np.ndarray) -> Figure:
    """Returns the top-level figure of axes, also if they are in a subfigure."""
    return all_axes.flat[0].figure.canvas.figure


def label_curves(all_axes: np.ndarray, ax: Any, *handles_and_labels: Any) -> None:
    """Draws the legend below the panels of a new figure, or into the first axes of the user."""
    if ax is None:
        legend = figure_of(all_axes).legend(*handles_and_labels, loc="outside lower center", frameon=False)
    else:
        legend = all_axes.flat[0].legend(*handles_and_labels, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)


def label_y(axes: Any, label: str, scale: str = "linear") -> None:
    """Labels the vertical axis after its curves were drawn, and draws the grid.

    A logarithmic axis without positive values becomes linear. A linear axis spans at least 5% of its largest absolute
    value, so that it does not magnify the noise of constant curves.
    """
    axes.set_ylabel(label)
    if scale == "log" and any(np.any(np.asarray(line.get_ydata()) > 0.0) for line in axes.lines):
        axes.set_yscale("log", nonpositive="mask")
    else:
        low, high = axes.get_ylim()
        missing = 0.05 * max(abs(low), abs(high)) - (high - low)
        if missing > 0.0:
            axes.set_ylim(low - missing / 2, high + missing / 2)
    axes.grid(color=GRID_COLOR, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def label_x(axes: Any, label: str, is_count: bool = True) -> None:
    """Labels the horizontal axis, which begins at zero; counts have integer ticks."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.set_xlim(left=0.0)
    axes.set_xlabel(label)
    if is_count:
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=(1, 2, 2.5, 5, 10), integer=True))
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))


def point_marker(x: np.ndarray) -> dict[str, Any]:
    """Returns the marker style of a line: markers up to 20 points, none for longer lines."""
    return {"marker": "o" if len(x) <= 20 else None, "markersize": 4}


def step_label(step: int) -> str:
    """Returns the label of a number of adaptation steps, such as "after 2 adaptation steps"."""
    return "before adaptation" if step == 0 else f"after {step} adaptation step{'s' if step > 1 else ''}"


def step_colors(number: int) -> np.ndarray:
    """Returns RGBA colors for `number` adaptation steps, `[number, 4]`."""
    from matplotlib import colormaps

    return colormaps["plasma"](np.linspace(0.1, 0.65, number))
