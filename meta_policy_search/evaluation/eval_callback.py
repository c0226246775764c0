"""Evaluates the policy in sampled tasks during training and saves the best policy."""
from typing import Any, Optional, Sequence, Union

from meta_policy_search.envs.registry import SEEDS
from meta_policy_search.evaluation.evaluator import _check_tasks
from meta_policy_search.evaluation.trial_evaluator import make_evaluator
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.types import Task
from meta_policy_search.utils import logger
from meta_policy_search.utils.callbacks import EarlyStopping
from meta_policy_search.utils.checks import check_choice, check_int_at_least, check_positive_int
from meta_policy_search.utils.logger import Row
from meta_policy_search.utils.statistics import Interval


class EvalCallback(EarlyStopping):
    """Callback of a `Trainer` that evaluates the policy in sampled tasks and saves the best policy.

    In iterations `every - 1`, `2 every - 1`, ..., it measures the returns in the same tasks, sampled with the argument
    `seed`. If the environment has only a few tasks, they also occur in training. The callback logs the columns
    `Eval-ReturnBefore` and `Eval-ReturnAfter` (before and after adaptation) and the half-widths of their 95% intervals
    over tasks, `Eval-ReturnBeforeCI95` and `Eval-ReturnAfterCI95`. If the environment reports successes, it also logs
    the success rates `Eval-SuccessBefore` and `Eval-SuccessAfter`. The columns are empty in the rows of other
    iterations. If the return after adaptation is larger than in all earlier evaluations, the trainer saves the
    snapshot `best.pkl`, which `load_run(folder, "best")` and `Run.best` load.

    The callback does not change training: the other columns and the weights are the same as without it. Its environment
    steps do not count in `n_timesteps`.

    For `RL2`, the return before adaptation is the return of the first episode of a trial, and the return after
    adaptation is the return of the last episode.

    Args:
        every (int): number of iterations between evaluations; default 10.
        tasks (int, str or list of tasks): the tasks, or their number; `"train"` or `"test"`: the fixed tasks of the
            environment, see `envs.load_tasks`. Default 20.
        num_steps (int or None): number of adaptation steps; see `MetaEvaluator.evaluate`. Default None: the number in
            training, but at least 1.
        seed (int): seed of tasks and paths; default 0. `evaluate` uses seed 1 by default, so that its tasks are
            not those that selected the best policy, if the environment has enough tasks.
        patience (int or None): training stops after this number of consecutive evaluations without improvement. Default
            None: no limit.
        target (float or None): training stops when the return after adaptation reaches this value. Default None: no
            target.

    Raises:
        TypeError: an argument has the wrong type; in a call, the loop is not a `Trainer`.
        ValueError: a number is out of range; in a call, the logger has no run folder, or the trainer has another
            `EvalCallback`.
    """

    def __init__(self, every: int = 10, tasks: Union[int, str, Sequence[Task]] = 20, num_steps: Optional[int] = None,
                 seed: int = 0, patience: Optional[int] = None, target: Optional[float] = None) -> None:
        super().__init__("Eval-ReturnAfter", patience, target=target)
        self.every = check_positive_int("every", every)
        if isinstance(tasks, str):
            check_choice("tasks", tasks, SEEDS)
        else:
            _check_tasks(tasks)
        self.tasks = tasks
        self.num_steps = None if num_steps is None else check_positive_int("num_steps", num_steps)
        self.seed = check_int_at_least("seed", seed, 0)

    def __call__(self, trainer: Any, row: Row) -> bool:
        """Evaluates the policy if this is due; returns whether training should stop."""
        if not isinstance(trainer, Trainer):
            raise TypeError("trainer: expected a Trainer, of an algorithm that adapts to tasks, got a "
                            f"{type(trainer).__name__}")
        if sum(isinstance(callback, EvalCallback) for callback in trainer.callbacks) > 1:
            raise ValueError("callbacks: expected at most one EvalCallback, because all log the same columns, got "
                             f"{trainer.callbacks}")
        if logger.get_dir() is None:
            raise ValueError("folder: expected a run folder, got none. Call logger.configure before training")
        return (trainer.itr + 1) % self.every == 0 and self._evaluate(trainer)

    def _evaluate(self, trainer: Trainer) -> bool:
        """Evaluates the policy and logs the result; returns whether training should stop."""
        evaluation = make_evaluator(trainer).evaluate(self.tasks, self.num_steps, seeds=(self.seed,))
        (before, after), (before_ci, after_ci) = (values[[0, -1]].tolist() for values in evaluation.mean_return)
        columns = {"Eval-ReturnBefore": before, "Eval-ReturnBeforeCI95": before_ci,
                   "Eval-ReturnAfter": after, "Eval-ReturnAfterCI95": after_ci}
        if evaluation.success_rate is not None:
            columns["Eval-SuccessBefore"], columns["Eval-SuccessAfter"] = evaluation.success_rate[[0, -1]].tolist()
        logger.logkvs(columns)
        is_best, stops = after > self.best, super().__call__(trainer, columns)
        trainer.is_best = is_best
        logger.log(f"Evaluation after iteration {trainer.itr} in {len(evaluation.task_returns)} tasks: "
                   f"return {before:.2f} -> {Interval(after, after_ci):.2f}{', the best so far' if is_best else ''}")
        return stops
