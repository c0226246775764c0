"""Settings of the documentation: `make docs` builds it, and every warning is an error."""
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
