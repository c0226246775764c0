"""The robots' model files."""
import importlib.util
from pathlib import Path


def model_file(robot: str) -> Path:
    """Returns the model file of a robot among the assets of the installed Gymnasium, without importing it."""
    package = importlib.util.find_spec("gymnasium")
    if package is None:
        raise ImportError("the models of the MuJoCo robots come with Gymnasium: run `pip install gymnasium`")
    path = Path(package.submodule_search_locations[0]) / "envs" / "mujoco" / "assets" / f"{robot}.xml"
    if not path.is_file():
        raise FileNotFoundError(
            f"the installed Gymnasium has no model {path}: run `pip install --force-reinstall gymnasium`"
        )
    return path

