"""Samplers for one task, with one policy or a population of policies that differ only in their parameters."""
import functools
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.flat_policy import check_spaces, num_tasks_of
from meta_policy_search.actors.from_policy import actor_from_policy, vectorized_actor
from meta_policy_search.envs.compat import adapt_env, copy_env
from meta_policy_search.envs.normalized_env import update_averages
from meta_policy_search.samplers.meta_sampler import make_executor
from meta_policy_search.samplers.ray_executor import Parallel, check_parallel
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor
from meta_policy_search.types import Path, WithoutEffect
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_int_at_least, check_positive_int
from meta_policy_search.utils.serializable import Configurable

_EVALUATION = 1  # value of the argument `purpose` of `_collect`


class SingleTaskSampler(Configurable):
    """Collects paths in one task of one environment, for algorithms that a `LocalRunner` runs.

    A batch of `batch_size` environment steps consists of `batch_size / max_path_length` paths, rounded up. Every
    started path is finished and returned, so early ends do not bias the samples. Early ends only reduce the number of
    steps of the batch.

    The candidates of a population act concurrently, in environments with the same task. Candidate `i` of a population
    that starts at iteration `itr` uses the random numbers of iteration `itr + i`. Therefore its paths are
    bit-identical, whether it acts alone or with other candidates.

    Args:
        algo (RLAlgorithm): algorithm whose policy acts, see `RLAlgorithm`.
        env: environment with the gym 0.26, Gymnasium or classic gym API. A `MetaEnv` is sampled in the task that is set
            when samples are obtained. If the algorithm does not limit the length of paths, the environment must have a
            time limit (`env.spec.max_episode_steps`).
        parallel (bool, str, dict or RayOptions): whether environments run in worker processes, see `MetaSampler`;
            default False.

    Raises:
        TypeError, ValueError: `env` is not an environment, or its spaces do not match the policy.
    """

    def __init__(self, algo: Any, env: Any, parallel: WithoutEffect[Parallel] = False) -> None:
        self.algo = algo
        check_parallel(parallel)
        self.parallel = parallel
        self._executors: Dict[int, Tuple[Tuple[int, ...], MetaEnvExecutor]] = {}  # sizes and executor, by purpose
        self.env = env

    @property
    def env(self) -> Any:
        """The environment, of which the sampler samples a copy. Assign it to sample a copy of its current state."""
        return self._env

    @env.setter
    def env(self, env: Any) -> None:
        check_spaces(self.algo.policy, adapt_env(env, needs_tasks=False))
        self._env, self.sampled_env = env, copy_env(env)
        self._sampled = adapt_env(self.sampled_env, needs_tasks=False)
        if self._executors:
            self.shutdown_worker()

    def start_worker(self) -> None:
        """Does nothing. Environments and worker processes are created when they are first needed."""

    def shutdown_worker(self) -> None:
        """Closes environments and worker processes. Obtaining more samples creates new ones."""
        while self._executors:
            _, (_, executor) = self._executors.popitem()
            executor.close()

    close = shutdown_worker

    def obtain_samples(self, itr: int, batch_size: int) -> List[Path]:
        """Collects paths with the current policy of the algorithm, or with its exploration policy if it has one.

        Args:
            itr: iteration that determines the random numbers, at least 0.
            batch_size: number of environment steps if no path ends early, at least 1; rounded up to whole paths.

        Returns:
            List of path dicts, see `types.Path`.

        Raises:
            ValueError: an observation, reward or action is not finite (the message names path and step), or neither the
                algorithm nor the environment limits the length of paths.
            EnvWorkerError: the environment raised an error, or a worker process died.
        """
        algo, length = self.algo, self._length("max_path_length", self.algo.max_path_length)
        policy = algo.policy if algo.exploration_policy is None else algo.exploration_policy
        paths = self._collect_paths(policy, itr, count_paths(batch_size, length), length, algo.rollout_batch_size)
        update_averages(self.sampled_env, self._env, paths)
        return paths

    def obtain_evaluation_samples(self, itr: int, num_paths: int) -> List[Path]:
        """Collects `num_paths` paths of `policy`, of at most `max_eval_path_length` steps.

        The random numbers depend on the iteration `itr` and differ from the random numbers of `obtain_samples`.
        """
        algo = self.algo
        limit = algo.max_path_length if algo.max_eval_path_length is None else algo.max_eval_path_length
        length = self._length("max_eval_path_length", limit)
        return self._collect_paths(algo.policy, itr, check_positive_int("num_paths", num_paths), length,
                                   None, _EVALUATION)

    def obtain_population_samples(self, itr: int, batch_size: int, flat_params: np.ndarray) -> List[List[Path]]:
        """Collects paths with the policy of the algorithm for each of several parameter vectors.

        If the policy has no `make_actors`, or `make_actors` returns None, the candidates are sampled sequentially with
        `set_flat_params`. The policy keeps the parameters of the last candidate.

        Args:
            itr: iteration that determines the random numbers of the first candidate.
            batch_size: number of environment steps per candidate, see `obtain_samples`.
            flat_params: `[n, D]`, parameters of the candidates.

        Returns:
            A list of path dicts for each candidate. Error messages name candidate `i` as `task i`.
        """
        policy, length = self.algo.policy, self._length("max_path_length", self.algo.max_path_length)
        num_paths = count_paths(batch_size, length)
        actor = vectorized_actor(policy, "make_actors", flat_params)
        population: List[List[Path]] = []
        if actor is not None:
            population = self._collect(policy, actor, itr, len(flat_params), num_paths, length)
        else:
            for number, candidate in enumerate(flat_params, start=itr):
                policy.set_flat_params(candidate)
                population.append(self._collect_paths(policy, number, num_paths, length))
        update_averages(self.sampled_env, self._env, [path for paths in population for path in paths])
        return population

    def _length(self, name: str, length: Optional[int]) -> int:
        limit = self._sampled.max_episode_steps if length is None else length
        if limit is None:
            env = type(self._sampled.unwrapped).__name__
            raise ValueError(f"{name}: expected a number of steps, got None, and {env} has no time limit "
                             "(env.spec.max_episode_steps)")
        return check_positive_int(name, limit)

    def _collect_paths(self, policy: Any, itr: int, num_paths: int, length: int, *arguments: Any) -> List[Path]:
        """Collects paths with the current parameters of a policy; for the other arguments, see `_collect`."""
        actor = None if num_tasks_of(policy) is None else vectorized_actor(  # a meta-policy acts as before adaptation
            policy, "make_actors", policy.get_flat_params()[None])
        return self._collect(policy, actor or actor_from_policy(policy), itr, 1, num_paths, length, *arguments)[0]

    def _collect(self, policy: Any, actor: Actor, itr: int, num_candidates: int, num_paths: int, length: int,
                 envs_at_once: Optional[int] = None, purpose: int = 0) -> List[List[Path]]:
        """Collects `num_paths` paths of each candidate; `actor` acts for all candidates.

        `envs_at_once` paths of a candidate are sampled concurrently, by default all. Calls with different `purpose`
        draw independent random numbers.
        """
        check_int_at_least("itr", itr, 0)
        check_spaces(policy, self._sampled)
        sizes = (num_candidates, min(envs_at_once or num_paths, num_paths), length)
        if purpose in self._executors and self._executors[purpose][0] != sizes:
            self._executors.pop(purpose)[1].close()
        if purpose not in self._executors:
            self._executors[purpose] = sizes, make_executor(self._sampled, *sizes, self.parallel)
        executor = self._executors[purpose][1]
        task = adapt_env(self._env, needs_tasks=False).get_task()
        self._sampled.set_task(task)  # snapshots contain this copy
        executor.set_tasks([task] * num_candidates)
        path_rng = functools.partial(_candidate_rng, seeding.get_root(), itr, purpose)
        paths, _ = executor.collect(num_paths, path_rng, actor)
        return list(paths.values())


def _candidate_rng(root: int, itr: int, purpose: int, candidate: int, rollout: int) -> np.random.Generator:
    """Returns the generator of a path. Candidate `i` uses the generators of task 0 in iteration `itr + i`."""
    return seeding.rng_for(seeding.Stream.ROLLOUT, itr + candidate, purpose, 0, rollout, root=root)


def count_paths(batch_size: int, max_path_length: int) -> int:
    """Returns the number of paths of `max_path_length` steps in a batch of environment steps, rounded up."""
    return -(-check_positive_int("batch_size", batch_size) // max_path_length)
