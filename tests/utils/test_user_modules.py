"""Tests imports of the user's classes by name."""
import pytest

from meta_policy_search.utils.user_modules import import_name, write_objects


def test_objects_of_a_file_are_imported_by_name(tmp_path):
    """The file contains functions that no module contains."""
    path = f"{tmp_path}/ob:jects.pkl"
    write_objects(path, {"double": lambda x: 2 * x})
    assert import_name("env", f"{path}:double", {})(4) == 8
    with pytest.raises(ValueError, match="env: expected MODULE:NAME with an object of the module or a registered name"):
        import_name("env", f"{path}:half", {})
    with pytest.raises(ValueError, match="env: expected MODULE:NAME with a module that can be imported"):
        import_name("env", f"{tmp_path}/gone.pkl:double", {})
