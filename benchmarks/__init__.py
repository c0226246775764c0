"""Benchmarks of speed and memory: `python benchmarks/run.py`, see README.md."""
