"""Gradient-based meta-reinforcement learning: ProMP, MAML, E-MAML and DiCE on static TensorFlow graphs."""

__version__ = "0.1.0"
