"""Compares the gradient steps of a run with search: adapts the same policy to the same tasks by CEM and CMA-ES.

    python experiments/baselines_without_gradients.py RUN_FOLDER
    python experiments/baselines_without_gradients.py RUN_FOLDER --num_steps 3 --search_steps 12 --search_std 0.3

Each adaptation step of each method collects the same number of paths per task; a search evaluates one candidate with
each path. Searches start from the parameters of the run. The script prints the mean returns after each step and writes
the same files as `meta-policy-search evaluate`, to RUN_FOLDER/search.

`SearchAdaptation` is an example of a `MetaRLAlgorithm`, the interface of methods that adapt to one task at a time.

Loading a snapshot executes code that it contains. Only evaluate runs that you trust.
"""
import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

import meta_policy_search as mps
from meta_policy_search.cli import evaluate
from meta_policy_search.cli.flags import Parser, add_flag, add_output_flags, check_is_new
from meta_policy_search.cli.train import run_tool
from meta_policy_search.settings import settings_of
from meta_policy_search.utils.checks import check_choice
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.progress import print_line

SEARCHES = ("cem", "cma_es")


class SearchPolicy:
    """Acts in one task with several candidates: with `n` candidates, each acts in one `n`-th of the paths, in order.

    Args:
        meta_policy: the policy whose parameters are searched.
        search: the CEM or CMA-ES of this task.
        candidates: `[n, D]`, parameters.
    """

    def __init__(self, meta_policy: Any, search: Any, candidates: np.ndarray) -> None:
        self.search, self._candidates, self._policy = search, candidates, meta_policy
        self.obs_dim, self.action_dim, self.action_shape = (
            meta_policy.obs_dim, meta_policy.action_dim, meta_policy.action_shape)

    @replaces()
    def make_actor(self) -> mps.Actor:
        """Returns an actor that computes the actions of all paths with one call."""
        return CandidateActor(self._policy.make_actors(self._candidates), len(self._candidates))


class CandidateActor(mps.Actor):
    """Acts in one task with an actor for `n` candidates, which treats them like tasks."""

    def __init__(self, actor: mps.Actor, num_candidates: int) -> None:
        self._actor, self._num_candidates = actor, num_candidates
        self.noise_dim, self.draw_noise = actor.noise_dim, actor.draw_noise

    def act(self, observations: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Returns actions and infos, each `[1, P, ...]`, for observations `[1, P, O]`."""
        actions, infos = self._actor.act(*(
            values.reshape(self._num_candidates, -1, values.shape[-1]) for values in (observations, noise)))
        return actions.reshape(1, -1, *actions.shape[2:]), {
            key: values.reshape(1, -1, *values.shape[2:]) for key, values in infos.items()}


class SearchAdaptation(mps.MetaRLAlgorithm):
    """Adapts to a task by searching for the parameters of a policy; an adaptation step is one cycle of the search.

    Args:
        meta_policy (MetaPolicy): the policy; each search starts at its parameters, which do not change.
        env: the environment.
        search (str): `"cem"` or `"cma_es"` (with a diagonal covariance matrix).
        num_candidates (int): number of candidates per adaptation step; at least 2.
        std (float): standard deviation of each parameter in the first step.
    """

    def __init__(self, meta_policy: mps.MetaPolicy, env: Any, search: str, num_candidates: int, std: float) -> None:
        cls, settings = {
            "cem": (mps.CEM, {"init_std": std, "best_frac": max(0.2, 1.0 / num_candidates), "extra_std": 0.0}),
            "cma_es": (mps.CMAES, {"sigma0": std, "diagonal": True})}[check_choice("search", search, SEARCHES)]
        self.policy = meta_policy
        self._start = lambda: cls(mps.EnvSpec.of(env), meta_policy, mps.ZeroBaseline(), num_candidates, **settings)
        self._start()  # checks the numbers

    def get_initial_policy(self) -> SearchPolicy:
        """Returns a policy for one task that acts with the mean of a new search, the parameters of the run."""
        search = self._start()
        return SearchPolicy(self.policy, search, search.cur_mean[None])

    def get_exploration_policy(self) -> SearchPolicy:
        """Returns a policy for one task that acts with the candidates of a new search."""
        return self.next_exploration_policy(self.get_initial_policy())

    def next_exploration_policy(self, adapted_policy: SearchPolicy) -> SearchPolicy:
        """Returns a policy that acts with the next candidates of the search."""
        return SearchPolicy(self.policy, adapted_policy.search, adapted_policy.search.candidates)

    def adapt_policy(self, exploration_policy: SearchPolicy,
                     exploration_trajectories: mps.TrajectoryBatch) -> SearchPolicy:
        """Updates the search with the returns of its candidates; returns a policy that acts with the new mean."""
        search = exploration_policy.search
        returns = np.array([path["rewards"].sum() for path in exploration_trajectories.to_paths()])
        search.tell(returns.reshape(search.n_samples, -1).mean(axis=1))
        return SearchPolicy(self.policy, search, search.cur_mean[None])


def compare_with_search(
    evaluator: mps.MetaEvaluator, searches: Sequence[str] = SEARCHES, num_tasks: int = 40, num_steps: int = 3,
    step_sizes: Optional[Sequence[float]] = None, search_steps: int = 12, search_std: float = 0.1, seed: int = 1,
) -> list[mps.Evaluation]:
    """Adapts a policy to the same tasks by gradient steps and by searches.

    Args:
        evaluator: the evaluator of the run.
        searches: names of the searches: `"cem"`, `"cma_es"` or both. Default: both.
        num_tasks: number of sampled tasks; default 40.
        num_steps: number of gradient steps; default 3.
        step_sizes: step sizes of the first gradient steps; the last one applies to all later steps. Default None: as in
            the run.
        search_steps: number of adaptation steps of each search; default 12.
        search_std: standard deviation of each parameter in the first step of a search; default 0.1.
        seed: seed of all random generators, including sampled tasks; default 1.

    Returns:
        The evaluations of the gradient steps and of each search.
    """
    if not isinstance(evaluator.algo, mps.MAMLAlgo):
        raise ValueError("evaluator: expected a run of an algorithm with gradient steps, got one of "
                         f"{type(evaluator.algo).__name__}")
    paths = evaluator.rollouts_per_meta_task
    others = [
        mps.MetaEvaluator(SearchAdaptation(evaluator.algo.policy, evaluator.env, search, paths, search_std),
                          evaluator.env, None, paths, evaluator.max_path_length, name=f"{search}, std {search_std:g}")
        for search in searches]
    return [evaluator.evaluate(num_tasks, num_steps, step_sizes, [seed]),
            *(other.evaluate(num_tasks, search_steps, seeds=[seed]) for other in others)]


def run(arguments: argparse.Namespace) -> None:
    """Compares gradient steps with searches, prints the table and writes the files."""
    settings = vars(arguments)
    folder, snapshot, rollouts, output, overwrite = (
        settings.pop(name) for name in ("run_folder", "snapshot", "rollouts", "output", "overwrite"))
    output = output or os.path.join(folder, "search")
    check_is_new(os.path.join(output, "evaluation.json"), overwrite)
    evaluation, *others = compare_with_search(mps.load_evaluator(folder, snapshot, rollouts), **settings)
    print_line(evaluation.table(*others))
    os.makedirs(output, exist_ok=True)
    print_line(f"Files: {evaluation.save(output, *others)}")


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Compares gradient steps with searches; returns the exit status."""
    parser = Parser("baselines_without_gradients.py", __doc__)
    parser.add_argument("run_folder", metavar="RUN_FOLDER", help="folder of a run of an algorithm with gradient steps")
    evaluate.add_snapshot_flag(parser)
    parser.add_argument("--rollouts", type=int, metavar="INT", help="paths per task and step (default: as in the run)")
    for setting in settings_of([compare_with_search], {"evaluator"}).values():
        add_flag(parser, setting)
    add_output_flags(parser, "DIR", "folder for the files (default: RUN_FOLDER/search)", "evaluation")
    return run_tool(parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
