"""Makes `import experiments.results` work in the scripts of this folder; see `experiments.py` in the parent folder."""
import os

__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
