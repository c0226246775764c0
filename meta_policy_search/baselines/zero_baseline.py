"""A baseline that predicts zero."""
import reprlib
from typing import Any, Sequence

import numpy as np

from meta_policy_search.baselines.base import Baseline
from meta_policy_search.types import Path


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
