"""Base class of algorithms that search for policy parameters by comparing candidates."""
import abc
import copy
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type, TypeVar, Union

import numpy as np

from meta_policy_search.actors.flat_policy import check_spaces
from meta_policy_search.baselines import Baseline, make_baseline
from meta_policy_search.envs.spaces import EnvSpec, check_env_spec
from meta_policy_search.np.algos.rl_algorithm import RLAlgorithm
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.samplers.paths import concatenate_paths, path_returns
from meta_policy_search.samplers.single_task_sampler import SingleTaskSampler
from meta_policy_search.types import Path
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.checks import check_int_at_least, check_positive_int
from meta_policy_search.utils.utils import explained_variance_1d

SearchT = TypeVar("SearchT", bound="PopulationAlgorithm")


class PopulationAlgorithm(RLAlgorithm):
    """Base class of searches that draw candidate parameters from a distribution and update it with their returns.

    Each iteration evaluates one candidate. Each epoch is a cycle of `n_samples` iterations, followed by an update of
    the distribution. The search starts at the policy's parameters. After each epoch, the policy has the parameters
    `cur_mean`. Actions of the candidates are not clipped: if the environment does not clip them, pass it wrapped
    (`normalize(env, normalization_scale=1.0)`).

    A subclass implements `_begin`, `_draw` and `_update`, which maintain `cur_mean`. Its constructor calls `begin`
    last.

    Args:
        env_spec (EnvSpec): observation space and action space of the environment.
        policy: policy with `get_flat_params` and `set_flat_params`, such as a policy from `np.policies`.
        baseline (Baseline): fitted to the paths of each epoch, only to log the explained variance.
        n_samples (int): number of candidates per epoch.
        discount (float): discount factor per step, in [0, 1], for the baseline and the logged discounted return.
            Candidates are compared by their mean undiscounted return.
        max_path_length (int): maximum number of steps of a path.

    Attributes:
        cur_mean (np.ndarray): mean of the distribution, float64 `[D]`.
        best_return (float or None): mean undiscounted return of the best candidate of the last epoch.
    """

    default_settings = {"n_itr": 30, "n_samples": 40, "batch_size": 2000}
    assignable_arguments = ("max_path_length",)
    _checks = {"max_path_length": check_positive_int}
    sampler_cls = SingleTaskSampler
    cur_mean: np.ndarray

    @classmethod
    def for_env(cls: Type[SearchT], env: Any, *, hidden_sizes: Sequence[int] = (),
                hidden_nonlinearity: Optional[str] = "tanh", output_nonlinearity: Optional[str] = None,
                baseline: Union[str, Baseline] = "LinearFeatureBaseline", **settings: Any) -> SearchT:
        """Builds the search of a `DeterministicMLPPolicy` for an environment.

        Args:
            env: the environment.
            hidden_sizes: number of units in each hidden layer of the policy; default: none, a linear policy.
            hidden_nonlinearity: activation of the hidden layers, or None; default `"tanh"`.
            output_nonlinearity: activation of the policy's output, or None (default).
            baseline: baseline, or name of its class; only its explained variance of the discounted returns is logged.
                Default `"LinearFeatureBaseline"`.
            **settings: arguments of the constructor.
        """
        spec = EnvSpec.of(env)
        policy = DeterministicMLPPolicy(spec.obs_dim, spec.action_dim, hidden_sizes, hidden_nonlinearity,
                                        output_nonlinearity, spec.is_discrete)
        return cls(env_spec=spec, policy=policy, baseline=make_baseline(baseline), **settings)

    def __init__(self, env_spec: Any, policy: Any, baseline: Any, n_samples: int, discount: float,
                 max_path_length: int) -> None:
        self.env_spec = check_env_spec("env_spec", env_spec)
        if not hasattr(policy, "get_flat_params"):
            raise TypeError(f"policy: expected an object with get_flat_params and set_flat_params, got {policy!r}")
        check_spaces(policy, env_spec)
        self.policy = policy
        self._processor = SampleProcessor(baseline, discount=discount)
        self.baseline, self.discount = self._processor.baseline, self._processor.discount
        self.n_samples = check_positive_int("n_samples", n_samples)
        self.max_path_length = max_path_length
        self._rng = seeding.next_rng(seeding.Stream.SEARCH)

    def begin(self) -> None:
        """Starts a new search at the policy's parameters."""
        self._cycle = 0  # index of the current cycle
        self._candidates: Optional[np.ndarray] = None  # of the current cycle
        self._returns: List[float] = []  # of the candidates evaluated so far
        self._paths: List[Path] = []
        self._average_return: Optional[float] = None
        self.best_return: Optional[float] = None
        self._begin(self.policy.get_flat_params().astype(np.float64))

    def get_state(self) -> Tuple[Dict[str, Any], np.ndarray, Any]:
        """Returns the state of the search and the parameters of policy and baseline, to roll back an epoch."""
        return self._copy_of(vars(self)), self.policy.get_flat_params(), self._processor.get_state()

    def set_state(self, state: Tuple[Dict[str, Any], np.ndarray, Any]) -> None:
        """Restores the state that `get_state` returned."""
        vars(self).update(self._copy_of(state[0]))
        self.policy.set_flat_params(state[1])
        self._processor.set_state(state[2])

    def _copy_of(self, state: Dict[str, Any]) -> Dict[str, Any]:
        shared = (self, self.policy, self.env_spec, self._processor, self.baseline)
        return copy.deepcopy(state, {id(given): given for given in shared})

    @abc.abstractmethod
    def _begin(self, mean: np.ndarray) -> None:
        """Creates the initial search distribution around `mean`, float64 `[D]`."""

    @abc.abstractmethod
    def _draw(self, cycle: int) -> np.ndarray:
        """Draws the candidates of a cycle, float64 `[n_samples, D]`."""

    @abc.abstractmethod
    def _update(self, candidates: np.ndarray, returns: np.ndarray) -> None:
        """Updates the distribution with candidates `[n_samples, D]` and their returns `[n_samples]`."""

    @property
    def candidates(self) -> np.ndarray:
        """Candidates of the current cycle, float64 `[n_samples, D]`."""
        if self._candidates is None:
            self._candidates = self._draw(self._cycle)
        return self._candidates

    def tell(self, returns: np.ndarray) -> None:
        """Ends a cycle: updates the distribution, from which the next candidates are drawn.

        `train_once` calls this method after the last candidate of a cycle.

        Args:
            returns: `[n_samples]`, finite, mean undiscounted return of each candidate.
        """
        returns = np.asarray(returns, np.float64)
        if returns.shape != (self.n_samples,) or not np.isfinite(returns).all():
            raise ValueError(f"returns: expected {self.n_samples} finite numbers, one for each candidate, got "
                             f"{returns}")
        self._update(self.candidates, returns)
        self.best_return = float(returns.max())
        self._cycle += 1
        self._candidates, self._returns, self._paths = None, [], []

    def train(self, runner: Any) -> Optional[float]:
        """Runs the search for all epochs of the runner; continues the search if the runner resumes a run.

        Returns:
            The average undiscounted return of all candidates in the last epoch. The attribute `best_return` is the
            return of the best candidate in this epoch.
        """
        if runner.step_itr == 0:
            self.begin()
        for _ in runner.step_epochs():
            population = runner.obtain_population_samples(runner.step_itr, self.candidates)
            runner.step_path = [path for paths in population for path in paths]
            for paths in population:
                self.train_once(runner.step_itr, paths)
                runner.step_itr += 1
            self.policy.set_flat_params(self.cur_mean)
        return self._average_return

    def train_once(self, itr: int, paths: Sequence[Path]) -> float:
        """Processes the paths of one candidate, and sets the policy's parameters to the next candidate.

        In a custom training loop, set the policy's parameters to `candidates[0]` before the first call, and to
        `cur_mean` after the last call.

        Args:
            itr (int): iteration number; must equal the number of completed iterations.
            paths (list of dict): paths collected with the candidate.

        Returns:
            The average undiscounted return of the candidates evaluated so far in the epoch.
        """
        expected = self._cycle * self.n_samples + len(self._returns)
        if check_int_at_least("itr", itr, 0) != expected:
            raise ValueError(f"itr: expected {expected}, the number of completed iterations, got {itr}")
        self._returns.append(float(path_returns(concatenate_paths(paths)).mean()))
        self._paths += paths
        self._average_return = float(np.mean(self._returns))
        if len(self._returns) == self.n_samples:
            of_cycle = self._paths  # `tell` begins the next cycle
            self.tell(np.array(self._returns))
            self._log(of_cycle)
        self.policy.set_flat_params(self.candidates[len(self._returns)])
        return self._average_return

    def _log(self, paths: List[Path]) -> None:
        """Logs a cycle from the paths of its candidates, and fits the baseline to them."""
        samples = self._processor.process_samples(paths, log="all")
        predictions = np.concatenate([self.baseline.predict(path) for path in paths])
        logger.logkv("BestCandidateReturn", self.best_return)
        logger.logkv("ExplainedVariance", explained_variance_1d(predictions, samples["returns"]))
        self._processor.train_baseline(paths)
