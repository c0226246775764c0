"""Reads the rows of run folders, and compares states bit for bit."""
import csv
from pathlib import Path

import numpy as np


def read_rows(folder):
    """Returns the rows of `progress.csv` as text, without times."""
    with open(Path(folder, "progress.csv"), newline="") as file:
        return [{key: value for key, value in row.items() if "Time" not in key} for row in csv.DictReader(file)]


def assert_equal(a, b, where="state"):
    """Compares nested containers: numbers bit for bit, other objects by their `repr`."""
    assert type(a) is type(b), where
    if isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            assert_equal(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b)):
            assert_equal(x, y, f"{where}[{i}]")
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), where
    else:
        assert a == b or repr(a) == repr(b), where
