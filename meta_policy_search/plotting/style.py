"""What pictures share: how they are written, colors, axes, and the names of adaptation steps."""
import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from meta_policy_search.utils.files import atomic_file

GAIN_COLOR = "#2a7f62"
NOISE_COLOR = "#c0504d"
REFERENCE_COLORS = ("#777777", "#c0504d", "#4472a8", "#b8860b")
GRID_COLOR = "#dddddd"
NOTE_STYLE = {"fontsize": 9, "color": "#555555"}


@contextlib.contextmanager
def picture(path: str, title: str, height: float, width: float = 8.0) -> Iterator[Any]:
    """Gives a figure, sizes in inches, that is written as the PNG file `path` when the block ends."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # draws without a display, and without pyplot's state
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    title = title.encode(errors="backslashreplace").decode()  # names of folders may have bytes that are no text
    figure.suptitle(title, fontsize=11, parse_math=False)
    yield figure
    with atomic_file(path) as file:
        figure.savefig(file, format="png", dpi=120)


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
