"""The results of an evaluation in held-out tasks, as tables, files and figures."""
import dataclasses
import json
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.plotting import plot_adaptation_curve
from meta_policy_search.plotting.style import Figure
from meta_policy_search.types import Task
from meta_policy_search.utils.files import PathLike, write_csv, write_text
from meta_policy_search.utils.statistics import Interval, mean_interval
from meta_policy_search.utils.utils import ClassEncoder


@dataclasses.dataclass(frozen=True, repr=False)
class Evaluation:
    """Returns of a policy in each task after each adaptation step, such as a gradient step.

    Returns are undiscounted sums of rewards. The methods that print, plot and save accept further evaluations to
    compare with, for example of an untrained policy.

    Args:
        name: name of the policy.
        returns: float64 `[S, M, K + 1]`, mean return of a task's paths by seed, task and number of adaptation steps.
        tasks: the tasks of each seed, `S` lists of `M`.
        are_given: whether the tasks were given, and so are the same for every seed, or sampled for each seed.
        seeds: the `S` seeds.
        step_sizes: sizes of the `K` adaptation steps; None for the algorithm's own.
        rollouts_per_meta_task: paths in each task after each number of steps.
        max_path_length: most steps of a path.
        num_timesteps: environment steps of all seeds together.
        timesteps: int `[S, M, K + 1]`, environment steps taken in a task to adapt to it so far; paths that only measure
            returns do not count.
        trained_steps: adaptation steps in training, for the last line of `table`; None if unknown, for the `K` steps of
            the evaluation.
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

    @property
    def task_returns(self) -> np.ndarray:
        """The mean return in each task, float64 `[tasks, K + 1]`; given tasks are averaged over seeds."""
        return self.returns.mean(axis=0) if self.are_given else self.returns.reshape(-1, self.returns.shape[-1])

    @property
    def mean_timesteps(self) -> np.ndarray:
        """The mean over tasks of the environment steps taken in a task to adapt to it, float64 `[K + 1]`."""
        return self.timesteps.mean(axis=(0, 1))

    @property
    def mean_return(self) -> Interval:
        """The mean return with its 95% interval over tasks, `[K + 1]` each."""
        return mean_interval(self.task_returns)

    @property
    def gain(self) -> Interval:
        """The mean over tasks of the return minus that before adaptation, with its 95% interval, `[K + 1]` each."""
        return mean_interval(self.task_returns - self.task_returns[:, :1])

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<Evaluation of {self.name}, {self._describe()}>"

    def table(self, *references: "Evaluation") -> str:
        """Returns the mean returns as a text table with a row for each policy, and the gain from adaptation.

        The last line is the gain after as many steps as in training.
        """
        evaluations = (self, *references)
        header = ["adaptation steps", *map(str, range(max(e.returns.shape[-1] for e in evaluations)))]
        rows = [header, *([e.name, *map(_as_text, *e.mean_return)] for e in evaluations)]
        gains = [_as_text(*gain, sign="+") for gain in zip(*self.gain)]
        rows.insert(2, ["    gained", "", *gains[1:]])
        name_width = max(len(row[0]) for row in rows)
        width = max(len(cell) for row in rows for cell in row[1:])
        lines = ["  ".join([row[0].ljust(name_width), *(cell.rjust(width) for cell in row[1:])]) for row in rows]
        step = min(self.trained_steps or len(gains) - 1, len(gains) - 1)
        said = "" if self.trained_steps is None else f" (trained for {self.trained_steps})"
        return "\n".join([f"Mean return, +- half of its 95% interval over {self._describe()}", *lines,
                          f"Adaptation changes the return by {gains[step]} in {_count(step, 'step')}{said}"])

    def plot(self, path: Optional[PathLike] = None, *references: "Evaluation", title: Optional[str] = None,
             ax: Any = None) -> Figure:
        """Draws the mean return over adaptation steps, with its 95% intervals; returns the figure.

        Args:
            path: file to write, PNG or (ending `.svg`) SVG; default None, no file.
            *references: evaluations to compare with.
            title: title of the figure; default None: "Adaptation of" and the name of the policy.
            ax: Matplotlib axes to draw into; default None, those of a new figure.
        """
        return self._plot(path, references, title, ax, " Thin lines: single tasks.")

    def plot_timesteps(self, path: Optional[PathLike] = None, *references: "Evaluation", title: Optional[str] = None,
                       ax: Any = None) -> Figure:
        """Draws the mean return over environment steps in a task (`timesteps`); everything else is as in `plot`."""
        return self._plot(path, references, title, ax, timesteps=[e.mean_timesteps for e in (self, *references)])

    def write_csv(self, path: PathLike, *references: "Evaluation") -> None:
        """Writes mean returns and gains with the half widths of their 95% intervals: a row for each policy and step.

        The column `timesteps` is the mean over tasks of the environment steps taken to adapt to a task.
        """
        rows: List[Sequence[Any]] = [("policy", "step", "timesteps", "return", "return_ci95", "gain", "gain_ci95")]
        for evaluation in (self, *references):
            columns = zip(evaluation.mean_timesteps, *evaluation.mean_return, *evaluation.gain, strict=True)
            rows += [(evaluation.name, step, *map(float, row)) for step, row in enumerate(columns)]
        write_csv(path, rows)

    def write_json(self, path: PathLike, *references: "Evaluation") -> None:
        """Writes a list with all fields of the evaluations; the intervals of a single task are null."""
        content = []
        for evaluation in (self, *references):
            fields = {**vars(evaluation), "tasks": [list(map(_as_json, tasks)) for tasks in evaluation.tasks]}
            for name, (mean, half_width) in (("mean_return", evaluation.mean_return), ("gain", evaluation.gain)):
                fields[name] = mean
                fields[f"{name}_ci95"] = None if np.isnan(half_width).any() else half_width
            content.append(fields)
        write_text(path, json.dumps(content, cls=ClassEncoder, indent=2) + "\n")

    def save(self, folder: PathLike, *references: "Evaluation") -> str:
        """Writes `evaluation.json`, `returns.csv` and two figures; returns the folder.

        The figures are `adaptation_curve.png` and `return_over_timesteps.png`. A missing folder is created.
        """
        folder = os.fspath(folder)
        os.makedirs(folder, exist_ok=True)
        writers: Dict[str, Callable[..., Any]] = {
            "evaluation.json": self.write_json, "returns.csv": self.write_csv, "adaptation_curve.png": self.plot,
            "return_over_timesteps.png": self.plot_timesteps}
        for name, write in writers.items():
            write(os.path.join(folder, name), *references)
        return folder

    def _plot(self, path: Optional[PathLike], references: Sequence["Evaluation"], title: Optional[str], ax: Any,
              note: str = "", timesteps: Optional[List[np.ndarray]] = None) -> Figure:
        curves = [(e.name, e.task_returns) for e in (self, *references)]
        note = f"Bars: 95% interval over {self._describe()}.{note}"
        return plot_adaptation_curve(curves, path, title or f"Adaptation of {self.name}", note, timesteps, ax)

    def _describe(self) -> str:
        paths = self.rollouts_per_meta_task * (len(self.seeds) if self.are_given else 1)
        return f"{_count(len(self.task_returns), 'task')}, {_count(paths, 'path')} in each after each step"


def _as_json(task: Task) -> Any:
    """Returns a task in the types that JSON has; else its `repr`."""
    try:
        return json.loads(json.dumps(task, cls=ClassEncoder))
    except (TypeError, ValueError):
        return repr(task)


def _as_text(mean: float, half_width: float, sign: str = "") -> str:
    return f"{mean:{sign}.2f}" + ("" if np.isnan(half_width) else f" +- {half_width:.2f}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
