"""Sphinx extension: warns of every public name of the package that the documentation leaves out.

`make docs` treats warnings as errors, so a public class, function or method without a docstring, or without a place in
the API reference, fails the build. Public is what a module names in `__all__`, or without that, what it defines under a
name without underscore; and of a class its own methods and properties. What is public to the package's own modules only
is in `public_names_internal` of `conf.py`, as patterns of full names: it needs a docstring, and no place.
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
    """Yields a package and all modules in it, but for private ones."""
    yield package
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            yield importlib.import_module(info.name)


def public_objects(module: ModuleType) -> Dict[str, Any]:
    """Returns the public classes and functions of a module by name."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, value in vars(module).items()
                 if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__]
    objects = {name: getattr(module, name) for name in names}
    return {name: value for name, value in objects.items() if inspect.isclass(value) or inspect.isfunction(value)}


def members(cls: type) -> Iterator[Tuple[str, Any]]:
    """Yields the public methods and properties that a class itself defines."""
    for name, value in vars(cls).items():
        if not name.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
            yield name, value


def missing(
    searched: Collection[ModuleType], documented: Collection[str], internal: Collection[str] = ()
) -> List[str]:
    """Returns a sentence for each public name without a docstring, or without a place in the reference.

    Args:
        searched: the modules.
        documented: full names of all that the reference describes, such as `package.module.Class`.
        internal: patterns of full names that need no place.
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
    """Warns of every public name that is missing."""
    from sphinx.util import logging  # not needed by the test of what is above

    package = importlib.import_module(app.config.public_names_package)
    documented = env.get_domain("py").objects
    for sentence in missing(list(modules(package)), documented, app.config.public_names_internal):
        logging.getLogger(__name__).warning("public name: %s", sentence)


def setup(app: "Sphinx") -> Dict[str, Any]:
    """Connects the check to the end of reading."""
    app.add_config_value("public_names_package", None, "env")
    app.add_config_value("public_names_internal", [], "env")
    app.connect("env-check-consistency", warn_of_missing)
    return {"version": "1", "parallel_read_safe": True}
