"""Cross-entropy method (CEM)."""
import math
from typing import Any, List

import numpy as np

from meta_policy_search.np.algos.population_algorithm import PopulationAlgorithm
from meta_policy_search.types import Path
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_fraction, check_non_negative, check_positive


class CEM(PopulationAlgorithm):
    """Cross-entropy method: iteratively optimizes a Gaussian distribution over policy parameters.

    In each epoch, CEM performs the following steps:

    1. Draw the parameters of `n_samples` candidates from a Gaussian distribution with mean `cur_mean`. Candidate `n`,
       counted over all epochs, has the variance `cur_std^2 + extra_std^2 max(1 - n / extra_decay_time, 0)`.
    2. Collect paths with each candidate.
    3. Set `cur_mean` and `cur_std` to the mean and the (population) standard deviation of each parameter over the
       `n_best` candidates with the highest return.

    The search starts at the policy's parameters, with `cur_std = init_std`.

    Args:
        env_spec (EnvSpec): observation space and action space of the environment.
        policy: policy with `get_flat_params` and `set_flat_params`, such as a policy from `np.policies`.
        baseline (Baseline): fitted to the paths of each epoch, only to log the explained variance.
        n_samples (int): number of candidates per epoch.
        discount (float): discount factor per step, in [0, 1], for the baseline and the logged discounted return.
            Candidates are compared by their mean undiscounted return. Default: 0.99.
        max_path_length (int): maximum number of steps of a path. Default: 500.
        init_std (float): initial standard deviation of the distribution, above 0. Default: 1.
        best_frac (float): fraction of best candidates, in (0, 1]: `n_best = n_samples * best_frac`, rounded down, at
            least 1. With 1, `cur_std` is zero after the first epoch. Default: 0.05.
        extra_std (float): additional standard deviation, which decays to zero; at least 0. Default: 1.
        extra_decay_time (float): number of iterations (`n_samples` per epoch) until the additional standard deviation
            is zero, above 0. Default: 100.

    Attributes:
        cur_mean (np.ndarray): mean of the distribution, float64 `[D]`.
        cur_std (np.ndarray): standard deviation of the distribution without `extra_std`, float64 `[D]`.
        n_best (int): number of best candidates used in an update.
        best_return (float or None): mean undiscounted return of the best candidate of the last epoch.

    Raises:
        ValueError: an argument is out of range, `n_best` is 0, or `policy` does not fit `env_spec`.

    References:
        Rubinstein 1999, "The cross-entropy method for combinatorial and continuous optimization"; Szita & Lorincz 2006,
        "Learning Tetris using the noisy cross-entropy method", for the decaying noise.
    """

    default_settings = {"best_frac": 0.2, "extra_std": 0.5, "extra_decay_time": 400.0}
    cur_std: np.ndarray

    def __init__(self, env_spec: Any, policy: Any, baseline: Any, n_samples: int, discount: float = 0.99,
                 max_path_length: int = 500, init_std: float = 1, best_frac: float = 0.05, extra_std: float = 1.0,
                 extra_decay_time: float = 100) -> None:
        super().__init__(env_spec, policy, baseline, n_samples, discount, max_path_length)
        self.init_std = check_positive("init_std", init_std)
        self.best_frac = check_fraction("best_frac", best_frac)
        self.extra_std = check_non_negative("extra_std", extra_std)
        self.extra_decay_time = check_positive("extra_decay_time", extra_decay_time)
        # 1e-9, because a product such as 49 * (1 / 49) can be just below an integer
        self.n_best = math.floor(self.n_samples * self.best_frac + 1e-9)
        if self.n_best < 1:
            raise ValueError(f"best_frac: expected at least 1 / n_samples = {1 / self.n_samples:.4g}, to select at "
                             f"least one candidate, got {best_frac!r} with n_samples={n_samples}")
        self.begin()

    def _begin(self, mean: np.ndarray) -> None:
        self.cur_mean = mean
        self.cur_std = np.full(len(mean), self.init_std)

    def _draw(self, cycle: int) -> np.ndarray:
        itrs = cycle * self.n_samples + np.arange(self.n_samples)
        extra_variances = self.extra_std ** 2 * np.maximum(1.0 - itrs / self.extra_decay_time, 0.0)
        stds = np.sqrt(self.cur_std ** 2 + extra_variances[:, None])
        return self.cur_mean + stds * self._rng.standard_normal(stds.shape)

    def _update(self, candidates: np.ndarray, returns: np.ndarray) -> None:
        best = candidates[np.argsort(-returns, kind="stable")[:self.n_best]]
        self.cur_mean, self.cur_std = best.mean(axis=0), best.std(axis=0)

    def _log(self, paths: List[Path]) -> None:
        super()._log(paths)
        logger.logkv("ParamStd", float(self.cur_std.mean()))
