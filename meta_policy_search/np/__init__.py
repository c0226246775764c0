"""Everything that runs on NumPy alone; nothing here imports TensorFlow."""
