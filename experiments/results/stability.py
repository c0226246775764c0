"""Compares settings that prevent ProMP from losing its adaptation gain in long runs on the half cheetah.

    python -m experiments.results.stability   # one hour on one core

The script trains the preset of `make train` for more iterations. From iteration 75 on, each variant continues the run
with other settings, in the same tasks and with the same random numbers. `pro_mp_stability.csv` contains the returns of
forward and backward tasks, the loss after the meta-update, and the KL divergence of the adapted policies caused by the
meta-update. `draw.py` plots the file.
"""
import os
from collections.abc import Iterator
from typing import Any, Optional

import numpy as np

from experiments.results.entries import build, preset
from experiments.results.gradient_variance import sample_and_adapt
from meta_policy_search.utils.files import write_csv

HERE = os.path.dirname(os.path.abspath(__file__))
BEGIN = 75
ENDS = {"as before": 130, "40 tasks": 110, "half the learning rate": 140, "learning rate to 0": 150}
COLUMNS = ("Itr", "forward_before", "backward_before", "forward_after", "backward_after", "LossAfter", "KLOuter")


State = tuple[Any, Any]  # of policy and algorithm


def train(name: str, state: Optional[State] = None, **settings: Any) -> Iterator[tuple[list[float], State]]:
    """Trains a variant from the start, or from a state at iteration `BEGIN`; yields a row and a state per iteration."""
    tasks = {"meta_batch_size": 40} if name == "40 tasks" else {}
    settings = {**preset("train_half_cheetah"), "n_itr": ENDS[name], **tasks, **settings}
    trainer = build("pro_mp", settings)
    algo, policy, sampler = trainer.algo, trainer.policy, trainer.sampler
    paths = settings["rollouts_per_meta_task"]
    if state:
        policy.set_params(state[0])
        algo.set_state(state[1])
    for itr in range(ENDS[name]):
        if state and itr < BEGIN:
            sampler.update_tasks()
            continue
        if "learning rate" in name:
            algo.learning_rate = 5e-4 * (1.0 if "half" in name else (ENDS[name] - itr) / (ENDS[name] - BEGIN))
        before, after = sample_and_adapt(trainer)
        algo.optimize_policy([before, after], log=False)
        stats = algo.compute_stats([before, after])
        forward = np.array(sampler.tasks) > 0
        returns = [np.mean([task["rewards"].sum() / paths for task, own in zip(samples, which, strict=True) if own])
                   for samples in (before, after) for which in (forward, ~forward)]
        yield [itr, *returns, stats["LossAfter"], stats["KLOuter"]], (policy.get_param_values(), algo.get_state())
    sampler.close()


def train_all(path: str) -> None:
    """Trains all variants and writes their rows to a CSV file."""
    rows, begin = [], None
    for name in ENDS:
        for row, state in train(name, begin):
            rows.append((name, *(f"{value:.6g}" for value in row)))
            if row[0] == BEGIN - 1:
                begin = state
    write_csv(path, [("variant", *COLUMNS), *rows])


if __name__ == "__main__":
    train_all(os.path.join(HERE, "pro_mp_stability.csv"))
