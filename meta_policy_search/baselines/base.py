"""Interface of reward baselines."""
from typing import Any, Optional, Sequence

import numpy as np

from meta_policy_search.types import Path
from meta_policy_search.utils.serializable import Configurable


class Baseline(Configurable):
    """Predicts a quantity for every step of a path, such as the discounted sum of future rewards.

    For each task in turn, a sample processor calls `fit` with all paths of the task, then `predict` for each path.
    After that, the baseline keeps the parameters of the last task. Any object with these two methods can serve as a
    baseline (see `make_baseline`). `DiceSampleProcessor` also passes a `target_key` to `fit`.

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
        raise NotImplementedError

    def predict(self, path: Path) -> np.ndarray:
        """Returns the prediction along a path with `observations` `[T, O]`, float64 `[T]`, in the target's unit."""
        raise NotImplementedError

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
        raise NotImplementedError

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs statistics of the baseline. Default: logs nothing.

        Training does not call this method, because a baseline is fitted separately to each task and never describes all
        tasks.

        Args:
            paths: paths with the fitted target.
            prefix: prefix of each column name, such as `Step_0-`.
        """


class AdaptedBaseline(Baseline):
    """Adapts a custom object with `fit` and `predict`; its `get_param_values` and `set_params` are optional.

    Args:
        wrapped: the object. `fit` calls `wrapped.fit(paths)` for returns, and `wrapped.fit(paths, target_key=...)` for
            other targets.
    """

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def fit(self, paths: Sequence[Path], target_key: str = "returns") -> None:
        if target_key == "returns":
            self.wrapped.fit(paths)
        else:
            self.wrapped.fit(paths, target_key=target_key)

    def predict(self, path: Path) -> np.ndarray:
        return self.wrapped.predict(path)

    def get_param_values(self, **tags: Any) -> Any:
        has_params = hasattr(self.wrapped, "get_param_values")
        return self.wrapped.get_param_values(**tags) if has_params else None

    def set_params(self, value: Any, **tags: Any) -> None:
        self.wrapped.set_params(value, **tags)


def original_baseline(baseline: Optional[Baseline]) -> Any:
    """Returns the object that an `AdaptedBaseline` adapts; all other arguments are returned unchanged."""
    return baseline.wrapped if isinstance(baseline, AdaptedBaseline) else baseline
