"""Every documented name is available as `meta_policy_search.NAME`, defined in one table and loaded on demand."""
import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import meta_policy_search as mps
from tests.test_api import CLASSES, class_of
from tests.test_imports import run_python

STUB = ast.parse(Path(mps.__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
IMPORTED = [(alias, node.module) for node in STUB if isinstance(node, ast.ImportFrom) for alias in node.names]
NAMES = {alias.name: module for alias, module in IMPORTED if alias.asname}
BY_MODULE = ("plotting", "utils")  # used through their package: `mps.plotting.plot_comparison`
PACKAGES = [name for _, name, is_package in pkgutil.walk_packages(mps.__path__, "meta_policy_search.") if is_package]


@pytest.mark.parametrize("name", NAMES)
def test_name_equals_the_object_at_its_module_path(name):
    if NAMES[name] is None:
        assert getattr(mps, name) is importlib.import_module(f"meta_policy_search.{name}")
    else:
        assert getattr(mps, name) is getattr(importlib.import_module(f"meta_policy_search.{NAMES[name]}"), name)
    assert name in dir(mps)


def test_type_checkers_see_every_name_as_public():
    aliases = [alias for alias, _ in IMPORTED if alias.asname]
    assert all(alias.asname == alias.name for alias in aliases)
    assert len(aliases) == len(NAMES)
    assert set(dir(mps)) == {"__version__", *NAMES}


@pytest.mark.parametrize("package", [name for name in PACKAGES if name.split(".")[1] not in BY_MODULE])
def test_all_exports_of_a_package_are_available(package):
    assert set(getattr(importlib.import_module(package), "__all__", [])) <= set(NAMES)


@pytest.mark.parametrize("documented", CLASSES.values(), ids=CLASSES)
def test_all_classes_of_the_public_documentation_are_available(documented):
    assert getattr(mps, documented.name) is class_of(documented)


def test_import_loads_no_heavy_modules():
    done = run_python("""
import sys
before = set(sys.modules)
import meta_policy_search as mps
added = {name for name in set(sys.modules) - before if name.split(".")[0] not in sys.stdlib_module_names}
assert added == {"meta_policy_search"}, added
mps.logger.configure, mps.make_env("MetaPointEnvCorner"), mps.MetaSampler, mps.CEM, dir(mps)
assert "tensorflow" not in sys.modules
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_unknown_name_raises_with_the_closest_match():
    with pytest.raises(AttributeError, match="module 'meta_policy_search' has no attribute 'PorMP'"):
        mps.PorMP  # noqa: B018
    done = run_python("import meta_policy_search as mps; mps.PorMP")
    assert done.stderr.endswith(b"Did you mean: 'ProMP'?\n")
    assert not hasattr(mps, "__wrapped__") and not inspect.ismodule(getattr(mps, "nothing", None))
