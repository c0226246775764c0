"""Linear baselines on polynomial features `X` of time and state (Duan et al. 2016, arXiv:1604.06778, appendix).

The coefficients `w` are fitted by damped least squares: `(X^T X + reg_coeff I) w = X^T y`.
"""
from typing import Any, Mapping, Optional, Sequence, Tuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from meta_policy_search.baselines.base import Baseline
from meta_policy_search.envs.spaces import MAX_OBSERVATION_SIZE
from meta_policy_search.types import Path
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_non_negative
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.utils import explained_variance_1d

_DAMPINGS = 10.0 ** np.arange(5)  # multiples of reg_coeff, tried in order
_OBSERVATION_LIMIT = 10.0
_TIME_SCALE = 100.0
_PRIMAL_FEATURES = 1000  # the primal form is fast with up to this number of features


class LinearBaseline(Baseline):
    """Base class of linear baselines; a subclass implements `_features`.

    If `X^T X + reg_coeff I` is singular to working precision, the damping is increased tenfold, up to four times. If
    the matrix is still singular (`reg_coeff` is zero), the least-squares solution with minimum norm is used.

    With more than 1,000 features and fewer samples `N` than features `F`, the fit solves the equivalent dual problem
    with the `N x N` matrix `X X^T`. For images of 64 x 64 pixels and 360 samples, it takes 0.6 s instead of 29 s.

    Args:
        reg_coeff (float): damping, at least 0, in squared feature units; added to each diagonal entry of `X^T X`.
            Default: 1e-5.
    """

    _target_key = "returns"  # of the last fit; a class attribute, because pickles of the public ProMP code lack it

    def __init__(self, reg_coeff: float = 1e-5) -> None:
        self.reg_coeff = check_non_negative("reg_coeff", reg_coeff)
        self._coeffs: Optional[np.ndarray] = None

    def fit(self, paths: Sequence[Path], target_key: str = "returns") -> None:
        """Fits the coefficients to paths with `observations` `[T, O]` and the target `[T]`; path lengths may differ.

        Args:
            paths: path dicts.
            target_key: key of the target in each path. Default: `"returns"`.

        Raises:
            ValueError: there are no paths, a key is missing, shapes do not match, or a value is not finite. The message
                names path, key and step.
        """
        observations, targets, steps = self._read_paths(paths, target_key)
        self._coeffs = self._solve(self._features(observations, steps), targets)
        self._target_key = target_key

    def predict(self, path: Path) -> np.ndarray:
        """Returns the prediction along a path, float64 `[T]`, in the unit of the target; zeros before the first fit."""
        observations = self._observations(path, "path")
        if self._coeffs is None:
            return np.zeros(len(observations))
        features = self._features(observations, np.arange(len(observations)))
        if features.shape[1] != len(self._coeffs):
            raise ValueError(f"path: expected observations with {len(self._coeffs)} features, one per coefficient, got "
                             f"shape {observations.shape} with {features.shape[1]} features")
        return features @ self._coeffs

    @replaces("fit", "predict")
    def fit_predict(self, paths: Sequence[Path], observations: np.ndarray, returns: np.ndarray,
                    path_lengths: np.ndarray) -> Sequence[np.ndarray]:
        """Fits the baseline to the returns of one task, then predicts them for each path.

        Args:
            paths: path dicts.
            observations: `[N, O]`, the concatenated observations of all paths.
            returns: `[N]`, the concatenated returns.
            path_lengths: int `[P]`.

        Returns:
            For each path, the return value of `predict`.
        """
        steps = np.concatenate([np.arange(length) for length in path_lengths])
        features = self._features(observations.astype(np.float64, copy=False), steps)
        self._coeffs, self._target_key = self._solve(features, returns), "returns"
        if path_lengths.min() == path_lengths.max():  # one product for all paths is faster
            return list(features.reshape(len(path_lengths), path_lengths[0], -1) @ self._coeffs)
        ends = np.cumsum(path_lengths).tolist()
        return [features[start:end] @ self._coeffs for start, end in zip([0, *ends], ends)]

    def get_param_values(self, **tags: Any) -> Optional[np.ndarray]:
        """Returns a copy of the coefficients in feature order, float64 `[F]`; None before the first fit."""
        return None if self._coeffs is None else self._coeffs.copy()

    def set_params(self, value: Optional[np.ndarray], **tags: Any) -> None:
        """Sets the coefficients in feature order, `[F]`; None resets the baseline to its unfitted state."""
        if value is not None:
            value = np.array(value, dtype=np.float64)
            if value.ndim != 1 or not np.isfinite(value).all():
                raise ValueError(f"value: expected None or a vector of finite coefficients, got {value!r}")
        self._coeffs = value

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs `<prefix>ExplainedVariance`: the fraction of the target's variance that the baseline predicts.

        One is a perfect prediction; zero is no better than the mean. Target and coefficients are those of the last fit,
        so `paths` should be the paths of the last fitted task.
        """
        _, targets, _ = self._read_paths(paths, self._target_key)
        predictions = np.concatenate([self.predict(path) for path in paths])
        logger.logkv(f"{prefix}ExplainedVariance", explained_variance_1d(predictions, targets))

    def _read_paths(self, paths: Sequence[Path], target_key: str) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns observations `[N, O]`, targets `[N]` and step counts int `[N]` of all paths, checked."""
        if len(paths) == 0:
            raise ValueError("paths: expected at least one path, got none")
        observations = [self._observations(path, f"paths[{i}]") for i, path in enumerate(paths)]
        targets = [_read(path, target_key, 1, f"paths[{i}]") for i, path in enumerate(paths)]
        for i, (path_observations, path_targets) in enumerate(zip(observations, targets, strict=True)):
            expected = (len(path_targets), observations[0].shape[1])
            if path_observations.shape != expected:
                raise ValueError(f"paths[{i}]: observations: expected shape {expected} to match {target_key!r} and the "
                                 f"other paths, got {path_observations.shape}")
        steps = np.concatenate([np.arange(len(path_targets)) for path_targets in targets])
        return np.concatenate(observations), np.concatenate(targets), steps

    def _solve(self, features: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Returns the coefficients `[F]` fitted to targets `[N]` at features `[N, F]`; see the class docstring."""
        with np.errstate(over="ignore", invalid="ignore"):
            moments = features.T @ targets
        if not np.isfinite(moments).all():
            raise ValueError(f"paths: targets as large as {np.abs(targets).max()} overflow the fit")
        is_dual = max(len(targets), _PRIMAL_FEATURES) < features.shape[1]
        gram, right = (features @ features.T, targets) if is_dual else (features.T @ features, moments)
        for damping in self.reg_coeff * _DAMPINGS:
            damped = gram + damping * np.identity(len(gram))
            try:
                factor = cho_factor(damped, overwrite_a=True, check_finite=False)
            except LinAlgError:
                continue
            pivots = np.diagonal(factor[0]) ** 2
            if pivots.min() > np.finfo(np.float64).eps * len(gram) * pivots.max():
                solution = cho_solve(factor, right, check_finite=False)
                return features.T @ solution if is_dual else solution
        return np.linalg.lstsq(features, targets, rcond=None)[0]

    def _observations(self, path: Path, name: str) -> np.ndarray:
        """Checks and returns the observations of a path, float64 `[T, O]`; error messages begin with `name`."""
        return _read(path, "observations", 2, name)

    def _features(self, observations: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Returns the features, float64 `[N, F]`, of observations `[N, O]` at the steps int `[N]`."""
        raise NotImplementedError


class LinearFeatureBaseline(LinearBaseline):
    """A linear baseline on polynomial features of state and time.

        b(s, t) = w_1 s + w_2 s^2 + w_3 t + w_4 t^2 + w_5 t^3 + w_6

    The observation `s` is clipped to [-10, 10], `s^2` is the elementwise square, and the time `t` is in hundreds of
    steps. There are `F = 2 O + 4` coefficients, in this order. Observations have at most 5,000 entries.

    Args:
        reg_coeff (float): damping of the least-squares fit, at least 0; see `LinearBaseline`. Default: 1e-5.

    References:
        Duan et al. 2016, "Benchmarking Deep Reinforcement Learning for Continuous Control", arXiv:1604.06778.

    Example:
        Returns that are linear in time are predicted exactly, apart from the damping.

        >>> path = {"observations": np.zeros((5, 1)), "rewards": np.ones(5), "returns": np.arange(5.0, 0.0, -1.0)}
        >>> baseline = LinearFeatureBaseline(reg_coeff=1e-9)
        >>> baseline.fit([path])
        >>> baseline.predict(path).round(2)
        array([5., 4., 3., 2., 1.])
    """

    def _features(self, observations: np.ndarray, steps: np.ndarray) -> np.ndarray:
        size = observations.shape[1]
        if size > MAX_OBSERVATION_SIZE:
            raise ValueError(f"observations: expected at most {MAX_OBSERVATION_SIZE:,} entries for a "
                             f'LinearFeatureBaseline, got {size:,}: use baseline="LinearTimeBaseline", or reduce '
                             "images to a few features")
        features = np.empty((len(observations), 2 * size + 4))
        clipped = np.clip(observations, -_OBSERVATION_LIMIT, _OBSERVATION_LIMIT, out=features[:, :size])
        np.square(clipped, out=features[:, size:2 * size])
        features[:, 2 * size:] = _time_features(steps)
        return features


class LinearTimeBaseline(LinearBaseline):
    """A linear baseline on polynomial features of time only, as required by DiCE.

    `b(t) = w_1 t + w_2 t^2 + w_3 t^3 + w_4`, with time `t` in hundreds of steps. The four coefficients are in this
    order.

    Args:
        reg_coeff (float): damping of the least-squares fit, at least 0; see `LinearBaseline`. Default: 1e-5.
    """

    def _observations(self, path: Path, name: str) -> np.ndarray:
        is_vector = np.ndim(path.get("observations", ())) == 1  # only the number of observations is used
        return _read(path, "observations", 1, name)[:, None] if is_vector else super()._observations(path, name)

    def _features(self, observations: np.ndarray, steps: np.ndarray) -> np.ndarray:
        return _time_features(steps)


def _time_features(steps: np.ndarray) -> np.ndarray:
    """Returns the features `[t, t^2, t^3, 1]`, float64 `[N, 4]`, of step indices int `[N]`."""
    time = np.arange(steps.max() + 1) / _TIME_SCALE
    return np.stack([time, time ** 2, time ** 3, np.ones_like(time)], axis=1)[steps]


def _read(path: Mapping[str, object], key: str, ndim: int, name: str) -> np.ndarray:
    """Checks and returns an entry of a path as float64 of rank `ndim`; raises `ValueError` if it is invalid."""
    if key not in path:
        raise ValueError(f"{name}: expected a key {key!r}, got only {sorted(path)}")
    values = np.asarray(path[key], dtype=np.float64)
    if values.ndim != ndim or len(values) == 0:
        axes = "[T]" if ndim == 1 else "[T, O]"
        raise ValueError(f"{name}: {key}: expected shape {axes} with T of at least 1, got {values.shape}")
    if not np.isfinite(values).all():
        step = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise ValueError(f"{name}: {key}: expected finite numbers, got {values[step]} at step {step}")
    return values
