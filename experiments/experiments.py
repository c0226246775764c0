"""Lets `python experiments/pro_mp.py` import its siblings as `experiments.settings`, as `python -m` does.

Python looks for modules in the folder of the script that it was started with, so `experiments` is this file there; its
`__path__` makes it the package. From the checkout, `experiments` is the folder itself, and nothing imports this file.
"""
import os

__path__ = [os.path.dirname(os.path.abspath(__file__))]
