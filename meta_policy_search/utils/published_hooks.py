"""Methods of the public code of ProMP and of earlier versions that this package never calls."""
from typing import Any, Dict

UNCALLED: Dict[str, Dict[str, str]] = {
    "MAMLAlgo": {"_adapt_objective_sym": "inner_loss", "_build_inner_adaption": "inner_update",
                 "_adapt_sym": "inner_update", "_extract_input_dict": "input_values", "make_vars": "meta_objective",
                 "build_inner_loss": "inner_loss", "build_meta_objective": "meta_objective"},
    "MetaPolicy": {"_get_pre_update_actions": "get_actions", "_get_post_update_actions": "get_actions"},
    "SampleProcessor": {"_compute_samples_data": "process_samples", "_compute_advantages": "process_samples",
                        "_stack_path_data": "process_samples", "_log_path_stats": "process_samples"},
}
"""Base class to its uncalled methods, each with the method to override instead."""


def refuse_uncalled(cls: Any, base: str) -> None:
    """Raises `TypeError` if a class defines a method that this package never calls.

    Base classes call this function in `__init_subclass__`. Otherwise an override in older code would silently have no
    effect.

    Args:
        cls: the new class.
        base: name of the base class in `UNCALLED`.
    """
    for name in sorted(UNCALLED[base].keys() & vars(cls).keys()):
        raise TypeError(f"{cls.__name__}.{name}: this version never calls this method of older code; override "
                        f"{UNCALLED[base][name]} instead")
