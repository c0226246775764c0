"""What pictures share: figures and how they are written, colors, axes, and the names of adaptation steps."""
import contextlib
import functools
import io
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from meta_policy_search.utils.files import PathLike, atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure
else:
    Figure = "matplotlib.figure.Figure"

# Told apart without red and green; the first two of them are blue and orange.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#555555")
GAIN_COLOR, NOISE_COLOR = "#009e73", "#d55e00"
REFERENCE_COLORS = ("#555555", "#d55e00", "#0072b2", "#e69f00")
GRID_COLOR = "#dddddd"
NOTE_STYLE = {"fontsize": 9, "color": "#555555"}
_LOOK: Any = {"font.family": "DejaVu Sans", "font.size": 10, "axes.edgecolor": "#777777",
              "svg.hashsalt": "meta_policy_search"}


@contextlib.contextmanager
def picture(path: Optional[PathLike], title: str, height: float, width: float = 8.0, rows: int = 1, columns: int = 1,
            ax: Any = None, **options: Any) -> Iterator[np.ndarray]:
    """Gives axes, `[rows, columns]`; when the block ends, their figure is written to `path`, if any, as SVG or PNG.

    They are a user's (`ax`, one or an array; another number of axes is a `ValueError`), else those of a new figure with
    this title and size in inches, `options` being those of `Figure.subplots`.
    """
    import matplotlib

    with matplotlib.rc_context(_LOOK):
        if ax is None:
            all_axes = _new_figure(title, (width, height)).subplots(rows, columns, squeeze=False, **options)
        else:
            all_axes = np.array(ax, dtype=object).reshape(rows, columns)
        yield all_axes
        if path is not None:
            is_svg = os.fspath(path).lower().endswith(".svg")
            with atomic_file(path) as file:
                form = {"format": "svg", "metadata": {"Date": None}} if is_svg else {"format": "png"}
                figure_of(all_axes).savefig(file, dpi=200, **form)


def _new_figure(title: str, size: tuple[float, float]) -> Figure:
    """Returns a figure that pyplot does not hold on to, and that notebooks show."""
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=size, layout="constrained")
    figure._repr_png_ = functools.partial(_as_png, figure)  # type: ignore[attr-defined]
    title = title.encode(errors="backslashreplace").decode()  # names of folders may have bytes that are no text
    figure.suptitle(title, fontsize=11, parse_math=False)
    return figure


def _as_png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def figure_of(all_axes: np.ndarray) -> Figure:
    """Returns the figure that axes are in, that of a subfigure as a whole."""
    return all_axes.flat[0].figure.canvas.figure


def label_curves(all_axes: np.ndarray, ax: Any, *handles_and_labels: Any) -> None:
    """Draws the legend of a picture: below its panels, or into the first of a user's axes."""
    if ax is None:
        figure_of(all_axes).legend(*handles_and_labels, loc="outside lower center", frameon=False)
    else:
        all_axes.flat[0].legend(*handles_and_labels, frameon=False)


def label_y(axes: Any, label: str, scale: str = "linear") -> None:
    """Labels the vertical axis, and gives the axes their grid."""
    axes.set_ylabel(label)
    axes.set_yscale(scale)
    axes.grid(color=GRID_COLOR, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def label_x(axes: Any, label: str, is_count: bool = True) -> None:
    """Labels the horizontal axis, which begins at zero; counts have whole numbers."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.set_xlim(left=0.0)
    axes.set_xlabel(label)
    if is_count:
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=(1, 2, 2.5, 5, 10), integer=True))
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))


def point_marker(x: np.ndarray) -> dict[str, Any]:
    """Returns the markers of a line: none where it has many points."""
    return {"marker": "o" if len(x) <= 20 else None, "markersize": 4}


def step_label(step: int) -> str:
    """Returns when something was after so many adaptation steps, in words."""
    return "before adaptation" if step == 0 else f"after {step} adaptation step{'s' if step > 1 else ''}"


def step_colors(number: int) -> np.ndarray:
    """Returns a color for each of so many adaptation steps, `[number, 4]`."""
    from matplotlib import colormaps

    return colormaps["plasma"](np.linspace(0.1, 0.65, number))
