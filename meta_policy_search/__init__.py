"""Gradient-based meta-reinforcement learning: ProMP, MAML and E-MAML on static TensorFlow graphs.

Every documented class is here by its name, `meta_policy_search.ProMP` say, and is imported when it is asked for:
`import meta_policy_search` alone imports nothing else. The names stand in one table, `__init__.pyi`.
"""
import importlib
import sys

__version__ = "0.2.0"


def _names() -> dict[str, str]:
    """Returns the module that each name of the stub comes from; for a subpackage, its own."""
    import ast  # these are not needed before a name is asked for
    from pathlib import Path

    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {alias.name: f"{__name__}.{node.module or alias.name}"
            for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def __getattr__(name: str) -> object:
    module = None if name.startswith("__") else _names().get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    imported = importlib.import_module(module)
    value = globals()[name] = imported if module == f"{__name__}.{name}" else getattr(imported, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_names()})
