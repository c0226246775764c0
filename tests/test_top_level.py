"""Every documented name is available as `meta_policy_search.NAME`, defined in one table and loaded on demand."""
import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import meta_policy_search as mps
from meta_policy_search import run
from meta_policy_search.envs.registry import BUILT_IN
from meta_policy_search.registry import get_algorithm
from meta_policy_search.utils.serializable import constructor_signature
from tests.test_api import CLASSES, class_of
from tests.test_imports import run_python

STUB = ast.parse(Path(mps.__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
IMPORTED = [(alias, node.module) for node in STUB if isinstance(node, ast.ImportFrom) for alias in node.names]
NAMES = {"train": "run", **{alias.name: module for alias, module in IMPORTED if alias.asname}}
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
    assert len(aliases) == len(NAMES) - 1
    assert set(dir(mps)) == {"__version__", *NAMES}


def test_stub_of_train_lists_the_names_and_defaults_of_all_settings():
    """The default is `...` if it is not a literal, or not the same for all algorithms."""
    stub = next(node for node in STUB if isinstance(node, ast.FunctionDef) and node.name == "train")
    arguments = [*stub.args.args[1:], *stub.args.kwonlyargs]
    defaults = dict(zip((argument.arg for argument in arguments), map(
        ast.literal_eval, [*stub.args.defaults, *stub.args.kw_defaults]), strict=True))
    parameters = list(inspect.signature(mps.train).parameters.values())
    expected = {parameter.name: parameter.default for parameter in parameters[1:-1]}
    algorithms = [algo for algo in map(get_algorithm, mps.available_algorithms())
                  if algo.__module__.startswith("meta_policy_search.")]
    for cls in (mps.NormalizedEnv, mps.TrialEnv, mps.MetaGaussianMLPPolicy, mps.MetaCategoricalMLPPolicy,
                mps.GaussianGRUPolicy, mps.CategoricalGRUPolicy, mps.MetaSampler, mps.MetaSampleProcessor,
                mps.DiceMetaSampleProcessor, mps.TrialSampleProcessor, *algorithms, mps.Trainer):
        for parameter in constructor_signature(cls).parameters.values():
            name, default = parameter.name, run.TRAIN_DEFAULTS.get(parameter.name, parameter.default)
            if name not in run._GIVEN:
                is_literal = isinstance(default, (bool, int, float, str, tuple, type(None)))
                expected[name] = default if is_literal and expected.get(name, default) == default else ...
    assert defaults == expected
    literals = [{node.value for node in ast.walk(argument.annotation) if isinstance(node, ast.Constant)}
                for argument in stub.args.args[:2]]
    names = {name for name in mps.available_algorithms() if get_algorithm(name) in algorithms}
    assert literals == [set(BUILT_IN), names]


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
mps.make_env("MetaPointEnvCorner"), mps.MetaSampler, mps.CEM, dir(mps)
assert "tensorflow" not in sys.modules
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_unknown_name_raises_with_the_closest_match():
    with pytest.raises(AttributeError, match="module 'meta_policy_search' has no attribute 'PorMP'"):
        mps.PorMP  # noqa: B018
    done = run_python("import meta_policy_search as mps; mps.PorMP")
    assert done.stderr.endswith(b"Did you mean: 'ProMP'?\n")
    assert not hasattr(mps, "__wrapped__") and not inspect.ismodule(getattr(mps, "nothing", None))
