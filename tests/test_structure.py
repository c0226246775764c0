"""Tests rules for package files that `make lint` does not check: file length and folder docstrings."""
import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "meta_policy_search"
MAX_LINES = 450


def test_no_file_is_longer_than_450_lines():
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert not {name: length for name, length in lengths.items() if length > MAX_LINES}


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
def test_each_folder_docstring_starts_with_a_sentence(folder):
    tree = ast.parse((PACKAGE / folder / "__init__.py").read_text(encoding="utf-8"))
    first = (ast.get_docstring(tree) or "").split("\n\n")[0]
    assert first[:1].isupper() and first.endswith(".")
