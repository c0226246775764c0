"""The interface of reward baselines."""
from typing import Any, Sequence

import numpy as np

from meta_policy_search.types import Path
from meta_policy_search.utils.signatures import SharedArguments


class Baseline(SharedArguments):
    """Predicts a quantity for every step of a path, such as the discounted rewards to come.

    A sample processor calls `fit` with all paths of one task, then `predict` for each of them, task after task. So
    the parameters left at the end are those of the last task. Any object with these two methods can serve as a
    baseline; `DiceSampleProcessor` passes a `target_key` to `fit`.
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

    def fit_predict(self, paths: Sequence[Path], observations: np.ndarray, returns: np.ndarray,
                    path_lengths: np.ndarray) -> Sequence[np.ndarray]:
        """Fits the baseline to the returns of one task, then predicts them for each path.

        By default it calls `fit` and `predict`; a subclass may do the same on arrays, which is faster.

        Args:
            paths: path dicts, which hold `returns`.
            observations: `[N, O]`, those of all paths, one after the other.
            returns: `[N]`, likewise.
            path_lengths: int `[P]`.

        Returns:
            For each path what `predict` returns.
        """
        self.fit(paths)
        return [self.predict(path) for path in paths]

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
