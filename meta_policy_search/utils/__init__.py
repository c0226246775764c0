"""Logging, files, snapshots, seeds and checks of arguments; nothing here imports TensorFlow."""
from meta_policy_search.utils import logger
from meta_policy_search.utils.serializable import Serializable
from meta_policy_search.utils.utils import (
    ClassEncoder,
    concat_tensor_dict_list,
    create_feed_dict,
    discount_cumsum,
    explained_variance_1d,
    extract,
    normalize_advantages,
    set_seed,
    shift_advantages_to_positive,
    stack_tensor_dict_list,
)

__all__ = ["ClassEncoder", "Serializable", "concat_tensor_dict_list", "create_feed_dict", "discount_cumsum",
           "explained_variance_1d", "extract", "logger", "normalize_advantages", "set_seed",
           "shift_advantages_to_positive", "stack_tensor_dict_list"]
