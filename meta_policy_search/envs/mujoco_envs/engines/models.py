"""The robots' models: their files, and the masses and inertias that they can have."""
import importlib.util
from pathlib import Path
from typing import Dict

import numpy as np

ROBOTS = ("ant", "half_cheetah", "hopper", "humanoid", "swimmer", "walker2d")
"""Robots that can be simulated, by the names of Gymnasium's model files."""

INERTIALS = ("mujoco210", "modern")
"""Whose masses and inertias a robot can have, those of MuJoCo 2.1.0 or those that the installed `mujoco` computes."""

INERTIAL_ARRAYS = ("body_mass", "body_inertia", "body_ipos", "body_iquat")
"""What of a model is meant by its inertials."""

_INERTIALS_FILE = Path(__file__).parent / "data" / "mujoco210_inertials.npz"


def model_file(robot: str) -> Path:
    """Returns the model file of a robot among the assets of the installed Gymnasium, without importing it."""
    package = importlib.util.find_spec("gymnasium")
    if package is None or not package.submodule_search_locations:
        raise ImportError("the models of the MuJoCo robots come with Gymnasium: run `pip install gymnasium`")
    path = Path(package.submodule_search_locations[0]) / "envs" / "mujoco" / "assets" / f"{robot}.xml"
    if not path.is_file():
        raise FileNotFoundError(
            f"the installed Gymnasium has no model {path}: run `pip install --force-reinstall gymnasium`")
    return path


def mujoco210_inertials(robot: str) -> Dict[str, np.ndarray]:
    """Returns the masses and inertias of a robot as MuJoCo 2.1.0 computes them, by the names in `INERTIAL_ARRAYS`."""
    with np.load(_INERTIALS_FILE) as file:
        return {name: file[f"{robot}/{name}"] for name in INERTIAL_ARRAYS}
