"""Sphinx extension: a class names the methods that it inherits, with links to where they are described, once."""
import functools
import importlib
import inspect
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Tuple

from public_names import members

if TYPE_CHECKING:
    from sphinx.application import Sphinx


@functools.lru_cache(maxsize=None)
def place(cls: type) -> str:
    """Returns the name by which the reference describes a class: in the first package below the top that has it."""
    parts = cls.__module__.split(".")
    for count in range(2, len(parts)):
        module = ".".join(parts[:count])
        if getattr(importlib.import_module(module), cls.__name__, None) is cls:
            return f"{module}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__name__}"


def inherited(cls: type) -> Iterator[Tuple[type, List[str]]]:
    """Yields the bases from the package of a class, each with the public methods that the class has from it."""
    seen = {name for name, _ in members(cls)}
    for base in cls.__mro__[1:]:
        names = [name for name, _ in members(base) if name not in seen]
        seen.update(names)
        if names and base.__module__.split(".")[0] == cls.__module__.split(".")[0]:
            yield base, names


def list_inherited(app: "Sphinx", what: str, name: str, obj: Any, options: Any, lines: List[str]) -> None:
    """Adds what a class inherits to the end of its description."""
    if not inspect.isclass(obj) or name.rpartition(".")[2] != obj.__name__:
        return
    for base, names in inherited(obj):
        where = place(base)
        links = ", ".join(f":py:obj:`~{where}.{each}`" for each in names)
        lines += ["", f"Inherited from :py:class:`~{where}`: {links}."]


def setup(app: "Sphinx") -> Dict[str, Any]:
    """Connects the above, after napoleon has read the docstrings."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", list_inherited, priority=900)
    return {"version": "1", "parallel_read_safe": True}
