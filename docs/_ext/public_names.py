"""Sphinx extension that warns about public names without documentation.

A public class, function or method needs a docstring; a public class or function also needs an entry in the API
reference. `make docs` treats warnings as errors. Public names are the names in `__all__` or `__dir__` of a module, or,
without `__all__`, the names that the module defines without leading underscore, and the methods and properties that a
class defines. Names that only modules of the package use match a pattern in `public_names_internal` of `conf.py`: they
need a docstring, but no entry.
"""
import fnmatch
import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING, Any, Collection, Dict, Iterator, List, Tuple

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """Yields a package and all its modules, except private ones."""
    yield package
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            yield importlib.import_module(info.name)


def public_objects(module: ModuleType) -> Dict[str, Any]:
    """Returns the public classes and functions of a module, by name."""
    names = getattr(module, "__all__", None) or vars(module).get("__dir__", list)()  # of lazy imports
    if not names:
        names = [name for name, value in vars(module).items()
                 if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__]
    objects = {name: getattr(module, name) for name in names}
    return {name: value for name, value in objects.items() if inspect.isclass(value) or inspect.isfunction(value)}


def members(cls: type) -> Iterator[Tuple[str, Any]]:
    """Yields the public methods and properties that a class defines, without inherited ones."""
    for name, value in vars(cls).items():
        if not name.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
            yield name, value


def missing(
    searched: Collection[ModuleType], documented: Collection[str], internal: Collection[str] = ()
) -> List[str]:
    """Returns a message for each public name without a docstring or without an entry in the API reference.

    Args:
        searched: the modules.
        documented: full names of all entries, such as `package.module.Class`.
        internal: patterns of full names that need no entry.
    """
    places: Dict[int, List[str]] = {}
    objects: Dict[int, Any] = {}
    for module in searched:
        for name, value in public_objects(module).items():
            places.setdefault(id(value), []).append(f"{module.__name__}.{name}")
            objects[id(value)] = value
    found = []
    for key, value in objects.items():
        shortest = min(places[key], key=len)
        if not inspect.getdoc(value):
            found.append(f"{shortest} has no docstring")
        elif not set(places[key]) & set(documented) and not _matches(places[key], internal):
            found.append(f"{shortest} is not in the API reference")
        if inspect.isclass(value):
            found += [f"{shortest}.{name} has no docstring" for name, _ in members(value)
                      if not inspect.getdoc(getattr(value, name))]
    return sorted(found)


def _matches(names: Collection[str], patterns: Collection[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in patterns)


def warn_of_missing(app: "Sphinx", env: Any) -> None:
    """Warns about each message of `missing`."""
    from sphinx.util import logging  # imported here because the tests run without Sphinx

    package = importlib.import_module(app.config.public_names_package)
    documented = env.get_domain("py").objects
    for message in missing(list(modules(package)), documented, app.config.public_names_internal):
        logging.getLogger(__name__).warning("public name: %s", message)


def setup(app: "Sphinx") -> Dict[str, Any]:
    """Connects the check, which runs after all pages are read."""
    app.add_config_value("public_names_package", None, "env")
    app.add_config_value("public_names_internal", [], "env")
    app.connect("env-check-consistency", warn_of_missing)
    return {"version": "1", "parallel_read_safe": True}
