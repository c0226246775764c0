"""Methods of older code (the public ProMP code, earlier versions of this package) that are no longer called."""
import inspect
from typing import Any, Dict

UNCALLED: Dict[str, Dict[str, str]] = {
    "MAMLAlgo": {"_adapt_objective_sym": "inner_loss", "_build_inner_adaption": "inner_update",
                 "_adapt_sym": "inner_update", "_extract_input_dict": "input_values", "make_vars": "meta_objective",
                 "build_inner_loss": "inner_loss", "build_meta_objective": "meta_objective",
                 "_make_input_placeholders": "meta_objective", "_create_step_size_vars": "inner_update",
                 "_extract_input_dict_meta_op": "meta_input_values"},
    "MetaSampler": {"_handle_info_dicts": "obtain_samples"},
    "Policy": {"_get_pre_update_actions": "get_actions", "_get_post_update_actions": "get_actions",
               "_build_output": "distribution_info_sym", "_create_placeholders_for_vars": "build_graph"},
    "SampleProcessor": dict.fromkeys((
        "_compute_samples_data", "_compute_advantages", "_stack_path_data", "_log_path_stats", "_pad_and_stack_paths",
        "_compute_discounted_rewards", "_compute_adjusted_rewards", "_fit_reward_baseline_compute_advantages"),
        "process_samples"),
}
"""For each base class, a dict from the name of an uncalled method to the method to override instead."""


def refuse_uncalled(cls: Any, base: type) -> None:
    """Raises `TypeError` if a class defines or inherits a method of older code that this package never calls.

    Base classes call this function in `__init_subclass__`. Without this check, overrides of these methods would
    silently have no effect.

    Args:
        cls: the class to check.
        base: the base class; its name is a key of `UNCALLED`.
    """
    for name, instead in UNCALLED[base.__name__].items():
        if inspect.getattr_static(cls, name, None) is not inspect.getattr_static(base, name, None):
            raise TypeError(f"{cls.__name__}.{name}: this version never calls this method of older code; override "
                            f"{instead} instead")
