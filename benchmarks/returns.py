"""Time from the start of a process until its policy reaches a published return."""
import tempfile
import time
from typing import Any, Mapping

from benchmarks.processes import Figures

RUNS = (("half_cheetah_direction", "published_settings"), ("half_cheetah_direction", "fast"),
        ("half_cheetah_direction", "few_tasks"),
        ("half_cheetah_velocity", "published_settings"), ("half_cheetah_velocity", "fast"),
        ("walker_direction", "fast"))
"""Names of goals and methods: entries of `experiments/reproduction` without the prefix `minutes_`, with a method."""


def measure_time_to_return(started: float, goal: str, method: str, seed: int, settings: Mapping[str, Any]) -> Figures:
    """Trains until the mean return after adaptation in 20 sampled tasks reaches a published return.

    Every fifth iteration is evaluated, with as many paths per task as in training.

    Args:
        started: start of the process on the system's monotonic clock, in seconds.
        goal: a goal in `RUNS`.
        method: a method of the goal.
        seed: seed of the training.
        settings: settings that differ from those of the entry. With `n_itr`, training may end before the return is
            reached; this is for smoke tests.

    Raises:
        RuntimeError: the return was not reached within 1000 iterations.
    """
    import meta_policy_search as mps
    from experiments.reproduction.entries import ENTRIES, script_settings

    entry = ENTRIES[f"minutes_{goal}"]
    found = next(each for each in entry.methods if each.name == method)
    if goal == "walker_direction":  # ProMP after 30 million steps
        target = dict(ENTRIES["figure_2_walker_direction"].methods[-1].published_curve)[30]
    else:
        target = ENTRIES[goal].methods[0].published[1]
    known = script_settings(found.script, {**entry.settings, **found.settings, "n_itr": 1000, **settings})
    with tempfile.TemporaryDirectory() as folder:
        run = mps.train(**known, seed=seed, dump_path=f"{folder}/run", log_formats=["csv"], progress_bar=False,
                        callbacks=[mps.EvalCallback(5, target=target)])
        seconds, steps = time.monotonic() - started, run.progress["n_timesteps"]
    if len(steps) == 1000:
        raise RuntimeError(f"{goal}, {method}, seed {seed}: expected a mean return of {target} within 1000 iterations")
    prefix = f"returns.{goal}.{method}"
    return {f"{prefix}.total_s": seconds, f"{prefix}.iterations": len(steps), f"{prefix}.env_steps": float(steps[-1])}
