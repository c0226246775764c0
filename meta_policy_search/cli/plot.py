"""Plots runs: learning curves of several runs and seeds, or the trajectories of a policy in the plane.

    meta-policy-search plot RUN_FOLDER RUN_FOLDER ...
    meta-policy-search plot data/promp data/trpo_maml --x time --columns AdaptationGain Step_1-AverageReturn
    meta-policy-search plot RUN_FOLDER --trajectories --num_steps 2

Folders are searched for runs. Runs that differ only in the seed form one curve: their mean, its 95% interval over seeds
(Student's t), and a thin line per run. Runs without rows are skipped. Of runs with the same seed and equal rows, only
the longest is plotted. Runs with less than half of the rows of the longest run of a curve are omitted. The label of a
curve contains the settings that differ between curves. Runs are interpolated linearly between their rows. A mean ends
where its shortest run ends.

With --trajectories, the policy of a snapshot is adapted to some tasks of a planar environment. The figure shows its
paths before adaptation and after each adaptation step. The default number of steps is the number in training. Loading a
snapshot executes code that it contains. Only use runs that you trust.
"""
import argparse
import functools
import json
import os
import re
from typing import Any, Iterable, Sequence

import numpy as np

import meta_policy_search as mps
from meta_policy_search import run_folder
from meta_policy_search.cli import evaluate
from meta_policy_search.cli.flags import add_output_flags, check_is_new, one_or_several, print_warning
from meta_policy_search.envs.scenery import check_is_planar
from meta_policy_search.plotting import collect_curves, describe_settings, plot_comparison, read_progress
from meta_policy_search.run_folder import RunInfo
from meta_policy_search.utils.checks import check_choice, check_positive_int
from meta_policy_search.utils.progress import print_line, printable

X_AXES = {  # column, label, and unit of the label in units of the column
    "iterations": ("Itr", "iteration", 1.0),
    "steps": ("n_timesteps", "environment steps, all tasks", 1.0),
    "time": ("Time", "time, minutes", 60.0),
}
_OF_CURVES = ("x", "columns", "smooth")  # flags without effect on trajectories
_OF_TRAJECTORIES = ("snapshot", "tasks", "num_steps", "step_sizes", "rollouts", "max_path_length", "seed", "num_paths")
COMPARISON, TRAJECTORIES = "comparison.png", "trajectories.png"
_UNNAMED = ("algorithm", "env", "folder")  # settings whose values stand in labels without their names


# Runs ------------------------------------------------------------------------------------------------------------


def _read(folder: str) -> RunInfo:
    """Reads a run; its settings include the algorithm. Without `params.json`, the only setting is the folder.

    Raises:
        ValueError: the run has no rows, or its `params.json` cannot be read.
    """
    info = RunInfo.read(folder)
    if info.error:
        raise ValueError(info.error)
    settings = {"algorithm": info.params.get("algorithm"), **info.settings} if info.settings else {"folder": folder}
    progress = info.progress or read_progress(folder)  # raises an error that names what is missing
    if "Epoch" in progress:  # a single task, where `Itr` counts candidates or cycles
        progress["Itr"] = progress["Epoch"]
    return info._replace(params={**info.params, "settings": settings}, progress=progress)


def group_runs(runs: Sequence[RunInfo]) -> dict[str, list[RunInfo]]:
    """Groups runs that differ only in the seed.

    Returns:
        Dict from a label to the runs of a group. The label contains the settings that differ between groups, without
        settings that differ only because the defaults of two algorithms differ. Values of the form
        `Class(arguments)` are shortened to `Class`, and MODULE:NAME to NAME, unless two of them would become equal.
    """
    names = [name for name in dict.fromkeys(name for run in runs for name in run.settings)
             if name not in ("seed", "n_itr")]
    values = {name: {_as_text(run.settings[name]) for run in runs if name in run.settings} for name in names}
    shown = [name for name in names if len(values[name]) > 1 and not _is_default(name, runs)] or [
        name for name in names if name in _UNNAMED]
    shorter = {name: _shorten(values[name]) for name in shown}
    groups: dict[str, list[RunInfo]] = {}
    for run in runs:
        parts = [("" if name in _UNNAMED else f"{name} ") + shorter[name][_as_text(run.settings[name])]
                 for name in shown if name in run.settings]
        groups.setdefault(", ".join(parts) or run.folder, []).append(run)
    return groups


def _is_default(name: str, runs: Sequence[RunInfo]) -> bool:
    """Returns whether a setting differs only because algorithms have different defaults.

    In this case, no run was given the setting, and all runs of an algorithm have the same value.
    """
    used = {(run.settings.get("algorithm"), _as_text(run.settings[name])) for run in runs
            if name in run.settings}
    return (name not in _UNNAMED and not any(name in run.params.get("given", ()) for run in runs)
            and len(used) == len({algorithm for algorithm, _ in used}))


def _shorten(texts: Iterable[str]) -> dict[str, str]:
    """Returns a shorter text for each text, or the same texts if the shorter ones would be equal."""
    shorter = {text: re.sub(r"^.*:(?=\w+$)|(?<=\w)\(.*\)$", "", text, flags=re.DOTALL) for text in texts}
    return shorter if len(set(shorter.values())) == len(shorter) else {text: text for text in shorter}


def _as_text(value: Any) -> str:
    return printable(value) if isinstance(value, str) else json.dumps(value, sort_keys=True)


def drop_runs(group: Sequence[RunInfo]) -> list[RunInfo]:
    """Returns the runs of a group without repetitions and short runs; prints each omitted run to standard error.

    A repetition has the seed and the rows of another run, but no further rows. A short run has less than half of the
    rows of the longest run, and would shorten the mean.
    """
    kept: list[RunInfo] = []
    for run in sorted(group, key=lambda run: run.iterations, reverse=True):
        repeated = [other for other in kept if _is_repeated(run, other)]
        if repeated:
            print_warning(f"Skipping {run.folder}, which repeats {repeated[0].folder}")
        elif kept and 2 * run.iterations < kept[0].iterations:
            print_warning(f"Skipping {run.folder}, which has less than half of the rows of {kept[0].folder}")
        else:
            kept.append(run)
    return [run for run in group if any(run is other for other in kept)]


def _is_repeated(run: RunInfo, longer: RunInfo) -> bool:
    """Returns whether a run has the seed of another run and, except for times, its first rows."""
    seed, other = (each.settings.get("seed", each.folder) for each in (run, longer))
    missing = np.zeros(0)
    return seed == other and all(
        np.array_equal(values, longer.progress.get(name, missing)[:len(values)], equal_nan=True)
        for name, values in run.progress.items() if "Time" not in name)


# Curves ----------------------------------------------------------------------------------------------------------


def draw_curves(arguments: argparse.Namespace, folders: Sequence[str], output: str) -> None:
    """Plots the learning curves of runs."""
    found = []
    for folder in folders:
        try:
            found.append(_read(folder))
        except ValueError as error:  # no rows, or an unreadable file
            if len(folders) == 1:
                raise
            print_warning(f"Skipping {folder}: {error}")
    if not found:
        raise ValueError(f"run_folder: expected at least one run with rows, got none of {len(folders)}")
    groups = {label: drop_runs(group) for label, group in group_runs(found).items()}
    runs = [run for group in groups.values() for run in group]
    for column in arguments.columns or ():
        check_choice("--columns", column, dict.fromkeys(name for run in runs for name in run.progress))
        for run in runs:
            if column not in run.progress:
                print_warning(f"Skipping {run.folder} in the panel {column}: the run has no such column")
    x_column, x_label, scale = X_AXES[arguments.x]
    panels = collect_curves({f"{label} ({len(group)} runs)" if len(group) > 1 else label:
                             [run.progress for run in group] for label, group in groups.items()},
                            x_column, scale, arguments.columns)
    title = _title(runs) or (os.path.basename(runs[0].folder) if len(runs) == 1 else "Comparison of runs")
    plot_comparison(panels, output, printable(title), x_label=x_label,
                    is_count=arguments.x != "time", smooth=arguments.smooth)


def _title(runs: Sequence[RunInfo]) -> str:
    """Returns a title with the algorithm, environment and inner step size that all runs share, and the seeds.

    If the runs have no common environment, the title is empty.
    """
    first = runs[0].settings
    common = {name: first.get(name) for name in ("algorithm", "env", "inner_lr")
              if all(run.settings.get(name) == first.get(name) for run in runs)}
    env = common.get("env")
    if env is None:
        return ""
    seeds = sorted({run.settings["seed"] for run in runs if "seed" in run.settings})
    return describe_settings(common.get("algorithm"), env, seeds, common.get("inner_lr"))


# The command -----------------------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> None:
    """Plots learning curves or trajectories, as selected by the flags."""
    folders = run_folder.find_runs(arguments.run_folders)
    common_folder = os.path.commonpath([os.path.abspath(folder) for folder in folders])
    output = arguments.output or run_folder.shortest(
        os.path.join(common_folder, TRAJECTORIES if arguments.trajectories else COMPARISON))
    check_positive_int("--smooth", arguments.smooth)
    for flag in _OF_CURVES if arguments.trajectories else _OF_TRAJECTORIES:
        if vars(arguments)[flag] != arguments.defaults[flag]:
            with_ = "with" if arguments.trajectories else "without"
            raise ValueError(f"--{flag}: expected no value {with_} --trajectories, got {vars(arguments)[flag]}")
    check_is_new(output, arguments.overwrite)
    if arguments.trajectories:
        if len(folders) > 1:
            raise ValueError(f"--trajectories: expected one run, got {len(folders)}: {run_folder.name_some(folders)}")
        evaluator = mps.load_evaluator(folders[0], arguments.snapshot, arguments.rollouts, arguments.max_path_length)
        check_is_planar(evaluator.env)  # before the slow part
        evaluate.record_paths(evaluator, arguments).plot_trajectories(output, "", arguments.num_paths)
    else:
        draw_curves(arguments, folders, output)
    print_line(f"Figure: {output}")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of the command."""
    parser.add_argument("run_folders", nargs="+", metavar="RUN_FOLDER",
                        help="run folder, or folder that contains runs at any depth")
    add_output_flags(parser, "FILE", "figure to write: .png, .svg, .pdf and others "
                     f"(default: {COMPARISON} or {TRAJECTORIES} in the run folder, or in the common parent folder of "
                     "all runs)", "figure")
    curves = parser.add_argument_group("curves").add_argument
    curves("--x", choices=list(X_AXES), default="iterations",
           help="horizontal axis (default: iterations)")
    curves("--columns", type=functools.partial(one_or_several, str), nargs="+", metavar="NAME",
           help="columns of progress.csv, one panel each (default: the mean return before and after adaptation; for a "
           "single task, the mean return)")
    curves("--smooth", type=int, default=1, metavar="INT",
           help="width of the running mean in rows (default: 1, no smoothing)")
    trajectories = parser.add_argument_group("trajectories")
    trajectories.add_argument("--trajectories", action="store_true", help="plot the trajectories of a run's policy")
    evaluate.add_recording_flags(trajectories, num_tasks=4)
    trajectories.add_argument("--num_paths", type=int, default=5, metavar="INT",
                              help="maximum number of paths per panel (default: 5)")
    parser.set_defaults(defaults={flag: parser.get_default(flag) for flag in _OF_CURVES + _OF_TRAJECTORIES})
