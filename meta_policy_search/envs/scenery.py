"""Draws top views of planar worlds with matplotlib.

Point environments and robots that move in the plane return a `Scenery`. matplotlib is imported with the first image.
"""
from typing import Any, NamedTuple, Optional, Sequence, Union

import numpy as np

from meta_policy_search.envs.compat import adapt_env, attribute, copy_env, layers
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_type

SIZE = 480  # width and height of an image, pixels
_DPI = 100
_TRAIL_COLOR, _GOAL_COLOR, _OTHER_COLOR = "#4472a8", "#2a7f62", "#bbbbbb"
_WALL_COLOR, _GRID_COLOR = "#333333", "#dddddd"
_MARGIN = 1.15  # ratio of the drawn half width to the half width of the world


class Scenery(NamedTuple):
    """The elements of a planar world, in addition to the moving point."""

    half_width: float = 0.0  # half width of the world, a square around the origin
    goal: Optional[np.ndarray] = None  # [2]
    direction: Optional[np.ndarray] = None  # [2], unit vector of the rewarded direction
    other_goals: Union[np.ndarray, Sequence[np.ndarray]] = ()  # each [2], goals of other tasks
    walls: Sequence[np.ndarray] = ()  # lines, each [n, 2]


def position_of(env: Any) -> Any:
    """Returns the attribute `position` of an environment after `reset`, wrapped or not; None if it has none."""
    return next((place for layer in layers(env) if (place := attribute(layer, "position")) is not None), None)


def scenery_of(env: Any) -> Scenery:
    """Returns what the method `scenery` of an environment returns; an empty scenery if it has no such method."""
    return check_type("env.scenery()", attribute(env, "scenery", Scenery)(), Scenery, "a Scenery")


def check_is_planar(env: Any) -> None:
    """Raises `ValueError` unless `env` has a position in the plane (attribute `position`) after `reset`."""
    moved = adapt_env(copy_env(env), needs_tasks=False)
    with seeding.evaluation_seed(0):
        moved.reset()
    if np.shape(position_of(moved)) != (2,):
        raise ValueError("env: expected a planar environment with the attribute position, two numbers (x, y), such as "
                         f"AntRandGoalEnv or MetaPointEnvCornerGoals, got {type(env.unwrapped).__name__}. A video "
                         "needs the method render instead")


def draw(trail: np.ndarray, scenery: Scenery) -> np.ndarray:
    """Returns an image of a moving point, its path and the world.

    Args:
        trail: float64 `[T, 2]`, positions of the path; the last one is the current position. The image is enlarged to
            show positions outside the world.
        scenery: the world.

    Returns:
        RGB image, uint8 `[480, 480, 3]`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_type("scenery", scenery, Scenery, "a Scenery")
    if np.ndim(trail) != 2 or np.shape(trail)[1] != 2:
        raise ValueError(f"trail: expected positions of shape [T, 2], got shape {np.shape(trail)}")
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
    """Draws a world into matplotlib axes and sets their limits so that the world and all trails are visible.

    Args:
        axes: matplotlib axes.
        scenery: the world.
        trails: positions of one or more paths, each `[T, 2]`.
        scale: scale factor of markers and line widths, for images smaller than `SIZE`; default 1.
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
