"""Imports classes and functions of the user by name."""
import importlib
import os
import pickle
import sys
from typing import Any, Mapping

from meta_policy_search.utils.files import atomic_file


def import_name(argument: str, name: str, registered: Mapping[str, Any]) -> Any:
    """Imports `MODULE:NAME` and returns the object NAME of the module.

    If the module has no object NAME, the function returns the object that is registered under NAME, because the module
    may have registered it. Modules in the current folder are found. MODULE may also be the path of a file that ends
    with `.pkl` and contains a dict from names to objects (`write_objects`).

    Args:
        argument: name of the argument in error messages.
        name: the text `MODULE:NAME`.
        registered: registered objects by name.

    Raises:
        ValueError: the module cannot be imported, or NAME is neither in the module nor registered.
    """
    module_name, _, attribute = name.rpartition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        is_file = module_name.endswith(".pkl")
        names = _read_objects(module_name) if is_file else vars(importlib.import_module(module_name))
    except (ImportError, OSError, ValueError) as error:
        raise ValueError(f"{argument}: expected MODULE:NAME with a module that can be imported, got {name!r}: "
                         f"{error}") from error
    found = names.get(attribute, registered.get(attribute))
    if found is None:
        raise ValueError(f"{argument}: expected MODULE:NAME with an object of the module or a registered name, got "
                         f"{name!r}")
    return found


def write_objects(path: str, objects: Mapping[str, Any]) -> None:
    """Writes objects by name to a file that `import_name` reads in another process.

    Objects that are defined in `__main__`, such as the cells of a notebook, or in a function are contained in the file.
    Other modules are imported when the file is read.
    """
    import cloudpickle

    with atomic_file(path) as file:
        cloudpickle.dump(dict(objects), file)


def _read_objects(path: str) -> Mapping[str, Any]:
    with open(path, "rb") as file:
        try:
            return pickle.load(file)
        except (AttributeError, EOFError, pickle.UnpicklingError) as error:  # changed modules, or a damaged file
            raise ValueError(f"{path} cannot be read: {error!r}") from error
