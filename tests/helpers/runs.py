"""Reads CSV files, reads and writes the rows of run folders, and compares states bit for bit."""
import csv
from pathlib import Path

import numpy as np


def read_csv(path):
    """Returns the rows of a CSV file as text."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def read_rows(folder):
    """Returns the rows of `progress.csv` as text, without times."""
    return [{key: value for key, value in row.items() if "Time" not in key}
            for row in read_csv(Path(folder, "progress.csv"))]


def write_rows(folder, columns):
    """Writes `progress.csv`, from lists by column, into a folder, which is created if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    table = [columns, *zip(*columns.values(), strict=True)] if columns else []
    (folder / "progress.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in table))


def assert_same(one, other, where="state"):
    """Compares nested containers: arrays bit for bit, other objects by `==` or their `repr`."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for i, (a, b) in enumerate(zip(one, other)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.shape == other.shape, where
        assert_same(*(array.tolist() if array.dtype == object else array.tobytes() for array in (one, other)), where)
    else:
        assert one == other or repr(one) == repr(other), where
