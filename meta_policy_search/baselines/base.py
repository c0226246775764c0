"""Interface of reward baselines, and the baselines that are not fitted to observations."""
import reprlib
from typing import Any, Sequence, Tuple

import numpy as np

from meta_policy_search.types import Path
from meta_policy_search.utils.serializable import Configurable


class Baseline(Configurable):
    """Predicts a quantity for every step of a path, such as the discounted sum of future rewards.

    For each task in turn, a sample processor calls `fit` with all paths of the task, then `predict` for each path.
    After that, the baseline keeps the parameters of the last task. `TrialSampleProcessor` fits it once, to the trials
    of all tasks. Any object with these two methods can serve as a baseline; the library calls the other methods only on
    subclasses of this class. `DiceSampleProcessor` also passes a `target_key` to `fit`.

    A subclass may also have a vectorized method::

        @replaces("fit", "predict")
        def fit_predict(self, paths, observations, returns, path_lengths): ...

    The method fits the baseline to `returns` `[N]` at `observations` `[N, O]`, the concatenated steps of `P` paths of
    lengths `path_lengths` `[P]`. For each path, it returns the same values as `predict`. See `utils.fast_paths`.
    """

    def fit(self, paths: Sequence[Path], target_key: str = "returns") -> None:
        """Fits the baseline to the paths of one task; discards earlier fits.

        Args:
            paths: path dicts.
            target_key: key of the target in each path, `[T]`. Default: `"returns"`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement fit")

    def predict(self, path: Path) -> np.ndarray:
        """Returns the prediction along a path with `observations` `[T, O]`, float64 `[T]`, in the target's unit."""
        raise NotImplementedError(f"{type(self).__name__} does not implement predict")

    def train(self, paths: Sequence[Path], target_key: str = "returns") -> None:
        """Updates the parameters that persist over iterations. Default: does nothing.

        The trainer calls it once per iteration with the paths of all tasks from before adaptation, after the last
        `fit` of the iteration.

        Args:
            paths: path dicts.
            target_key: key of the target in each path, `[T]`.
        """

    def get_param_values(self, **tags: Any) -> Any:
        """Returns the parameters in the form that `set_params` accepts; None (default) if there are none."""
        return None

    def set_params(self, value: Any, **tags: Any) -> None:
        """Restores the parameters `value` that `get_param_values` returned."""
        raise NotImplementedError(f"{type(self).__name__} does not implement set_params")

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs statistics of the baseline. Default: logs nothing.

        Training does not call this method, because a baseline is fitted separately to each task and never describes all
        tasks.

        Args:
            paths: paths with the fitted target.
            prefix: prefix of each column name, such as `Step_0-`.
        """


class ZeroBaseline(Baseline):
    """Predicts zero, for training without a baseline."""

    def fit(self, paths: Sequence[Path], target_key: str = "returns") -> None:
        """Does nothing."""

    def predict(self, path: Path) -> np.ndarray:
        """Returns zeros, float64 `[T]`."""
        return np.zeros(len(path["observations"]))

    def set_params(self, value: None, **tags: Any) -> None:
        """Accepts only None, the return value of `get_param_values`; otherwise raises `ValueError`."""
        if value is not None:
            raise ValueError(f"value: expected None, because a ZeroBaseline has no parameters, got "
                             f"{reprlib.repr(value)}")


class ValueHeadBaseline(Baseline):
    """Predicts returns from the agent info `value`, the output of the policy's value head.

    The value head predicts standardized returns, and the baseline converts them to the unit of the returns:
    `V_t = mean_t + scale * value_t`. `mean_t` is the mean return at step `t` over the fitted paths. `scale` is the
    standard deviation of the returns around `mean_t`, over all steps. Targets of the value head are therefore of order
    one for any scale of the rewards. Fit the baseline to the paths of all tasks together, like `TrialSampleProcessor`.
    """

    def __init__(self) -> None:
        self._mean, self._scale = np.zeros(1), 1.0

    def fit(self, paths: Sequence[Path], target_key: str = "returns") -> None:
        targets: Sequence[np.ndarray] = [path[target_key] for path in paths]  # type: ignore[literal-required]
        mask = np.arange(max(map(len, targets))) < np.array([len(target) for target in targets])[:, None]
        padded = np.zeros(mask.shape)
        padded[mask] = np.concatenate(targets)
        self._mean, self._scale = return_statistics(padded, mask)

    def predict(self, path: Path) -> np.ndarray:
        infos = path.get("agent_infos", {})
        if "value" not in infos:
            raise ValueError(f"agent_infos: expected an entry 'value', as a RecurrentPolicy returns it, got "
                             f"{sorted(infos)}")
        values = np.asarray(infos["value"], np.float64)
        return self._mean[:len(values)] + self._scale * values

    def get_param_values(self, **tags: Any) -> Any:
        """Returns a dict of `mean` and `scale`."""
        return {"mean": self._mean, "scale": self._scale}

    def set_params(self, value: Any, **tags: Any) -> None:
        self._mean, self._scale = value["mean"], value["scale"]


def return_statistics(returns: np.ndarray, mask: np.ndarray) -> Tuple[np.ndarray, float]:
    """Returns the mean of returns `[P, T]` at each step, float64 `[T]`, and the standard deviation around it, a float.

    The standard deviation is taken over all steps together; zero is replaced by one. `mask` `[P, T]` is True for steps
    and False for padding.
    """
    mean = np.where(mask, returns, 0.0).sum(axis=0) / mask.sum(axis=0)
    scale = float(np.sqrt(np.mean(np.square(returns - mean)[mask])))
    return mean, scale if scale > 1e-8 else 1.0
