"""Names of environments and algorithms: built-in names, names that the user registers, and MODULE:NAME."""
import contextlib
import importlib
import os
import sys
from typing import Any, Dict, Iterable, Mapping, Tuple

from meta_policy_search.utils.checks import comparable_name, find_name


def search_current_folder() -> None:
    """Makes modules in the current folder importable, after installed ones."""
    with contextlib.suppress(FileNotFoundError):  # the current folder was deleted
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())


def register(name: str, value: Any, registered: Dict[str, Any], built_in: Iterable[str]) -> None:
    """Adds an entry to a registry; replaces an earlier entry of the user with the same name.

    Args:
        name: the name.
        value: the entry.
        registered: the registry.
        built_in: names that cannot be replaced.

    Raises:
        TypeError: `name` is not a non-empty string.
        ValueError: `name` is a built-in name. Case, hyphens and underscores are ignored.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"name: expected a non-empty string, got {name!r}")
    if comparable_name(name) in map(comparable_name, built_in):
        raise ValueError(f"name: expected a name that is not built in, got {name!r}")
    for other in [other for other in registered if comparable_name(other) == comparable_name(name)]:
        del registered[other]
    registered[name] = value


def find_registered(argument: str, name: str, registered: Mapping[str, Any]) -> Tuple[str, Any]:
    """Returns the registered name and the entry of `name`; for MODULE:NAME, `name` and what `import_name` returns.

    Raises:
        ValueError: the name is unknown.
    """
    if isinstance(name, str) and ":" in name:
        return name, import_name(argument, name, registered)
    found = find_name(argument, name, registered)
    return found, registered[found]


def import_name(argument: str, name: str, registered: Mapping[str, Any]) -> Any:
    """Imports `MODULE:NAME` and returns the object NAME of the module.

    If the module has no object NAME, the function returns the object that is registered under NAME, because the module
    may have registered it. Modules in the current folder are found, after installed ones.

    Args:
        argument: name of the argument in error messages.
        name: the text `MODULE:NAME`.
        registered: registered objects by name.

    Raises:
        ValueError: the module cannot be imported or belongs to the standard library, or NAME is neither in the module
            nor registered.
    """
    module_name, _, attribute = name.rpartition(":")
    search_current_folder()
    try:
        if module_name.partition(".")[0] in sys.stdlib_module_names:  # settings files may come from others
            raise ImportError(f"{module_name} is a module of Python")
        names = vars(importlib.import_module(module_name))
    except (Exception, SystemExit) as error:
        raise ValueError(f"{argument}: expected MODULE:NAME with a module that can be imported, got {name!r}: "
                         f"{type(error).__name__}: {error}") from error
    found = names.get(attribute, registered.get(attribute))
    if found is None:
        raise ValueError(f"{argument}: expected MODULE:NAME with an object of the module or a registered name, got "
                         f"{name!r}")
    return found
