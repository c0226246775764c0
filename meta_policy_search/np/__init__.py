"""NumPy algorithms for a single task, with policies, exploration and a replay buffer; no TensorFlow."""
