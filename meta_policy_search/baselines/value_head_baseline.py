"""The baseline of recurrent policies: the output of their value head, in units of the present returns."""
from typing import Any, Sequence, Tuple

import numpy as np

from meta_policy_search.baselines.base import Baseline
from meta_policy_search.types import Path


class ValueHeadBaseline(Baseline):
    """Predicts returns from the agent info `value` of the paths, the standardized return that a policy expects.

    `V_t = mean_t + scale * value_t`, where `mean_t` is the mean return at step `t` over the fitted paths, and `scale`
    the standard deviation of the differences. So the value head learns numbers of order one at each step, whatever the
    rewards are. Fit it to the paths of all tasks together, as `TrialSampleProcessor` does.
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
        values = path["agent_infos"].get("value")
        if values is None:
            raise ValueError("agent_infos: expected an entry 'value', as a CategoricalGRUPolicy gives it, got "
                             f"{sorted(path['agent_infos'])}")
        return self._mean[:len(values)] + self._scale * np.asarray(values, np.float64)

    def get_param_values(self, **tags: Any) -> Any:
        """Returns mean and scale."""
        return {"mean": self._mean, "scale": self._scale}

    def set_params(self, value: Any, **tags: Any) -> None:
        self._mean, self._scale = value["mean"], value["scale"]


def return_statistics(returns: np.ndarray, mask: np.ndarray) -> Tuple[np.ndarray, float]:
    """Returns the mean of returns `[P, T]` at each step, float64 `[T]`, and the standard deviation of the differences.

    `mask` `[P, T]` marks the steps of the paths. A standard deviation of zero is replaced by one.
    """
    mean = np.where(mask, returns, 0.0).sum(axis=0) / mask.sum(axis=0)
    scale = float(np.sqrt(np.mean(np.square(returns - mean)[mask])))
    return mean, scale if scale > 1e-8 else 1.0
