"""Covariance matrix adaptation evolution strategy (CMA-ES), using the `cma` package."""
from typing import Any, List

import numpy as np

from meta_policy_search.np.algos.population_algorithm import PopulationAlgorithm
from meta_policy_search.types import Path
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_bool, check_int_at_least, check_positive
from meta_policy_search.utils.threads import one_blas_thread


class CMAES(PopulationAlgorithm):
    """Covariance matrix adaptation evolution strategy (CMA-ES).

    CMA-ES searches with a Gaussian distribution over policy parameters. Mean, overall scale and full covariance matrix
    adapt to the best candidates. The search starts at the policy's parameters; `cur_mean` is the current estimate of
    the optimum.

    Memory grows with the square and time with the cube of the number of parameters. For large networks, use
    `diagonal=True` or `CEM`.

    Args:
        env_spec (EnvSpec): observation space and action space of the environment.
        policy: policy with `get_flat_params` and `set_flat_params`, such as a policy from `np.policies`, and at least
            two parameters.
        baseline (Baseline): fitted to the paths of each epoch, only to log the explained variance.
        n_samples (int): number of candidates per epoch, at least 2.
        discount (float): discount factor per step, in [0, 1], for the baseline and the logged discounted return.
            Candidates are compared by their mean undiscounted return. Default: 0.99.
        max_path_length (int): maximum number of steps of a path. Default: 500.
        sigma0 (float): initial standard deviation of the distribution, above 0. Default: 1.
        diagonal (bool): whether to adapt only the diagonal of the covariance matrix (sep-CMA-ES), so that memory and
            time grow linearly with the number of parameters. Default: False.

    Attributes:
        cur_mean (np.ndarray): mean of the distribution, float64 `[D]`.
        sigma (float): overall scale of the distribution, initially `sigma0`.
        best_return (float or None): mean undiscounted return of the best candidate of the last epoch.

    Raises:
        ValueError: an argument is out of range, `policy` has fewer than two parameters, or `policy` does not fit
            `env_spec`.

    References:
        Hansen 2016, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772; Ros & Hansen 2008, "A simple
        modification in CMA-ES achieving linear time and space complexity", for `diagonal`.
    """

    def __init__(self, env_spec: Any, policy: Any, baseline: Any, n_samples: int, discount: float = 0.99,
                 max_path_length: int = 500, sigma0: float = 1.0, diagonal: bool = False) -> None:
        super().__init__(env_spec, policy, baseline, check_int_at_least("n_samples", n_samples, 2), discount,
                         max_path_length)
        self.sigma0 = check_positive("sigma0", sigma0)
        self.diagonal = check_bool("diagonal", diagonal)
        size = len(policy.get_flat_params())
        if size < 2:
            raise ValueError(f"policy: expected at least 2 parameters, got {size}")
        self.begin()

    def _begin(self, mean: np.ndarray) -> None:
        from cma import CMAEvolutionStrategy

        self._strategy = CMAEvolutionStrategy(mean, self.sigma0, {
            "popsize": self.n_samples, "CMA_diagonal": self.diagonal, "verbose": -9, "verb_log": 0,  # prints nothing
            "randn": self._standard_normal})  # instead of NumPy's global generator
        self.cur_mean, self.sigma = mean, self.sigma0

    def _standard_normal(self, *shape: int) -> np.ndarray:
        return self._rng.standard_normal(shape)

    @one_blas_thread()
    def _draw(self, cycle: int) -> np.ndarray:
        return np.array(self._strategy.ask())

    @one_blas_thread()
    def _update(self, candidates: np.ndarray, returns: np.ndarray) -> None:
        self._strategy.tell(list(candidates), list(-returns))  # `cma` minimizes
        self.cur_mean, self.sigma = np.array(self._strategy.mean), float(self._strategy.sigma)

    def _log(self, paths: List[Path]) -> None:
        super()._log(paths)
        logger.logkv("Sigma", self.sigma)
