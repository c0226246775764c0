"""Meta-tests a run: measures the returns of its policy in sampled tasks after 0, 1, 2, ... gradient steps.

    meta-policy-search evaluate RUN_FOLDER
    meta-policy-search evaluate RUN_FOLDER --tasks 40 --num_steps 3 --step_sizes 0.1 0.05 --seeds 1 2 3
    meta-policy-search evaluate RUN_FOLDER --reference random --reference OTHER_RUN_FOLDER

The command samples tasks with a separate seed and adapts the policy of a snapshot to each task with the algorithm of
the run. It prints a table and writes these files to RUN_FOLDER/evaluation:

    returns.csv                mean returns and gains, with half widths of their 95% intervals over tasks
    evaluation.json            mean returns, returns in each task, and settings
    adaptation_curve.png       mean returns over gradient steps
    return_over_timesteps.png  mean returns over the environment steps used to adapt to a task

The same seed gives the same tasks and returns. References are evaluated in the same tasks, with the same number and
length of paths.

In a notebook:

    import meta_policy_search as mps
    evaluation = mps.load_evaluator("RUN_FOLDER").evaluate(tasks=40, num_steps=3)
    print(evaluation)

Loading a snapshot executes code that it contains. Only evaluate runs that you trust.
"""
import argparse
import functools
import json
import os
from pathlib import Path
from typing import Any, Union

import numpy as np

import meta_policy_search as mps
from meta_policy_search import run_folder
from meta_policy_search.cli.flags import add_flag, add_output_flags, check_is_new, one_or_several
from meta_policy_search.envs.compat import adapt_env
from meta_policy_search.envs.registry import SEEDS
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.settings import settings_of
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_int_at_least, check_positive_int
from meta_policy_search.utils.files import make_folder
from meta_policy_search.utils.progress import print_line
from meta_policy_search.utils.snapshotter import BEST, LAST

NUM_STEPS = 3
RANDOM = "random"


def run(arguments: argparse.Namespace) -> None:
    """Evaluates a run and its references, prints the table and writes the files."""
    folder = run_folder.find_run(arguments.run_folder)
    output = arguments.output or os.path.join(folder, "evaluation")
    check_is_new(os.path.join(output, "evaluation.json"), arguments.overwrite)
    make_folder("--output", output)
    sizes = (arguments.rollouts, arguments.max_path_length)
    parallel = vars(arguments).get("parallel")
    evaluator = mps.load_evaluator(folder, arguments.snapshot, *sizes, parallel=parallel)
    same = (evaluator.rollouts_per_meta_task, evaluator.max_path_length, evaluator.env)
    others = [folder if name == RANDOM else run_folder.find_run(name, "--reference (random or a run)")
              for name in arguments.reference]
    references = [mps.load_evaluator(other, None if name == RANDOM else LAST, *same, parallel=parallel)
                  for name, other in zip(arguments.reference, others, strict=True)]
    env, *envs = [run_folder.read_params(each).get("settings", {}).get("env") for each in (folder, *others)]
    for name, trained_in in zip(arguments.reference, envs, strict=True):
        if trained_in != env:
            print_line(f"{name} was trained in {trained_in} and is evaluated in {env}")
    num_steps = arguments.num_steps
    if num_steps is None and not isinstance(evaluator, mps.TrialEvaluator):
        num_steps = max(NUM_STEPS, evaluator.trained_steps or 0)
    evaluation, *compared = [each.evaluate(arguments.tasks, num_steps, arguments.step_sizes, arguments.seeds,
                                           arguments.deterministic) for each in (evaluator, *references)]
    print_line(evaluation.table(*compared))
    print_line(f"Files: {evaluation.save(output, *compared)}")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of the command."""
    add = parser.add_argument
    add("run_folder", metavar="RUN_FOLDER", help="folder of a run, or a folder that contains exactly one run")
    _add_task_flags(parser, "sampled tasks per seed", num_tasks=40,
                    num_steps=f"{NUM_STEPS}, or the number in training if that is larger")
    add("--seeds", type=functools.partial(one_or_several, int), nargs="+", default=[1], metavar="INT",
        help="seeds of all random generators, including sampled tasks (default: 1)")
    add("--reference", action="append", default=[], metavar="NAME",
        help="policy to compare with: 'random' (random initialization), or the folder of another run (last "
             "snapshot); can be given several times")
    add("--deterministic", action="store_true",
        help="measure returns without the noise of the policy: with mean, or most probable, actions")
    add_output_flags(parser, "DIR", "folder for the files (default: RUN_FOLDER/evaluation)", "evaluation")
    add_flag(parser, settings_of([MetaSampler])["parallel"]._replace(default="as in the run"))


def add_recording_flags(parser: Any, num_tasks: int) -> None:
    """Adds the flags of `record_paths`: snapshot, tasks and adaptation.

    Args:
        parser: an `argparse.ArgumentParser` or an argument group.
        num_tasks: default number of sampled tasks.
    """
    _add_task_flags(parser, "different sampled tasks", num_tasks, num_steps="the number in training")
    parser.add_argument("--seed", type=int, default=1, metavar="INT",
                        help="seed of all random generators, including sampled tasks (default: 1)")


def record_paths(evaluator: Any, arguments: argparse.Namespace) -> Any:
    """Adapts the policy to the tasks selected by the flags; returns the `Recording` of its paths.

    Sampled tasks are different. If there are too few different tasks, fewer tasks are recorded.
    """
    from meta_policy_search.evaluation.evaluation import task_key  # imports TensorFlow

    tasks, seed = arguments.tasks, check_int_at_least("seed", arguments.seed, 0)
    if isinstance(tasks, int):
        num_tasks = check_positive_int("tasks", tasks)
        with seeding.evaluation_seed(seed):  # for environments that use the global random generators
            drawn = adapt_env(evaluator.env).sample_tasks(10 * num_tasks, np.random.default_rng(seed))
        tasks = list({task_key(task): task for task in drawn}.values())[:num_tasks]
    return evaluator.record(tasks, arguments.num_steps, arguments.step_sizes, seed)


def add_snapshot_flag(parser: Any) -> None:
    """Adds the flag `--snapshot`."""
    parser.add_argument("--snapshot", type=_iteration, default=LAST, metavar="ITR",
                        help="iteration of the snapshot, or best: the one that --eval_every selected (default: last)")


def _add_task_flags(parser: Any, sampled: str, num_tasks: int, num_steps: str) -> None:
    add = parser.add_argument
    add_snapshot_flag(parser)
    add("--tasks", "--num_tasks", type=_tasks, default=num_tasks, metavar="TASKS",
        help=f"number of {sampled}, a JSON list of tasks or a .json file that contains one, or test or "
             f"train: the fixed tasks of the environment (default: {num_tasks})")
    add("--num_steps", type=int, metavar="INT",
        help=f"number of gradient steps; may exceed the number in training (default: {num_steps})")
    add("--step_sizes", type=functools.partial(one_or_several, float), nargs="+", metavar="FLOAT",
        help="step sizes of the first steps; the last one applies to all later steps (default: as in the run)")
    add("--rollouts", "--rollouts_per_meta_task", type=int, metavar="INT",
        help="paths per task and number of gradient steps (default: as in the run)")
    add("--max_path_length", type=int, metavar="INT",
        help="maximum number of steps of a path, for RL2 of an episode (default: as in the run)")


def _tasks(text: str) -> Any:
    try:
        content = Path(text).read_text(encoding="utf-8") if text.endswith(".json") else text
        tasks = text if text in SEEDS else json.loads(content)
        if type(tasks) is not list and text not in SEEDS and not (type(tasks) is int and tasks > 0):
            raise ValueError
        return tasks
    except OSError as error:
        raise argparse.ArgumentTypeError(f"could not read {text}: {error.strerror}") from None
    except ValueError:
        raise argparse.ArgumentTypeError("expected a positive number, a JSON list such as '[[0.5, 0.5]]' or a .json "
                                         f"file that contains one, test or train, got {text!r}") from None


def _iteration(text: str) -> Union[int, str]:
    if text not in (LAST, BEST) and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected an iteration, {LAST} or {BEST}, got {text!r}")
    return text if text in (LAST, BEST) else int(text)

