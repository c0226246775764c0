"""Leaderboards: all methods of an environment at equal numbers of environment steps, in the same sampled tasks."""
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from meta_policy_search.plotting import style
from meta_policy_search.utils.statistics import RESAMPLINGS, Score, interquartile_mean

REFERENCE = "pro_mp"  # the method that the others are compared with
BOARDS: Mapping[str, Mapping[str, Sequence[str]]] = {  # heading: entry to methods
    "Half cheetah, forward or backward": {
        "half_cheetah_direction": ("pro_mp", "pro_mp_value_network", "trpo_maml", "all_tasks", "oracle", "random"),
        "outer_steps_direction": ("e_maml", "vpg_maml", "dice_maml"),
        "partial_adaptation_direction": ("anil", "boil", "cavia"), "rl2_half_cheetah": ("rl2",)},
    "Half cheetah, goal velocity": {
        "half_cheetah_velocity": ("pro_mp", "trpo_maml", "all_tasks", "oracle", "random"),
        "partial_adaptation_velocity": ("anil", "boil", "cavia")},
    "2D navigation": {
        "partial_adaptation_navigation": ("maml", "anil", "boil", "cavia"),
        "outer_steps_navigation": ("e_maml", "vpg_maml", "dice_maml"), "rl2_navigation": ("pro_mp", "rl2")},
}


class Line(NamedTuple):
    """One method of a leaderboard."""

    method: str
    label: str
    entry: str
    scores: np.ndarray  # returns in sampled tasks after adaptation as in training, [seeds, tasks]
    timesteps: float  # environment steps of training


def table(lines: Sequence[Line]) -> Iterator[str]:
    """Yields the rows of a leaderboard, best method first."""
    reference = next((line.scores for line in lines if line.method == REFERENCE), None)
    yield ("| method | entry | number of seeds | million steps | interquartile mean | "
           "probability of a higher return than ProMP |")
    yield "|---" * 6 + "|"
    for middle, line in sorted(((interquartile_mean(line.scores), line) for line in lines), reverse=True):
        better = ("" if reference is None or line.scores is reference else
                  "{:.2f} [{:.2f}, {:.2f}]".format(*probability_of_improvement(line.scores, reference)))
        yield (f"| {line.label} | `{line.entry}` | {len(line.scores)} | {line.timesteps / 1e6:.1f} | "
               f"{middle.mean:.2f} [{middle.low:.2f}, {middle.high:.2f}] | {better} |")


def probability_of_improvement(scores: np.ndarray, others: np.ndarray) -> Score:
    """Returns the probability that a method has a higher return than another method in the same task.

    It is the mean over tasks and pairs of seeds; equal returns count one half (Agarwal et al. 2021, arXiv:2108.13264).
    The 95% interval is a percentile bootstrap over the seeds of both methods and the tasks, with a fixed seed.

    Args:
        scores: returns of the method, `[seeds, tasks]`.
        others: returns of the other method in the same tasks, `[seeds, tasks]`.
    """
    difference = scores[:, None] - others[None]
    wins = (np.sign(difference) + 1.0) / 2.0  # [seeds, seeds of the other method, tasks]
    rng = np.random.default_rng(1)
    first, second, tasks = (rng.integers(size, size=(RESAMPLINGS, size)) for size in wins.shape)
    means = wins[first[:, :, None, None], second[:, None, :, None], tasks[:, None, None, :]].mean(axis=(1, 2, 3))
    return Score(float(wins.mean()), *np.quantile(means, (0.025, 0.975)))


def draw(boards: Mapping[str, Sequence[Line]], path: str) -> None:
    """Plots performance profiles: the fraction of tasks and seeds with a return above a threshold."""
    title = "Performance profiles: returns after adaptation"
    methods = list(dict.fromkeys(line.method for lines in boards.values() for line in lines))
    with style.figure_axes(path, title, 3.2 * len(boards), rows=len(boards)) as axes:
        for (heading, lines), panel in zip(boards.items(), axes[:, 0], strict=True):
            for line in lines:
                index = methods.index(line.method)  # the same color and style in all panels
                panel.ecdf(line.scores.ravel(), complementary=True, label=line.label,
                           linestyle="-" if index < len(style.COLORS) else "--",
                           color=style.COLORS[index % len(style.COLORS)])
            panel.set_title(heading, fontsize=10)
            panel.set_xlabel("return")
            style.label_y(panel, "fraction above")
            panel.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
