"""Draws the paths of trained policies before adaptation, as Figure 4 of the ProMP paper (arXiv:1810.06784).

    python -m experiments.results.exploration_paths

The policies are those of the entries `exploration_momentum` and `exploration_published` of `experiments/reproduce.py`
that have weights. Each panel shows 20 paths of the first seed of a method, in the world with four corners.
"""
import os

import numpy as np

from experiments.results import reproduced
from experiments.results.entries import ENTRIES, Method, build
from meta_policy_search.plotting import style

NAMES = ("exploration_momentum", "exploration_published")
PATHS = 5  # paths per corner
LIMIT = 4.0  # shown part of the world; the corners are at (+-2, +-2)


def positions(name: str, method: Method, seed: int) -> np.ndarray:
    """Samples paths of a trained policy before adaptation; returns their positions `[4 * PATHS, T, 2]`."""
    settings = {**ENTRIES[name].settings, **method.settings, "meta_batch_size": 4, "rollouts_per_meta_task": PATHS}
    trainer = build(method.script, {**settings, "seed": 1})
    trainer.policy.load_npz(reproduced.weights_path(name, method.name, seed))
    trainer.sampler.update_tasks([np.array(corner) for corner in ((-2, -2), (-2, 2), (2, -2), (2, 2))])
    paths = trainer.sampler.obtain_samples()
    trainer.sampler.close()
    return np.array([path["observations"][:, :2] for of_task in paths.values() for path in of_task])


def draw(name: str) -> str:
    """Draws the paths of all trained methods of an entry; returns the path of the figure."""
    path, methods = os.path.join(reproduced.FOLDER, f"{name}_paths.svg"), list(reproduced.trained(name))
    with style.figure_axes(path, "Paths before adaptation", 2.6, columns=len(methods), width=2.4 * len(methods),
                           sharex=True, sharey=True) as all_axes:
        for panel, (method, seed) in zip(all_axes[0], methods, strict=True):
            for x, y in positions(name, method, seed)[:, ::2].swapaxes(1, 2):
                panel.plot(x, y, color=style.COLORS[0], linewidth=0.5, alpha=0.6)
            panel.plot([-2, -2, 2, 2], [-2, 2, -2, 2], "o", color=style.COLORS[1], markersize=5)
            panel.set(xlim=(-LIMIT, LIMIT), ylim=(-LIMIT, LIMIT), aspect="equal")
            panel.set_title(method.label, fontsize=8)
    return path


if __name__ == "__main__":
    for entry in NAMES:
        if any(reproduced.trained(entry)):
            print(os.path.relpath(draw(entry)))
