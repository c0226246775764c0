"""Imports classes and functions of the user by name."""
import importlib
import os
import sys
from typing import Any, Mapping


def search_current_folder() -> None:
    """Makes modules in the current folder importable, after installed ones."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def import_name(argument: str, name: str, registered: Mapping[str, Any]) -> Any:
    """Imports `MODULE:NAME` and returns the object NAME of the module.

    If the module has no object NAME, the function returns the object that is registered under NAME, because the module
    may have registered it. Modules in the current folder are found, after installed ones.

    Args:
        argument: name of the argument in error messages.
        name: the text `MODULE:NAME`.
        registered: registered objects by name.

    Raises:
        ValueError: the module cannot be imported, or NAME is neither in the module nor registered.
    """
    module_name, _, attribute = name.rpartition(":")
    search_current_folder()
    try:
        names = vars(importlib.import_module(module_name))
    except (ImportError, OSError, TypeError, ValueError) as error:  # TypeError: a relative name
        raise ValueError(f"{argument}: expected MODULE:NAME with a module that can be imported, got {name!r}: "
                         f"{error}") from error
    found = names.get(attribute, registered.get(attribute))
    if found is None:
        raise ValueError(f"{argument}: expected MODULE:NAME with an object of the module or a registered name, got "
                         f"{name!r}")
    return found
