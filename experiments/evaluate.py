"""Meta-test of a run: the returns of its policy in new tasks after 0, 1, 2, ... gradient steps on each.

    python experiments/evaluate.py RUN_FOLDER
    python experiments/evaluate.py RUN_FOLDER --num_tasks 40 --num_steps 3 --step_sizes 0.1 0.05 --seeds 1 2 3
    python experiments/evaluate.py RUN_FOLDER --reference random --reference OTHER_RUN_FOLDER
    python experiments/evaluate.py RUN_FOLDER --compare cem cma_es --compare_steps 10

It samples tasks that training has not seen and adapts the policy of a snapshot to each, as the run's algorithm does. It
prints a table and writes these files to RUN_FOLDER/evaluation:

    returns.csv                mean returns and gains with half of their 95% intervals over tasks
    evaluation.json            mean returns, the return of each task, and the settings
    adaptation_curve.png       the mean returns over gradient steps
    return_over_timesteps.png  the mean returns over the environment steps that adaptation took in a task

The same seed gives the same tasks and the same returns. References are evaluated in the same tasks, with paths of the
same number and length. With --compare, the run's policy is also adapted without gradients: CEM or CMA-ES search in each
task, from the same parameters and with as many paths in each step.

In a notebook:

    import meta_policy_search as mps
    evaluation = mps.load_evaluator("RUN_FOLDER").evaluate(tasks=40, num_steps=3)
    print(evaluation)

Loading a snapshot runs code that it contains: only evaluate runs that you trust.
"""
import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

import numpy as np

import meta_policy_search as mps
from experiments.command import run_tool
from experiments.flags import Parser, add_output_flags, add_parallel_flags, check_is_new
from experiments.settings import PARALLEL_SETTINGS, MetaConfig
from meta_policy_search.envs.gym_compat import sample_tasks
from meta_policy_search.plotting import describe_task
from meta_policy_search.samplers.ray.pool import keep_workers
from meta_policy_search.utils.checks import check_choice, check_int_at_least

if TYPE_CHECKING:
    from meta_policy_search.evaluation import MetaEvaluator
    from meta_policy_search.evaluation.recording import Recording

LAST = "last"
NUM_STEPS = 3
_DRAWS_PER_TASK = 10  # tasks that are sampled for each task that is wanted, as some look the same
RANDOM = "random"
SEARCHES = {"cem": "CEM", "cma_es": "CMA-ES"}
BEST_FRAC = 0.2  # share of the candidates that CEM's distribution is fitted to


def make_search_evaluator(
    evaluator: "MetaEvaluator", search: str, std: float = 0.1
) -> "MetaEvaluator":
    """Returns an evaluator that adapts the same policy without gradients, with paths of the same number and length.

    In each step, a search tries as many candidates as there are paths, with one path each.

    Args:
        evaluator: the evaluator of the policy.
        search: `"cem"` or `"cma_es"` (with a diagonal covariance matrix).
        std: standard deviation of each parameter in the first step.

    Raises:
        ValueError: a number is out of range, or the search is unknown.
        TypeError: an argument has the wrong type.
    """
    from meta_policy_search.baselines import ZeroBaseline
    from meta_policy_search.envs import EnvSpec
    from meta_policy_search.evaluation import MetaEvaluator
    from meta_policy_search.np.algos import CEM, CMAES, SearchAdaptation
    from meta_policy_search.policies import TaskPolicy

    rollouts = evaluator.rollouts_per_meta_task
    arguments = {
        "env_spec": EnvSpec.of(evaluator.env),
        "policy": TaskPolicy(evaluator.algo.policy),
        "baseline": ZeroBaseline(),
        "n_samples": rollouts,
        "max_path_length": evaluator.max_path_length,
    }
    if check_choice("search", search, SEARCHES) == "cem":
        algo = CEM(**arguments, init_std=std, best_frac=max(BEST_FRAC, 1.0 / rollouts), extra_std=0.0)
    else:
        algo = CMAES(**arguments, sigma0=std, diagonal=True)
    return MetaEvaluator(
        SearchAdaptation(algo),
        evaluator.env,
        rollouts_per_meta_task=rollouts,
        max_path_length=evaluator.max_path_length,
        envs_per_task=evaluator.envs_per_task,
        parallel=evaluator.parallel,
        name=f"{SEARCHES[search]} from there, std {std:g}",
    )


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Evaluates a run; returns the exit status."""
    return run_tool(make_parser(), evaluate, argv)


def evaluate(arguments: argparse.Namespace) -> None:
    """Evaluates a run and its references, prints the table and writes the files."""
    output = arguments.output or os.path.join(arguments.run_folder, "evaluation")
    check_is_new(os.path.join(output, "evaluation.json"), arguments.overwrite)
    sizes = (arguments.rollouts, arguments.max_path_length)
    given = {name: value for name, value in vars(arguments).items() if name in PARALLEL_SETTINGS}
    how = {"parallel": MetaConfig(**given).parallel_option()} if given else {}
    evaluator = mps.load_evaluator(arguments.run_folder, arguments.snapshot, *sizes, **how)
    same = (evaluator.rollouts_per_meta_task, evaluator.max_path_length, evaluator.env)
    references = [mps.load_evaluator(arguments.run_folder, None, *same, **how) if name == RANDOM
                  else mps.load_evaluator(name, LAST, *same, **how) for name in arguments.reference]
    searches = [make_search_evaluator(evaluator, search, std)
                for search in arguments.compare for std in arguments.search_std]
    num_steps = max(NUM_STEPS, evaluator.trained_steps) if arguments.num_steps is None else arguments.num_steps
    compare_steps = num_steps if arguments.compare_steps is None else check_int_at_least(
        "compare_steps", arguments.compare_steps, 1)
    os.makedirs(output, exist_ok=True)
    tasks = arguments.num_tasks if arguments.tasks is None else arguments.tasks
    with keep_workers(evaluator.parallel):
        evaluation, *others = [each.evaluate(tasks, num_steps, arguments.step_sizes, arguments.seeds)
                               for each in (evaluator, *references)]
        others += [each.evaluate(tasks, compare_steps, seeds=arguments.seeds) for each in searches]
    print(evaluation.table(*others))
    print(f"Files: {evaluation.save(output, *others)}")


def make_parser() -> Parser:
    """Returns the parser of the flags."""
    parser = Parser(__file__, __doc__)
    add = parser.add_argument
    add("run_folder", metavar="RUN_FOLDER", help="folder of a run of one of the scripts in this folder")
    _add_task_flags(parser, num_tasks=40, num_steps=f"{NUM_STEPS}, or as many as in training if that is more")
    add("--seeds", type=int, nargs="+", default=[1], metavar="INT",
        help="of all random numbers, sampled tasks among them (default: 1)")
    add("--reference", action="append", default=[], metavar="NAME",
        help="what to compare with: 'random', the initialization that the run began from, or the folder of another "
             "run, its last snapshot; may be given several times")
    add("--compare", nargs="+", choices=SEARCHES, default=[], metavar="SEARCH",
        help=f"searches to compare with, {' or '.join(SEARCHES)}: they adapt the same policy without gradients")
    add("--compare_steps", type=int, metavar="INT", help="adaptation steps of a search, each with as many paths as a "
        "gradient step (default: as num_steps)")
    add("--search_std", type=float, nargs="+", default=[0.1], metavar="FLOAT", help="standard deviation of a "
        "parameter in the first step of a search; several of them for a curve each (default: 0.1)")
    add_output_flags(parser, "DIR", "where the files go (default: RUN_FOLDER/evaluation)", "evaluation")
    add_parallel_flags(parser)
    return parser


def add_recording_flags(parser: Any, num_tasks: int) -> None:
    """Adds the flags of `record_paths`: the snapshot, the tasks, and how the policy adapts to them.

    Args:
        parser: an `argparse.ArgumentParser`, or a group of one.
        num_tasks: default number of sampled tasks.
    """
    _add_task_flags(parser, num_tasks, num_steps="as in training")
    parser.add_argument("--seed", type=int, default=1, metavar="INT",
                        help="of all random numbers, sampled tasks among them (default: 1)")


def record_paths(evaluator: "MetaEvaluator", arguments: argparse.Namespace) -> "Recording":
    """Adapts the policy to the tasks that the flags ask for; returns its paths before and after each step.

    Sampled tasks differ from each other; there may be fewer than asked for.
    """
    tasks = arguments.tasks
    if tasks is None:
        num_tasks = check_int_at_least("num_tasks", arguments.num_tasks, 1)
        by_name: dict[str, Any] = {}
        for task in sample_tasks(evaluator.env, _DRAWS_PER_TASK * num_tasks, np.random.default_rng(arguments.seed)):
            by_name.setdefault(describe_task(task), task)
        tasks = list(by_name.values())[:num_tasks]
    return evaluator.record(tasks, arguments.num_steps, arguments.step_sizes, arguments.seed)


def add_snapshot_flag(parser: Any) -> None:
    """Adds the flag for the snapshot."""
    parser.add_argument("--snapshot", type=_iteration, default=LAST, metavar="ITR",
                        help="iteration whose snapshot is used (default: last)")


def _add_task_flags(parser: Any, num_tasks: int, num_steps: str) -> None:
    add = parser.add_argument
    add_snapshot_flag(parser)
    tasks = parser.add_mutually_exclusive_group()
    tasks.add_argument("--num_tasks", type=int, default=num_tasks, metavar="INT",
                       help=f"tasks that are sampled for each seed (default: {num_tasks})")
    tasks.add_argument("--tasks", type=json.loads, metavar="JSON", help="a list of tasks, in place of sampled ones")
    add("--num_steps", type=int, metavar="INT",
        help=f"gradient steps, may be more than in training (default: {num_steps})")
    add("--step_sizes", type=float, nargs="+", metavar="FLOAT",
        help="of the first steps, the last one holding for those that follow (default: those of the run)")
    add("--rollouts", type=int, metavar="INT",
        help="paths in each task after each number of steps (default: as in the run)")
    add("--max_path_length", type=int, metavar="INT", help="steps of a path, at most (default: as in the run)")


def _iteration(text: str) -> Union[int, str]:
    return LAST if text == LAST else int(text)


if __name__ == "__main__":
    sys.exit(main())
