"""Lets the scripts in this folder import `experiments.results`; see `experiments.py` in the folder above."""
import os

__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
