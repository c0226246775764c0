"""The examples in docstrings produce the documented output."""
import doctest
import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "meta_policy_search"


def modules_with_examples():
    paths = sorted(path for path in PACKAGE.rglob("*.py") if "\n        >>> " in path.read_text(encoding="utf-8"))
    return [".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)) for path in paths]


@pytest.mark.parametrize("name", modules_with_examples())
def test_module_examples_pass(name):
    results = doctest.testmod(importlib.import_module(name), verbose=False)
    assert results.attempted > 0 and results.failed == 0


def test_examples_are_found():
    names = modules_with_examples()
    assert {"meta_policy_search.meta_algos.pro_mp", "meta_policy_search.envs.registry"} <= set(names)
