"""Gradient-based meta-reinforcement learning: ProMP, MAML and E-MAML on static TensorFlow graphs.

Every documented class is available as `meta_policy_search.NAME`, for example `meta_policy_search.ProMP`. Its module is
imported on first access; `import meta_policy_search` alone imports no other module. The names are listed in
`__init__.pyi`.
"""
import importlib
import sys

__version__ = "0.2.0"


def _names() -> dict[str, str]:
    """Returns the module of each name in the stub file; for a subpackage, the subpackage itself."""
    import ast  # imported here to keep `import meta_policy_search` fast
    from pathlib import Path

    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {alias.asname: f"{__name__}.{node.module or alias.name}"
            for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names if alias.asname}


def __getattr__(name: str) -> object:
    module = None if name.startswith("__") else _names().get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    imported = importlib.import_module(module)
    value = globals()[name] = imported if module == f"{__name__}.{name}" else getattr(imported, name)
    return value


def __dir__() -> list[str]:
    return sorted({"__version__", *_names()})
