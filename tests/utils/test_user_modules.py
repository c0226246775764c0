"""Tests imports of the user's classes by name."""
import sys

import pytest

from meta_policy_search.utils.user_modules import import_name


def test_objects_are_imported_by_name(tmp_path, monkeypatch):
    """From a module in the current folder, or from the registry that the module has filled."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_functions.py").write_text("def double(x):\n    return 2 * x\n")
    assert import_name("env", "my_functions:double", {})(4) == 8
    assert import_name("env", "my_functions:half", {"half": 0.5}) == 0.5
    with pytest.raises(ValueError, match="env: expected MODULE:NAME with an object of the module or a registered name"):
        import_name("env", "my_functions:half", {})
    with pytest.raises(ValueError, match="env: expected MODULE:NAME with a module that can be imported"):
        import_name("env", "gone:double", {})
