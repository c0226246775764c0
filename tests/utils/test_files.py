"""Tests atomic files and tables."""
import csv

import pytest

from meta_policy_search.utils.files import atomic_file, csv_text, write_csv


def test_atomic_file_replaces_the_old_file_at_the_end(tmp_path):
    path = tmp_path / "settings.json"
    path.write_bytes(b"old")
    with atomic_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    with pytest.raises(RuntimeError), atomic_file(path) as file:
        file.write(b"newer")
        raise RuntimeError
    assert path.read_bytes() == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["settings.json"]


def test_table_is_read_as_written(tmp_path):
    table = [["name", "value"], ["a, b", 0.1], ['"quoted"', None]]
    write_csv(tmp_path / "table.csv", table)
    with open(tmp_path / "table.csv", newline="") as file:
        assert list(csv.reader(file)) == [["name", "value"], ["a, b", "0.1"], ['"quoted"', ""]]
    assert (tmp_path / "table.csv").read_bytes() == csv_text(table).encode()
    assert csv_text(table).splitlines()[1] == '"a, b",0.1'
