"""Names of environments and algorithms: built-in names, names that the user registers, and MODULE:NAME."""
import contextlib
import importlib
import os
import re
import sys
from collections import ChainMap
from typing import Any, Dict, List, Mapping, Optional, Tuple

from meta_policy_search.utils.checks import comparable_name, did_you_mean, find_name


def search_current_folder() -> None:
    """Makes modules in the current folder importable, after installed ones."""
    with contextlib.suppress(FileNotFoundError):  # the current folder was deleted
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())


class Registry:
    """Entries by name: built-in ones and those that the user registers.

    Args:
        kind (str): name of the argument that selects an entry, in error messages.
        built_in (Mapping): the built-in entries, which cannot be replaced.
        elsewhere (Mapping): names that are no entries, in lower case, and what to use instead. Default: none.
    """

    def __init__(self, kind: str, built_in: Mapping[str, Any], elsewhere: Mapping[str, str] = {}) -> None:  # noqa: B006
        self.kind, self.built_in, self.entries = kind, frozenset(map(comparable_name, built_in)), dict(built_in)
        self.elsewhere = elsewhere

    def register(self, name: str, entry: Any) -> None:
        """Adds an entry, or replaces an entry of the user with the same name.

        Raises:
            TypeError: `name` is not a non-empty string.
            ValueError: `name` has other characters than letters, digits and `_-.:/`, or is the name of another entry.
                Case, hyphens and underscores are ignored.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"name: expected a non-empty string, got {name!r}")
        if not re.fullmatch(r"[\w.:/-]+", name) or ".." in name or name.startswith("/"):  # part of the run folder
            raise ValueError(f"name: expected letters, digits and _-.:/ without '..' and without / at the start, got "
                             f"{name!r}")
        if comparable_name(name) in self.built_in:
            raise ValueError(f"name: expected a name that is not built in, got {name!r}")
        for other in self.entries:
            if other != name and comparable_name(other) == comparable_name(name):
                raise ValueError(f"name: expected a name that differs from {other!r} in more than case, hyphens and "
                                 f"underscores, got {name!r}")
        self.entries[name] = entry

    def names(self) -> List[str]:
        """Returns the names in alphabetical order."""
        return sorted(self.entries)

    def find(self, name: str, further: Optional[Dict[str, Any]] = None) -> Tuple[str, Any]:
        """Returns the registered name and the entry of `name`; for MODULE:NAME, `name` and what `import_name` returns.

        Args:
            name: the name; case, hyphens and underscores are ignored.
            further: further entries, which entries of the registry with the same name replace. Default None: none.

        Raises:
            ValueError: the name is unknown.
        """
        entries = ChainMap(self.entries, further or {})  # also contains what an imported module registers
        if isinstance(name, str) and ":" in name and name not in entries:
            return name, import_name(self.kind, name, entries)
        try:
            found = find_name(self.kind, name, entries)
        except ValueError as error:
            if isinstance(name, str) and comparable_name(name) in self.elsewhere:
                raise ValueError(f"{self.kind}: expected a known name, got {name!r}; use "
                                 f"{self.elsewhere[comparable_name(name)]}") from None
            if isinstance(name, str) and re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", name):
                module, _, member = name.rpartition(".")
                raise ValueError(f"{self.kind}: expected a known name or MODULE:NAME, got {name!r}; did you mean "
                                 f"'{module}:{'NAME' if member == 'py' else member}'?") from None
            raise error
        return found, entries[found]


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
    if not module_name:
        raise ValueError(f"{argument}: expected MODULE:NAME, such as my_module:MyClass, got {name!r}")
    search_current_folder()
    try:
        if module_name.partition(".")[0] in sys.stdlib_module_names:  # settings files may come from others
            raise ImportError(f"{module_name} is a module of Python")
        names = vars(importlib.import_module(module_name))
    except (Exception, SystemExit) as error:
        is_missing = isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}.")
        raise ValueError(f"{argument}: expected MODULE:NAME with a module that can be imported, got {name!r}: "
                         f"{type(error).__name__}: {error}" + ". Run in the folder of the module, or set PYTHONPATH"
                         * is_missing) from error
    found = names.get(attribute, registered.get(attribute))
    if found is None:
        raise ValueError(f"{argument}: expected MODULE:NAME with an object of the module or a registered name, got "
                         f"{name!r}{did_you_mean(attribute, {*names, *registered})}")
    return found
