"""What is documented is there as `meta_policy_search.NAME`, by one table, and costs nothing before it is asked for."""
import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import meta_policy_search as mps
from tests.test_api import CLASSES, class_of
from tests.test_imports import run_python

STUB = Path(mps.__file__).with_suffix(".pyi")
NAMES = {alias.name: node.module for node in ast.parse(STUB.read_text(encoding="utf-8")).body
         if isinstance(node, ast.ImportFrom) for alias in node.names}
BY_MODULE = ("plotting", "utils")  # mostly functions, which stay with their package: `mps.plotting.plot_comparison`
PACKAGES = [name for _, name, is_package in pkgutil.walk_packages(mps.__path__, "meta_policy_search.") if is_package]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_what_it_is_under_its_module_path(name):
    if NAMES[name] is None:
        assert getattr(mps, name) is importlib.import_module(f"meta_policy_search.{name}")
    else:
        assert getattr(mps, name) is getattr(importlib.import_module(f"meta_policy_search.{NAMES[name]}"), name)
    assert name in dir(mps)


def test_editors_are_told_that_every_name_is_public():
    aliases = [alias for node in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)
               for alias in node.names]
    assert all(alias.asname == alias.name for alias in aliases)
    assert len(aliases) == len(NAMES)


@pytest.mark.parametrize("package", [name for name in PACKAGES if name.split(".")[1] not in BY_MODULE])
def test_all_that_a_package_exports_is_there(package):
    assert set(getattr(importlib.import_module(package), "__all__", [])) <= set(NAMES)


@pytest.mark.parametrize("documented", CLASSES.values(), ids=CLASSES)
def test_every_class_of_the_method_s_documentation_is_there(documented):
    assert getattr(mps, documented.name) is class_of(documented)


def test_the_bare_import_is_light():
    done = run_python("""
import sys
before = set(sys.modules)
import meta_policy_search as mps
added = {name for name in set(sys.modules) - before if name.split(".")[0] not in sys.stdlib_module_names}
assert added == {"meta_policy_search"}, added
mps.make_env("MetaPointEnvCorner"), mps.MetaSampler, mps.CEM, dir(mps)
assert "tensorflow" not in sys.modules
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_unknown_name_is_an_error_that_asks_for_the_nearest():
    with pytest.raises(AttributeError, match="module 'meta_policy_search' has no attribute 'PorMP'"):
        mps.PorMP  # noqa: B018
    done = run_python("import meta_policy_search as mps; mps.PorMP")
    assert done.stderr.endswith(b"Did you mean: 'ProMP'?\n")
    assert not hasattr(mps, "__wrapped__") and not inspect.ismodule(getattr(mps, "nothing", None))
