"""Results of an evaluation in held-out tasks: statistics, tables, files and figures."""
import dataclasses
import json
import os
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.plotting import describe_task, plot_adaptation_curve
from meta_policy_search.plotting.style import Figure
from meta_policy_search.types import Task
from meta_policy_search.utils.files import PathLike, make_folder, output_path, user_path, write_csv, write_text
from meta_policy_search.utils.progress import shown_as_text, text_table
from meta_policy_search.utils.statistics import Interval, exact_mean, mean_interval, worst_quarter
from meta_policy_search.utils.utils import ClassEncoder

_FEW_TASKS = 4  # maximum number of different tasks that tables list separately


@shown_as_text
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Evaluation:
    """Returns of a policy in each task, before adaptation and after each adaptation step.

    Consoles and notebooks show `table()`.

    Returns are undiscounted sums of rewards. The methods that print, plot and save accept further evaluations
    (`*references`) for comparison, for example the evaluation of an untrained policy.

    Args:
        name: name of the policy.
        returns: float64 `[S, M, K + 1]`, mean return over the paths of a task, by seed, task and number of adaptation
            steps.
        tasks: `S` lists of `M` tasks, one list per seed.
        are_given: True if the user gave the tasks (the same for every seed), False if each seed sampled its tasks.
        seeds: the `S` seeds.
        step_sizes: sizes of the `K` adaptation steps; None if the algorithm's own step sizes were used.
        rollouts_per_meta_task: number of paths of each task, before adaptation and again after each adaptation step.
        max_path_length: maximum number of steps of a path.
        num_timesteps: number of environment steps of all seeds together.
        timesteps: int `[S, M, K + 1]`, cumulative number of environment steps used to adapt to a task. Paths that only
            measure returns do not count.
        trained_steps: number of adaptation steps in training, which the last line of `table` reports. Default None
            (unknown): that line reports all `K` steps of the evaluation.
        success: float64 `[S, M, K + 1]`, share of successful paths, those with a true `success` or `is_success` in the
            info of at least one step. Default None: no step of any path has these infos.
        deterministic: whether returns were measured without the noise of the policy; default False.
    """

    name: str
    returns: np.ndarray
    tasks: Tuple[List[Task], ...]
    are_given: bool
    seeds: Tuple[int, ...]
    step_sizes: Optional[Tuple[float, ...]]
    rollouts_per_meta_task: int
    max_path_length: int
    num_timesteps: int
    timesteps: np.ndarray
    trained_steps: Optional[int] = None
    success: Optional[np.ndarray] = None
    deterministic: bool = False

    @property
    def task_returns(self) -> np.ndarray:
        """Mean return in each task, float64 `[tasks, K + 1]`; averaged over seeds if the tasks were given.

        For sampled tasks, the first axis contains the tasks of all seeds (`S * M`).
        """
        return exact_mean(self.returns) if self.are_given else self.returns.reshape(-1, self.returns.shape[-1])

    @property
    def mean_timesteps(self) -> np.ndarray:
        """Mean number of environment steps used to adapt to a task, float64 `[K + 1]`."""
        return exact_mean(np.concatenate(self.timesteps))

    @property
    def mean_return(self) -> Interval:
        """Mean return over tasks and its 95% interval (Student's t), `[K + 1]` each."""
        return mean_interval(self.task_returns)

    @property
    def gain(self) -> Interval:
        """Mean adaptation gain over tasks and its 95% interval (Student's t), `[K + 1]` each.

        The gain of a task is its return minus its return before adaptation.
        """
        return mean_interval(self.task_returns - self.task_returns[:, :1])

    @property
    def worst_quarter(self) -> np.ndarray:
        """Mean return over the 25% of tasks with the lowest return after a step (CVaR), float64 `[K + 1]`."""
        return worst_quarter(self.task_returns)

    @property
    def success_rate(self) -> Optional[np.ndarray]:
        """Share of successful paths in all tasks, float64 `[K + 1]`; None if the environment reports no successes."""
        return None if self.success is None else exact_mean(np.concatenate(self.success))

    def __str__(self) -> str:
        return self.table()

    def table(self, *references: "Evaluation") -> str:
        """Formats the mean returns as a text table, with one row per policy.

        Further rows show the adaptation gain, the success rate if the environment reports successes, and the return of
        the worst quarter of the tasks or, if there are two to four different ones, the mean return in each of them. The
        last line states the gain after `trained_steps` adaptation steps, or after all steps if training had none.

        Raises:
            ValueError: a reference was evaluated in another number of tasks.
        """
        if wrong := [other for other in references if other.returns.shape[:2] != self.returns.shape[:2]]:
            raise ValueError("references: expected evaluations in the same tasks, got (seeds, tasks) = "
                             f"{wrong[0].returns.shape[:2]} instead of {self.returns.shape[:2]}")
        rows, gains = [], [f"{Interval(*gain):+.2f}" for gain in zip(*self.gain)]
        for evaluation in (self, *references):
            rows.append([evaluation.name, *(f"{Interval(*each):.2f}" for each in zip(*evaluation.mean_return))])
            rows += [["    gained", "", *gains[1:]]] if evaluation is self else []
            rows += evaluation._rows_of_tasks()
        width = max(map(len, rows))
        rows = [["adaptation steps", *map(str, range(width - 1))], *rows]
        lines = text_table([row + [""] * (width - len(row)) for row in rows], right=range(1, width))
        step = min(self.trained_steps or len(gains) - 1, len(gains) - 1)
        said = "" if self.trained_steps is None else f" (trained for {self.trained_steps})"
        return (f"Mean return, +- half of its 95% interval over {self._describe()}\n{lines}\n"
                f"Adaptation changes the return by {gains[step]} in {_count(step, 'step')}{said}")

    @property
    def _has_many_tasks(self) -> bool:
        """Whether there are more different tasks than a table lists separately."""
        return len({task_key(task) for of_seed in self.tasks for task in of_seed}) > _FEW_TASKS

    def _rows_of_tasks(self) -> List[List[str]]:
        """Returns the rows of the success rate, and of the worst quarter of many tasks or each of few tasks."""
        rows = [] if self.success_rate is None else [("    success rate", self.success_rate)]
        tasks = [task for of_seed in self.tasks[:1 if self.are_given else None] for task in of_seed]
        names, keys = {task_key(task): describe_task(task) for task in tasks}, list(map(task_key, tasks))
        if self._has_many_tasks:
            rows.append(("    worst quarter", self.worst_quarter))
        elif len(names) > 1:
            rows += [(f"    task {names[key]}", exact_mean(self.task_returns[[other == key for other in keys]]))
                     for key in sorted(names, key=names.__getitem__)]
        return [[label, *(f"{value:.2f}" for value in values)] for label, values in rows]

    def plot(self, path: Optional[PathLike] = None, *references: "Evaluation", title: Optional[str] = None,
             ax: Any = None) -> Figure:
        """Plots the mean return over the number of adaptation steps, with 95% intervals over tasks.

        Args:
            path: file to write: the ending (such as `.svg` or `.png`) determines the format. Default None: no file.
            *references: evaluations to compare with.
            title: title of the figure. Default None: "Adaptation of" and the name of the policy.
            ax: Matplotlib axes to draw into. Default None: a new figure.

        Returns:
            The figure.
        """
        return self._plot(path, references, title, ax, " Thin lines: single tasks.")

    def plot_timesteps(self, path: Optional[PathLike] = None, *references: "Evaluation", title: Optional[str] = None,
                       ax: Any = None) -> Figure:
        """Plots the mean return over the environment steps used to adapt (`timesteps`); arguments as for `plot`."""
        return self._plot(path, references, title, ax, timesteps=[e.mean_timesteps for e in (self, *references)])

    def write_csv(self, path: PathLike, *references: "Evaluation") -> None:
        """Writes mean returns and gains to a CSV file, with one row per policy and adaptation step.

        The columns `return_ci95` and `gain_ci95` are the half widths of the 95% intervals over tasks. The column
        `timesteps` is the mean number of environment steps used to adapt to a task. If an environment reports
        successes, there is a column `success_rate`.
        """
        header = ["policy", "step", "timesteps", "return", "return_ci95", "gain", "gain_ci95"]
        all_rates = [evaluation.success_rate for evaluation in (self, *references)]
        has_success = any(rates is not None for rates in all_rates)
        rows: List[Sequence[Any]] = [[*header, "success_rate"] if has_success else header]
        for evaluation, rates in zip((self, *references), all_rates, strict=True):
            rates = np.full(evaluation.returns.shape[-1], np.nan) if rates is None else rates
            columns = zip(evaluation.mean_timesteps, *evaluation.mean_return, *evaluation.gain,
                          *([rates] if has_success else []), strict=True)
            rows += [(evaluation.name, step, *map(float, row)) for step, row in enumerate(columns)]
        write_csv(output_path(path), rows)

    def write_json(self, path: PathLike, *references: "Evaluation") -> None:
        """Writes all fields of the evaluations to a JSON file, as a list; intervals of a single task are null."""
        content = []
        for evaluation in (self, *references):
            fields = {**vars(evaluation), "tasks": [list(map(_as_json, tasks)) for tasks in evaluation.tasks]}
            for name, (mean, half_width) in (("mean_return", evaluation.mean_return), ("gain", evaluation.gain)):
                fields[name] = mean
                fields[f"{name}_ci95"] = None if np.isnan(half_width).any() else half_width
            content.append(fields)
        write_text(output_path(path), json.dumps(content, cls=ClassEncoder, indent=2) + "\n")

    def save(self, folder: PathLike, *references: "Evaluation") -> str:
        """Writes `evaluation.json`, `returns.csv`, `adaptation_curve.png` and `return_over_timesteps.png`.

        Files of an earlier evaluation are replaced.

        Args:
            folder: folder for the files; created if missing.
            *references: evaluations to compare with.

        Returns:
            The folder.
        """
        folder = make_folder("folder", user_path("folder", folder))
        self.write_json(os.path.join(folder, "evaluation.json"), *references)
        self.write_csv(os.path.join(folder, "returns.csv"), *references)
        self.plot(os.path.join(folder, "adaptation_curve.png"), *references)
        self.plot_timesteps(os.path.join(folder, "return_over_timesteps.png"), *references)
        return folder

    def _plot(self, path: Optional[PathLike], references: Sequence["Evaluation"], title: Optional[str], ax: Any,
              note: str = "", timesteps: Optional[List[np.ndarray]] = None) -> Figure:
        curves = [(e.name, e.task_returns) for e in (self, *references)]
        note = f"Bars: 95% interval over {self._describe()}.{note}"
        return plot_adaptation_curve(curves, path, title or f"Adaptation of {self.name}", note, timesteps, ax)

    def _describe(self) -> str:
        paths = self.rollouts_per_meta_task * (len(self.seeds) if self.are_given else 1)
        noise = ", without the noise of the policy" * self.deterministic
        return f"{_count(len(self.task_returns), 'task')}, {_count(paths, 'path')} per task and step{noise}"


def task_key(task: Task) -> str:
    """Returns a text that identifies a task: different tasks have different texts."""
    return json.dumps(_as_json(task))


def _as_json(task: Task) -> Any:
    """Converts a task to JSON types, or to its `repr` if it cannot be converted."""
    try:
        return json.loads(json.dumps(task, cls=ClassEncoder))
    except (TypeError, ValueError):
        return repr(task)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
