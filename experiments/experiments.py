"""Makes `import experiments.results` work in scripts that are started as `python experiments/reproduce.py`.

Python searches the folder of the started script for modules, so `import experiments` finds this file. Its `__path__`
turns it into the package. If Python runs from the root of the repository (`python -m`), `experiments` is the folder,
and this file is not imported.
"""
import os

__path__ = [os.path.dirname(os.path.abspath(__file__))]
