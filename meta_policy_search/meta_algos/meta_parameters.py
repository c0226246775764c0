"""What a meta-update optimizes."""
from collections import OrderedDict
from typing import Mapping

from meta_policy_search.policies.base import Policy
from meta_policy_search.tf_compat import tf


class MetaParameters:
    """What a meta-update optimizes: the policy's parameters and, if they are trained, the inner step sizes.

    Args:
        policy: the policy.
        log_step_sizes: name of a policy parameter to the variable with the logarithm of its step sizes.
    """

    step_size_damping = 0.1
    """Added to the curvature of a log step size. Along most of them the divergence does not change, so that an
    undamped natural-gradient step would be without bounds there."""

    def __init__(self, policy: Policy, log_step_sizes: Mapping[str, tf.Variable]) -> None:
        self._policy = policy
        self._log_step_sizes = {f"log_step_size/{name}": v for name, v in log_step_sizes.items()}
        self.damping = {name: self.step_size_damping for name in self._log_step_sizes}

    def get_params(self) -> "OrderedDict[str, tf.Variable]":
        """Returns all variables by name."""
        return OrderedDict([*self._policy.get_params().items(), *self._log_step_sizes.items()])
