"""Worlds in the plane as seen from above: what there is besides who moves, and how it is drawn.

Point environments, and robots that walk in the plane, describe themselves by a `Scenery`. matplotlib is loaded when the
first one is drawn.
"""
from typing import Any, NamedTuple, Optional, Sequence, Union

import numpy as np

SIZE = 480  # pixels, width and height of a picture
_DPI = 100
_TRAIL_COLOR, _GOAL_COLOR, _OTHER_COLOR = "#4472a8", "#2a7f62", "#bbbbbb"
_WALL_COLOR, _GRID_COLOR = "#333333", "#dddddd"
_MARGIN = 1.15  # what is drawn, over the half width of the world


class Scenery(NamedTuple):
    """What is drawn of a world in the plane besides the point that moves in it."""

    half_width: float = 0.0  # of the square around the origin in which things happen
    goal: Optional[np.ndarray] = None  # [2]
    direction: Optional[np.ndarray] = None  # [2], of length one, to go in
    other_goals: Union[np.ndarray, Sequence[np.ndarray]] = ()  # each [2], goals that tasks can have
    walls: Sequence[np.ndarray] = ()  # lines, each [n, 2]


def check_is_planar(env: Any) -> None:
    """Raises `ValueError` unless what acts in an environment has a position in the plane."""
    if getattr(env.unwrapped, "position", None) is None:
        raise ValueError("env: expected a world in the plane, whose environment has a position (x, y), such as "
                         f"MetaPointEnvCorner or AntRandGoalEnv, got {type(env.unwrapped).__name__}")


def draw(trail: np.ndarray, scenery: Scenery) -> np.ndarray:
    """Draws a point, its path, its goal, and the world.

    Args:
        trail: positions since the start, `[T, 2]`; the last is where the point is. If they lead out of the world, the
            picture shows more.
        scenery: the world.

    Returns:
        uint8 `[480, 480, 3]`, red, green and blue.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(SIZE / _DPI, SIZE / _DPI), dpi=_DPI)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.09, 0.07, 0.88, 0.88))
    draw_scenery(axes, scenery, [trail])
    axes.plot(*trail.T, color=_TRAIL_COLOR, linewidth=1.2, marker=".", markersize=4)
    _mark(axes, trail[0], marker="o", markersize=7, markerfacecolor="white", markeredgecolor=_TRAIL_COLOR)
    _mark(axes, trail[-1], marker="o", markersize=9, color=_TRAIL_COLOR)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def draw_scenery(axes: Any, scenery: Scenery, trails: Sequence[np.ndarray], scale: float = 1.0) -> None:
    """Draws a world into matplotlib axes that are wide enough for it and for the trails.

    Args:
        axes: where to draw.
        scenery: the world.
        trails: positions, each `[T, 2]`, at least one.
        scale: size of goals and walls, for pictures smaller than `SIZE`.
    """
    limit = _MARGIN * max(scenery.half_width, *(float(np.abs(trail).max()) for trail in trails))
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    axes.grid(color=_GRID_COLOR, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, length=0)
    for spine in axes.spines.values():
        spine.set_color(_GRID_COLOR)
    for wall in scenery.walls:
        axes.plot(*wall.T, color=_WALL_COLOR, linewidth=2.5 * scale, solid_capstyle="butt")
    for goal in scenery.other_goals:
        _mark(axes, goal, marker="*", markersize=16 * scale, markerfacecolor="white", markeredgecolor=_OTHER_COLOR)
    if scenery.goal is not None:
        _mark(axes, scenery.goal, marker="*", markersize=18 * scale, color=_GOAL_COLOR)
    if scenery.direction is not None:
        axes.annotate("", 0.95 * limit * np.asarray(scenery.direction), (0.0, 0.0),
                      arrowprops={"arrowstyle": "-|>", "color": _GOAL_COLOR, "linewidth": 2.0 * scale})


def _mark(axes: Any, place: np.ndarray, **style: Any) -> None:
    axes.plot(*place, linestyle="none", zorder=3, clip_on=False, **style)
