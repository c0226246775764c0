"""Classic control problems whose bodies have another mass in each task: cart and pole, and the pendulum."""
from meta_policy_search.envs.control_envs.cart_pole_mass import CartPoleMassEnv
from meta_policy_search.envs.control_envs.pendulum_mass import PendulumMassEnv

__all__ = ["CartPoleMassEnv", "PendulumMassEnv"]
