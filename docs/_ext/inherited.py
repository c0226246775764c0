"""Sphinx extension that lists the inherited methods of each class, with links to their documentation."""
import functools
import importlib
import inspect
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Tuple

from public_names import members

if TYPE_CHECKING:
    from sphinx.application import Sphinx


@functools.lru_cache(maxsize=None)
def place(cls: type) -> str:
    """Returns the full name of a class in the API reference: that of the topmost subpackage that exports it."""
    parts = cls.__module__.split(".")
    for count in range(2, len(parts)):
        module = ".".join(parts[:count])
        if getattr(importlib.import_module(module), cls.__name__, None) is cls:
            return f"{module}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__name__}"


def inherited(cls: type) -> Iterator[Tuple[type, List[str]]]:
    """Yields each base class from the same package with the public methods that `cls` inherits from it."""
    seen = {name for name, _ in members(cls)}
    for base in cls.__mro__[1:]:
        names = [name for name, _ in members(base) if name not in seen]
        seen.update(names)
        if names and base.__module__.split(".")[0] == cls.__module__.split(".")[0]:
            yield base, names


def list_inherited(app: "Sphinx", what: str, name: str, obj: Any, options: Any, lines: List[str]) -> None:
    """Appends the inherited methods to the docstring of a class."""
    if not inspect.isclass(obj) or name.rpartition(".")[2] != obj.__name__:
        return
    for base, names in inherited(obj):
        where = place(base)
        links = ", ".join(f":py:obj:`~{where}.{each}`" for each in names)
        lines += ["", f"Inherited from :py:class:`~{where}`: {links}."]


def setup(app: "Sphinx") -> Dict[str, Any]:
    """Connects `list_inherited`, which runs after napoleon."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", list_inherited, priority=900)
    return {"version": "1", "parallel_read_safe": True}
