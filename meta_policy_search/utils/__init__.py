"""Logging, files, snapshots, seeds and checks of arguments; nothing here imports TensorFlow."""
from meta_policy_search.utils import logger
from meta_policy_search.utils.serializable import Serializable
from meta_policy_search.utils.utils import (
    ClassEncoder,
    discount_cumsum,
    explained_variance_1d,
    normalize_advantages,
    set_seed,
    shift_advantages_to_positive,
)

__all__ = ["ClassEncoder", "Serializable", "discount_cumsum", "explained_variance_1d", "logger", "normalize_advantages",
           "set_seed", "shift_advantages_to_positive"]
