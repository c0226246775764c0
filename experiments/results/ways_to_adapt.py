"""Draws the ways to adapt over environment steps: all, some or no parameters by gradient steps, or recurrence.

    python -m experiments.results.ways_to_adapt

The data are those of the entries `partial_adaptation_*`, `half_cheetah_direction` and `rl2_*` of
`experiments/reproduce.py`. The figure `ways_to_adapt.svg` shows the return in training after one adaptation step, for
RL2 the return of the second episode of a trial.
"""
import os

from experiments.results import reproduced
from experiments.results.draw import curve
from meta_policy_search.plotting import plot_comparison, return_columns

PATH = os.path.join(reproduced.HERE, "ways_to_adapt.svg")
SOURCES = {  # panel: entry and methods
    "2D navigation": {"partial_adaptation_navigation": ("maml", "anil", "boil", "cavia"),
                      "rl2_navigation": ("pro_mp", "rl2")},
    "half cheetah direction": {"partial_adaptation_direction": ("maml", "anil", "boil", "cavia"),
                               "half_cheetah_direction": ("pro_mp",), "rl2_half_cheetah": ("rl2",)},
}
LABELS = {"maml": "MAML (TRPO)", "anil": "ANIL", "boil": "BOIL", "cavia": "CAVIA", "pro_mp": "ProMP", "rl2": "RL2"}


def draw(path: str = PATH) -> None:
    """Draws the figure from the runs that have data."""
    panels = {}
    for panel, entries in SOURCES.items():
        trainings = {method: reproduced.read_training(name).get(method, {})
                     for name, methods in entries.items() for method in methods}
        columns = {method: return_columns(next(iter(runs.values())))["return after adaptation"]
                   for method, runs in trainings.items() if runs}
        panels[f"{panel}: return"] = [curve(LABELS[method], list(trainings[method].values()), column, "n_timesteps")
                                      for method, column in columns.items()]
    plot_comparison(panels, path, "Return after adaptation", "environment steps", smooth=5)


if __name__ == "__main__":
    draw()
