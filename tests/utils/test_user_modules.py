"""Tests imports of the user's classes by name."""
import json
import sys

import pytest

from meta_policy_search.utils.user_modules import import_name


def test_modules_of_the_current_folder_are_found_after_installed_ones(tmp_path, monkeypatch):
    """A name that the module does not have is looked up among registered names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "json")
    for name in ("json", "a_module_of_a_user"):
        (tmp_path / f"{name}.py").write_text("load = 3")
    assert import_name("env", "a_module_of_a_user:load", {}) == 3
    assert callable(import_name("env", "json:load", {}))
    assert import_name("env", "a_module_of_a_user:mine", {"mine": json}) is json
    with pytest.raises(ValueError, match="env: expected MODULE:NAME with an object of the module or a registered name"):
        import_name("env", "a_module_of_a_user:half", {"mine": json})
    for name in ("nowhere:load", ".json:load"):
        with pytest.raises(ValueError, match="env: expected MODULE:NAME with a module that can be imported"):
            import_name("env", name, {})
    sys.modules.pop("a_module_of_a_user")
