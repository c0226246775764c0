"""Evaluates the policy in sampled tasks during training and saves the best policy."""
import csv
import os
from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np

from meta_policy_search.evaluation.evaluator import _check_tasks
from meta_policy_search.evaluation.loading import sampling_arguments
from meta_policy_search.evaluation.trial_evaluator import make_evaluator
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.tf_compat import tf
from meta_policy_search.types import Task
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.checks import check_finite, check_int_at_least, check_positive_int
from meta_policy_search.utils.files import write_csv
from meta_policy_search.utils.log_outputs import EVALUATIONS_FILE
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.serializable import Configurable
from meta_policy_search.utils.snapshotter import (
    BEST_FILE,
    SnapshotError,
    describe_snapshot,
    load_snapshot,
    write_snapshot,
)

COLUMNS = ("Itr", "n_timesteps", "ReturnBefore", "ReturnBeforeCI95", "ReturnAfter", "ReturnAfterCI95")


class EvalCallback(Configurable):
    """Callback of a `Trainer` that evaluates the policy in sampled tasks and saves the best policy.

    After iterations `every - 1`, `2 every - 1`, ..., it measures the returns in the same tasks, sampled with the
    argument `seed`. If the environment has only a few tasks, they also occur in training. The callback appends a row to
    `evaluations.csv` in the run folder. If the return after adaptation is larger than in all earlier rows, it saves the
    snapshot `best.pkl`, which `load_run(folder, "best")` and `Run.best` load.

    The callback does not change training: rows and weights are the same as without it. Its environment steps do not
    count in `n_timesteps`.

    The file `evaluations.csv` is the only state of the callback. A resumed run removes the rows and the `best.pkl` that
    were written after its snapshot. Pass a callback with the same arguments to the resumed run; it then equals an
    uninterrupted run. If the process ended during an evaluation, the first iteration of the resumed run repeats it with
    the snapshot of that iteration.

    For `RL2`, the return before adaptation is the return of the first episode of a trial, and the return after
    adaptation is the return of the last episode.

    Args:
        every (int): number of iterations between evaluations; default 10.
        tasks (int or list of tasks): the tasks, or their number; default 20.
        num_steps (int or None): number of adaptation steps; see `MetaEvaluator.evaluate`. Default None: the number in
            training, but at least 1.
        seed (int): seed of tasks and paths; default 0. `evaluate` uses seed 1 by default. Its tasks therefore differ
            from the tasks that selected the best policy.
        patience (int or None): training stops after this number of consecutive evaluations without improvement. Default
            None: no limit.
        target (float or None): training stops when the return after adaptation reaches this value. Default None: no
            target.

    Raises:
        TypeError: an argument has the wrong type; in a call, the loop is not a `Trainer`.
        ValueError: a number is out of range; in a call, the logger has no run folder, `evaluations.csv` was edited, or
            the trainer has another `EvalCallback`.
    """

    def __init__(self, every: int = 10, tasks: Union[int, Sequence[Task]] = 20, num_steps: Optional[int] = None,
                 seed: int = 0, patience: Optional[int] = None, target: Optional[float] = None) -> None:
        self.every = check_positive_int("every", every)
        _check_tasks(tasks)
        self.tasks = tasks
        self.num_steps = None if num_steps is None else check_positive_int("num_steps", num_steps)
        self.seed = check_int_at_least("seed", seed, 0)
        self.patience = None if patience is None else check_positive_int("patience", patience)
        self.target = None if target is None else check_finite("target", target)

    def __call__(self, trainer: Any, row: Row) -> bool:
        """Evaluates the policy if this is due; returns whether training should stop."""
        if not isinstance(trainer, Trainer):
            raise TypeError(f"trainer: expected a Trainer, got a {type(trainer).__name__}")
        if sum(isinstance(callback, EvalCallback) for callback in trainer.callbacks) > 1:
            raise ValueError("callbacks: expected at most one EvalCallback, because a run folder has one file of its "
                             f"results, got {trainer.callbacks}")
        folder = logger.get_dir()
        if folder is None:
            raise ValueError("folder: expected a run folder, got none. Call logger.configure before training")
        itr, stops = trainer.itr - 1, False
        rows = _rows_before(itr, folder)
        is_missing = itr > trainer.start_itr and (not rows or rows[-1]["Itr"] < itr - 1)
        if itr % self.every == 0 and is_missing:
            stops = self._repeat(folder, rows, itr - 1)
        if (itr + 1) % self.every == 0:
            stops |= self._evaluate(folder, rows, trainer, trainer.get_itr_snapshot(itr), row["n_timesteps"])
        return stops

    def _repeat(self, folder: str, rows: List[Dict[str, float]], itr: int) -> bool:
        """Repeats an evaluation that did not finish, with the snapshot of its iteration."""
        with seeding.evaluation_seed(0), tf.Graph().as_default():  # keeps the random generators of training unchanged
            try:
                snapshot = load_snapshot(folder, itr)
                trainer = Trainer.from_snapshot(snapshot)
            except (SnapshotError, ValueError) as error:
                logger.warn(f"no evaluation after iteration {itr}: {error}")
                return False
            trainer.sampler.close()
            return self._evaluate(folder, rows, trainer, snapshot, trainer.sampler.total_timesteps_sampled)

    def _evaluate(self, folder: str, rows: List[Dict[str, float]], trainer: Trainer, snapshot: Dict[str, Any],
                  n_timesteps: int) -> bool:
        """Evaluates a policy and appends the result to `rows` and to the file; returns whether training should stop."""
        evaluator = make_evaluator(trainer, **sampling_arguments(trainer))
        evaluation = evaluator.evaluate(self.tasks, self.num_steps, seeds=(self.seed,))
        (before, after), (before_ci, after_ci) = (values[[0, -1]].tolist() for values in evaluation.mean_return)
        returns = [*(earlier["ReturnAfter"] for earlier in rows), after]
        since_best = len(rows) - int(np.argmax(returns))
        if since_best == 0:  # saved before the row, so that an interrupted evaluation is repeated completely
            write_snapshot(os.path.join(folder, BEST_FILE), snapshot["itr"], snapshot)
        values = (snapshot["itr"], n_timesteps, before, before_ci, after, after_ci)
        rows.append(dict(zip(COLUMNS, values, strict=True)))
        write_csv(os.path.join(folder, EVALUATIONS_FILE), [COLUMNS, *(row.values() for row in rows)])
        logger.log(f"Evaluation after iteration {snapshot['itr']} in {len(evaluation.task_returns)} sampled tasks: "
                   f"return {before:.2f} -> {after:.2f} +- {after_ci:.2f}{'' if since_best else ', the best so far'}")
        is_reached = self.target is not None and after >= self.target
        return is_reached or (self.patience is not None and since_best >= self.patience)


def _rows_before(itr: int, folder: str) -> List[Dict[str, float]]:
    """Returns the rows of `evaluations.csv` before an iteration; removes later rows and a later `best.pkl`.

    Later ones exist if the run was resumed from an earlier snapshot.
    """
    best = describe_snapshot(os.path.join(folder, BEST_FILE))
    if best is not None and best.itr >= itr:
        os.remove(best.path)
    path = os.path.join(folder, EVALUATIONS_FILE)
    if not os.path.exists(path):
        return []
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = [{name: (int if name in COLUMNS[:2] else float)(cells[name]) for name in COLUMNS}
                    for cells in csv.DictReader(file)]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: expected a table of numbers with the columns {', '.join(COLUMNS)}, got {error!r}. "
                         "Restore or delete the file") from error
    kept = [row for row in rows if row["Itr"] < itr]
    if len(kept) < len(rows):
        write_csv(path, [COLUMNS, *(row.values() for row in kept)])
    return kept
