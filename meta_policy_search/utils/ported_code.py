"""Check for subclasses that were written for the public code of ProMP."""
import inspect
from typing import Dict

_REMOVED_HOOKS: Dict[str, Dict[str, str]] = {
    "MAMLAlgo": {"_adapt_objective_sym": "inner_loss", "_build_inner_adaption": "inner_update",
                 "_adapt_sym": "inner_update", "_extract_input_dict": "input_values", "make_vars": "meta_objective",
                 "build_inner_loss": "inner_loss", "build_meta_objective": "meta_objective",
                 "_make_input_placeholders": "meta_objective", "_create_step_size_vars": "inner_update",
                 "_extract_input_dict_meta_op": "meta_input_values"},
    "MetaPointEnvNavigation": {"reward": "step", "done": "step"},
    "MetaSampler": {"_handle_info_dicts": "obtain_samples"},
    "MujocoMetaEnv": {"_get_obs": "reset and step", "reset_model": "reset"},
    "NormalizedEnv": dict.fromkeys((
        "_apply_normalize_obs", "_apply_normalize_reward", "_update_obs_estimate", "_update_reward_estimate"),
        "reset and step"),
    "Policy": {"_get_pre_update_actions": "get_actions", "_get_post_update_actions": "get_actions",
               "_build_output": "distribution_info_sym", "_create_placeholders_for_vars": "build_graph",
               "log_likelihood_sym": "distribution", "likelihood_ratio_sym": "distribution"},
    "SampleProcessor": dict.fromkeys((
        "_compute_samples_data", "_compute_advantages", "_stack_path_data", "_log_path_stats", "_pad_and_stack_paths",
        "_compute_discounted_rewards", "_compute_adjusted_rewards", "_fit_reward_baseline_compute_advantages"),
        "process_samples"),
    "Trainer": {"log_diagnostics": "perform_itr"},
}
"""For each base class of this package, a dict from the name of a removed method to the method to override instead."""


def check_hooks(cls: type) -> None:
    """Raises `TypeError` if a class overrides a method of the public ProMP code that this package does not call.

    Without this check, the override would silently have no effect.
    """
    for base in cls.__mro__:
        hooks = _REMOVED_HOOKS.get(base.__name__, {}) if base.__module__.startswith("meta_policy_search.") else {}
        for name, instead in hooks.items():
            if inspect.getattr_static(cls, name, None) is not inspect.getattr_static(base, name, None):
                raise TypeError(f"{cls.__name__}.{name}: this version never calls this method of older code; override "
                                f"{instead} instead")
