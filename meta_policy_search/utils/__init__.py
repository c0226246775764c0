"""Logging, snapshots, seeds and other helpers; nothing here imports TensorFlow."""
