"""Logging, files, snapshots, seeds and checks of arguments; nothing here imports TensorFlow."""
