"""Speed and memory of the package; `python benchmarks/run.py`, see README.md."""
