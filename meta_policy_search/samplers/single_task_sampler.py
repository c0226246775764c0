"""Collects paths of one policy, or of a population of policies that differ in their parameters alone."""
import functools
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.of_policies import action_shape_of, actor_of, actors_of, check_spaces, make_actors
from meta_policy_search.envs.adapters import SingleTaskEnv
from meta_policy_search.envs.gym_compat import check_meta_env
from meta_policy_search.samplers.meta_sampler import ExecutorFactory, MetaSampler
from meta_policy_search.samplers.rollout_loop import PathRngs
from meta_policy_search.types import Path, Task
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.signatures import SharedArguments


class SingleTaskSampler(SharedArguments):
    """Collects paths for the algorithms that a `LocalRunner` runs, in one task of one environment.

    A batch of `batch_size` environment steps is as many paths as it would hold if none ended early: `batch_size /
    max_path_length`, rounded up. Every path that is started is finished and returned, so early ends do not bias the
    samples; they make the batch smaller.

    A population is a `MetaSampler`'s meta-batch whose tasks are all the same, so that the candidates act and are
    stepped together, as arrays where environment and policy have such a form. Candidate `i` of a population that
    begins at iteration `itr` draws every random number for iteration `itr + i`, whether it acts alone or with others:
    its paths are the same, bit for bit.

    Args:
        algo (RLAlgorithm): whose `policy` acts, in paths of at most `max_path_length` steps.
        env: environment of gym, Gymnasium or the classic form; one with tasks (`MetaEnv`) is sampled in the task that
            it has when samples are obtained.
        candidates_at_once (int or None): candidates of a population that act together. Fewer need less memory and more
            time. Default: all.
        parallel (bool): whether environments are stepped in worker processes; see `MetaSampler`. Default: False.
        executor (str, callable or None): forces an executor; see `MetaSampler`.
    """

    def __init__(self, algo: Any, env: Any, candidates_at_once: Optional[int] = None, parallel: bool = False,
                 executor: Union[str, ExecutorFactory, None] = None) -> None:
        self._algo = algo
        self._env = env if _has_tasks(env) else SingleTaskEnv(env)
        self._candidates_at_once = None if candidates_at_once is None else check_positive_int(
            "candidates_at_once", candidates_at_once)
        self._sampler_args: Dict[str, Any] = {"parallel": parallel, "executor": executor}
        self._samplers: Dict[Tuple, _SameTaskSampler] = {}  # by what they were made with
        check_spaces(algo.policy, self._env)

    def start_worker(self) -> None:
        """Does nothing: environments and worker processes are made when they are first needed."""

    def shutdown_worker(self) -> None:
        """Closes environments and worker processes; they are made anew if samples are obtained again."""
        for sampler in self._samplers.values():
            sampler.close()
        self._samplers.clear()

    close = shutdown_worker

    def obtain_samples(self, itr: int, batch_size: int) -> List[Path]:
        """Collects paths with the algorithm's policy as it is now.

        Args:
            itr: iteration that random numbers are drawn for, at least 0.
            batch_size: environment steps, at least 1, if no path ends early; rounded up to whole paths.

        Returns:
            List of path dicts, see `types.Path`.

        Raises:
            ValueError: an observation, reward or action is not finite; names path and step.
            EnvWorkerError: the environment failed, or a worker process died.
        """
        policy, length = self._algo.policy, self._algo.max_path_length
        return self._collect_paths(policy, itr, count_paths(batch_size, length), length)

    def obtain_population_samples(self, itr: int, batch_size: int, flat_params: np.ndarray) -> List[List[Path]]:
        """Collects paths with the algorithm's policy, once for each of several sets of parameters.

        A policy without `make_actors`, or for which it returns None, takes one set of parameters after the other
        (`set_flat_params`), and keeps the last.

        Args:
            itr: iteration that the first candidate's random numbers are drawn for.
            batch_size: environment steps of each candidate, as in `obtain_samples`.
            flat_params: `[n, D]`, the candidates.

        Returns:
            For each candidate a list of path dicts. Errors call candidate `i` of those that act together `task i`.
        """
        policy, length = self._algo.policy, self._algo.max_path_length
        num_paths = count_paths(batch_size, length)
        population: List[List[Path]] = []
        at_once = self._candidates_at_once or len(flat_params)
        for first in range(0, len(flat_params), at_once):
            group = flat_params[first:first + at_once]
            actor = make_actors(policy, group)
            if actor is not None:
                population += self._collect(policy, actor, itr + first, len(group), num_paths, length)
                continue
            for number, candidate in enumerate(group, start=itr + first):
                policy.set_flat_params(candidate)
                population.append(self._collect_paths(policy, number, num_paths, length))
        return population

    def _collect_paths(self, policy: Any, itr: int, num_paths: int, length: int, **arguments: int) -> List[Path]:
        """Collects paths with a policy as it is."""
        if hasattr(policy, "meta_batch_size"):  # acts with its parameters before adaptation
            actor = actors_of(policy, policy.get_flat_params()[None])
        else:
            actor = actor_of(policy)
        return self._collect(policy, actor, itr, 1, num_paths, length, **arguments)[0]

    def _collect(self, policy: Any, actor: Actor, itr: int, num_candidates: int, num_paths: int, length: int,
                 envs_at_once: Optional[int] = None, purpose: int = 0) -> List[List[Path]]:
        """Collects `num_paths` paths of each candidate, for all of which `actor` acts.

        `envs_at_once` paths of a candidate are under way at the same time, by default all. Paths for different purposes
        have random numbers of their own.
        """
        key = (policy, num_candidates, num_paths, length, envs_at_once, purpose)
        if key not in self._samplers:
            self._samplers[key] = _SameTaskSampler(self._env, _Population(policy, num_candidates, actor), num_paths,
                                                   num_candidates, length, envs_at_once, **self._sampler_args)
            self._samplers[key].purpose = purpose
        sampler = self._samplers[key]
        sampler.policy.actor = actor
        sampler.start_at(itr)
        sampler.update_tasks([_task_of(self._env)] * num_candidates)
        return list(sampler.obtain_samples().values())


class _SameTaskSampler(MetaSampler):
    """A `MetaSampler` in which the paths of a candidate are those of a task in an iteration of their own."""

    purpose = 0

    def _path_rngs(self) -> Callable[[int, int], np.random.Generator]:
        return functools.partial(_candidate_rng, seeding.get_root(), self._itr, self.purpose)


def _candidate_rng(root: int, itr: int, purpose: int, candidate: int, rollout: int) -> np.random.Generator:
    """Returns the generator of a path: candidate `i` has those of task 0 in iteration `itr + i`."""
    return PathRngs(root, itr + candidate, purpose)(0, rollout)


class _Population:
    """Candidates as a meta-policy: what `MetaSampler` asks of one."""

    def __init__(self, policy: Any, num_candidates: int, actor: Actor) -> None:
        self.meta_batch_size = num_candidates
        self.action_shape = action_shape_of(policy)
        vars(self).update({name: getattr(policy, name) for name in ("obs_dim", "action_dim") if hasattr(policy, name)})
        self.actor = actor

    @replaces()
    def make_actor(self) -> Actor:
        return self.actor


def count_paths(batch_size: int, max_path_length: int) -> int:
    """Returns how many paths of `max_path_length` steps a batch of environment steps is, rounded up."""
    return -(-check_positive_int("batch_size", batch_size) // max_path_length)


def _has_tasks(env: Any) -> bool:
    try:
        check_meta_env(env)
    except TypeError:
        return False
    return True


def _task_of(env: Any) -> Task:
    try:
        return env.get_task()
    except (AttributeError, NotImplementedError) as error:
        raise TypeError(f"env: expected an environment with tasks that says which one it has, but {type(env).__name__} "
                        "has no get_task") from error
