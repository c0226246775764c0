"""Reward baselines, which predict returns to reduce the variance of policy gradients."""
from typing import Any

from meta_policy_search.baselines.base import Baseline, ZeroBaseline
from meta_policy_search.baselines.gaussian_mlp_baseline import GaussianMLPBaseline
from meta_policy_search.baselines.linear_baseline import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.utils.checks import check_choice, check_not_replaced

__all__ = ["Baseline", "GaussianMLPBaseline", "LinearFeatureBaseline", "LinearTimeBaseline", "ZeroBaseline"]

BASELINES = __all__[1:]
"""Names of the classes that can be specified by name."""


def make_baseline(baseline: Any, argument: str = "baseline") -> Baseline:
    """Returns the baseline that is specified by an object or by a class name.

    Args:
        baseline: a `Baseline`, any object with `fit` and `predict`, or one of `BASELINES`, for a new object with
            default arguments.
        argument: name of the baseline in error messages. Default: `"baseline"`.

    Raises:
        TypeError: `baseline` is not a name, and has no methods `fit` and `predict`; or a method was replaced on it.
        ValueError: `baseline` is not one of the names.
    """
    if isinstance(baseline, str):
        return globals()[check_choice(argument, baseline, BASELINES)]()
    if isinstance(baseline, type):
        raise TypeError(f"{argument}: expected an object, got the class {baseline.__name__}; use "
                        f"{baseline.__name__}()")
    if not (callable(getattr(baseline, "fit", None)) and callable(getattr(baseline, "predict", None))):
        raise TypeError(f"{argument}: expected one of {', '.join(BASELINES)}, or an object with the methods fit and "
                        f"predict, got {baseline!r}; use ZeroBaseline() to train without a baseline")
    return check_not_replaced(argument, baseline, Baseline)
