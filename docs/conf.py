"""Settings of the documentation: `make docs` builds it, and every warning is an error."""
import inspect
import re
import typing

import meta_policy_search

project = "meta_policy_search"
author = "meta_policy_search developers"
copyright = f"{author}, MIT license"
version = release = meta_policy_search.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
default_role = "literal"  # docstrings write code in single backticks

autodoc_default_options = {"members": True, "member-order": "bysource", "show-inheritance": True}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
viewcode_line_numbers = True

html_theme = "furo"
html_title = f"meta_policy_search {release}"
html_show_sphinx = False

_FIELD = re.compile(r"    (\w+): [^#]*(?:# (.*))?")


def _has_fields(obj):
    return inspect.isclass(obj) and (typing.is_typeddict(obj) or (issubclass(obj, tuple) and hasattr(obj, "_fields")))


def list_fields(app, what, name, obj, options, lines):
    """Adds the fields of a NamedTuple or TypedDict to its docstring, with the comments that stand beside them."""
    if _has_fields(obj):
        fields = [match for match in map(_FIELD.match, inspect.getsource(obj).splitlines()) if match]
        lines += ["Attributes:", *[f"    {field}: {comment or ''}" for field, comment in map(re.Match.groups, fields)]]


def skip_field(app, what, name, obj, skip, options):
    """Leaves out the fields of a NamedTuple as members of their own: they would say 'alias for field number 0'."""
    return skip or type(obj).__name__ == "_tuplegetter" or None


def setup(app):
    """Connects the above, before napoleon reads the docstrings."""
    app.connect("autodoc-process-docstring", list_fields, priority=400)
    app.connect("autodoc-skip-member", skip_field)
