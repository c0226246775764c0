"""Baseline for recurrent policies: the rescaled output of their value head."""
from typing import Any, Sequence, Tuple

import numpy as np

from meta_policy_search.baselines.base import Baseline
from meta_policy_search.types import Path


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
