"""Acting on arrays without TensorFlow: several policies at once, one for each task."""
