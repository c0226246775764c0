"""The interface of reward baselines."""
from typing import Any, Sequence

import numpy as np

from meta_policy_search.types import Path
from meta_policy_search.utils.serializable import Configurable


class Baseline(Configurable):
    """Predicts a quantity for every step of a path, such as the discounted rewards to come.

    A sample processor calls `fit` with all paths of one task, then `predict` for each of them, task after task. So
    the parameters left at the end are those of the last task. Any object with these two methods can serve as a
    baseline (see `as_baseline`); `DiceSampleProcessor` passes a `target_key` to `fit`.

    A subclass may also have a vectorized method::

        @replaces("fit", "predict")
        def fit_predict(self, paths, observations, returns, path_lengths): ...

    It fits the baseline to `returns` `[N]` at `observations` `[N, O]`, the concatenated steps of `P` paths of
    `path_lengths` `[P]`, and returns for each path what `predict` returns. See `utils.fast_paths`.
    """

    def fit(self, paths: Sequence[Path], target_key: str = "returns") -> None:
        """Fits the baseline to the paths of one task, forgetting earlier fits.

        Args:
            paths: path dicts.
            target_key: key of what is to be predicted, `[T]` in each path.
        """
        raise NotImplementedError

    def predict(self, path: Path) -> np.ndarray:
        """Returns the prediction along a path with `observations` `[T, O]`: float64 `[T]`, in the target's unit."""
        raise NotImplementedError

    def train(self, paths: Sequence[Path], target_key: str = "returns") -> None:
        """Trains what the baseline learns over iterations; by default nothing.

        The trainer calls it once per iteration with the paths of all tasks from before adaptation, after the last
        `fit` of the iteration.

        Args:
            paths: path dicts.
            target_key: key of what is to be predicted, `[T]` in each path.
        """

    def get_param_values(self, **tags: Any) -> Any:
        """Returns the parameters in a form that `set_params` takes; None, the default, if there are none to restore."""
        return None

    def set_params(self, value: Any, **tags: Any) -> None:
        """Sets the parameters to `value`, which `get_param_values` returned."""
        raise NotImplementedError

    def log_diagnostics(self, paths: Sequence[Path], prefix: str) -> None:
        """Logs figures about the baseline; none by default.

        Training does not call it, since a baseline is fitted anew for each task and never describes all of them.

        Args:
            paths: paths that hold the fitted target.
            prefix: put before each key, such as `Step_0-`.
        """


def as_baseline(baseline: Any, name: str = "baseline") -> Baseline:
    """Returns `baseline` itself if it is a `Baseline`, else an adapter of an object with `fit` and `predict`.

    The adapter's attribute `wrapped` is the object. The adapter calls its `fit(paths)` to fit returns, and its
    `fit(paths, target_key=...)` to fit anything else.

    Args:
        baseline: a `Baseline`, or any object with `fit` and `predict`.
        name: what errors call it.

    Raises:
        TypeError: it has no such methods.
    """
    if isinstance(baseline, Baseline):
        return baseline
    has_methods = callable(getattr(baseline, "fit", None)) and callable(getattr(baseline, "predict", None))
    if isinstance(baseline, type) or not has_methods:
        raise TypeError(f"{name}: expected an object with the methods fit and predict (ZeroBaseline() for none), got "
                        f"{baseline!r}")
    return _AdaptedBaseline(baseline)


class _AdaptedBaseline(Baseline):
    """Calls a user's object; `get_param_values` and `set_params` are optional."""

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
