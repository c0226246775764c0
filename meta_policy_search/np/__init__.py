"""Algorithms for a single task on NumPy, with their policies, exploration and replay buffer; no TensorFlow."""
