"""Gradient-based meta-reinforcement learning: ProMP, MAML and E-MAML on static TensorFlow graphs."""

__version__ = "0.2.0"
