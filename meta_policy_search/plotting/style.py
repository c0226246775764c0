"""What pictures share: how they are written, colors, axes, and the names of adaptation steps."""
import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from meta_policy_search.utils.files import atomic_file

# Told apart without red and green; the first two of them are blue and orange.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#555555")
GAIN_COLOR, NOISE_COLOR = "#009e73", "#d55e00"
REFERENCE_COLORS = ("#555555", "#d55e00", "#0072b2", "#e69f00")
GRID_COLOR = "#dddddd"
NOTE_STYLE = {"fontsize": 9, "color": "#555555"}
_LOOK: Any = {"font.family": "DejaVu Sans", "font.size": 10, "axes.edgecolor": "#777777",
              "svg.hashsalt": "meta_policy_search"}


@contextlib.contextmanager
def picture(path: str, title: str, height: float, width: float = 8.0) -> Iterator[Any]:
    """Gives a figure, sizes in inches, that is written when the block ends: as SVG if `path` ends so, else as PNG."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # draws without a display, and without pyplot's state
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_LOOK):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        title = title.encode(errors="backslashreplace").decode()  # names of folders may have bytes that are no text
        figure.suptitle(title, fontsize=11, parse_math=False)
        yield figure
        is_svg = path.lower().endswith(".svg")
        with atomic_file(path) as file:
            form = {"format": "svg", "metadata": {"Date": None}} if is_svg else {"format": "png"}
            figure.savefig(file, dpi=200, **form)


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
