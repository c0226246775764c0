"""Tests snapshots: written files, failed writes and damaged files."""
import importlib
import os
import pickle
import subprocess
import sys
import textwrap
from unittest.mock import Mock

import joblib
import numpy as np
import pytest

from meta_policy_search.utils import logger
from meta_policy_search.utils.snapshotter import SnapshotError, list_snapshots, load_snapshot, save_snapshot
from tests.helpers.processes import start


def files(folder):
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("mode, expected", [
    ("all", ["itr_0.pkl", "itr_1.pkl", "itr_2.pkl", "itr_3.pkl"]),
    ("last", ["params.pkl"]),
    ("gap", ["itr_0.pkl", "itr_2.pkl"]),
    ("last_gap", ["itr_0.pkl", "itr_2.pkl", "params.pkl"]),
    ("none", []),
])
def test_each_mode_writes_its_files(tmp_path, mode, expected):
    written = [save_snapshot(tmp_path, itr, {"itr": itr}, mode, gap=2) for itr in range(4)]
    assert files(tmp_path) == expected
    names = {
        "all": ["itr_0.pkl", "itr_1.pkl", "itr_2.pkl", "itr_3.pkl"], "last": ["params.pkl"] * 4,
        "gap": ["itr_0.pkl", None, "itr_2.pkl", None], "last_gap": ["params.pkl"] * 4, "none": [None] * 4,
    }[mode]
    assert written == [name and str(tmp_path / name) for name in names]


def test_snapshot_of_a_given_iteration(tmp_path):
    for itr in range(6):
        save_snapshot(tmp_path, itr, {"itr": itr}, "last_gap", gap=2)
    assert [load_snapshot(tmp_path, itr=itr)["itr"] for itr in (0, 2, np.int64(4), 5)] == [0, 2, 4, 5]
    with pytest.raises(SnapshotError, match=r"no snapshot of iteration 3; snapshots exist for iterations: 0, 2, 4, 5"):
        load_snapshot(tmp_path, itr=3)
    with pytest.raises(ValueError, match=r"itr: expected None for a snapshot file"):
        load_snapshot(tmp_path / "params.pkl", itr=0)


def test_folder_snapshot_is_the_one_of_the_last_iteration(tmp_path):
    """Given a run that was resumed in another mode, then the file of the earlier mode is not the last snapshot."""
    save_snapshot(tmp_path, 2, {"itr": 2}, "last")
    for itr in (3, 10):
        save_snapshot(tmp_path, itr, {"itr": itr}, "all")
    assert load_snapshot(tmp_path) == {"itr": 10}
    assert list(list_snapshots(tmp_path).values()) == [2, 3, 10]


def test_large_arrays_and_local_classes_load_with_all_readers(tmp_path):
    # given arrays large enough to be written in pieces, in both memory orders, and a local class
    class Environment:
        limit = 5

    rng = np.random.default_rng(0)
    c, f = rng.normal(size=(300, 400)), np.asfortranarray(rng.normal(size=(300, 400)))
    params = {"c": c, "f": f, "env": Environment()}
    path = save_snapshot(tmp_path, 3, params)
    # then the checked reader and both plain readers return the same
    with open(path, "rb") as file:
        read = [load_snapshot(path), joblib.load(path), pickle.load(file)]
    for loaded in read:
        np.testing.assert_array_equal(loaded["c"], params["c"])
        np.testing.assert_array_equal(loaded["f"], params["f"])
        assert loaded["env"].limit == 5


@pytest.mark.parametrize("damage", [
    lambda data: data[:-1], lambda data: b"", lambda data: data[:50] + data[60:],
    lambda data: data[:50] + bytes([data[50] ^ 1]) + data[51:], lambda data: pickle.dumps({"itr": 1}),
], ids=["cut", "cut to nothing", "hole", "flipped", "other file"])
@pytest.mark.parametrize("mode, name, itr", [("last", "params.pkl", None), ("all", "itr_2.pkl", None),
                                             ("all", "itr_2.pkl", 2)])
def test_damaged_snapshot_is_detected_and_the_intact_one_is_named(tmp_path, mode, name, itr, damage):
    """Given a damaged last snapshot, then neither the file nor the folder loads, until a later one is saved."""
    for number in range(3):
        save_snapshot(tmp_path, number, {"itr": number, "weights": np.ones(1000)}, mode if number == 2 else "all")
    (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
    for where, which in ((tmp_path / name, None), (tmp_path, itr)):
        with pytest.raises(SnapshotError, match=rf"{name} is damaged: .*itr_1\.pkl \(iteration 1\)"):
            load_snapshot(where, which)
    save_snapshot(tmp_path, 3, {"itr": 3}, "last_gap", 3)
    assert load_snapshot(tmp_path)["itr"] == 3


def test_missing_snapshot_is_reported(tmp_path):
    with pytest.raises(SnapshotError, match=r"contains no snapshot"):
        load_snapshot(tmp_path)
    with pytest.raises(SnapshotError, match=r"expected a run folder, got .*missing\.pkl: No such file"):
        load_snapshot(tmp_path / "missing.pkl")
    (tmp_path / "params.pkl").write_bytes(b"x")
    with pytest.raises(SnapshotError, match=r"The folder contains no intact snapshot"):
        load_snapshot(tmp_path)


def test_objects_that_cannot_be_rebuilt_raise_a_separate_error(tmp_path):
    path = save_snapshot(tmp_path, 0, Unloadable())
    with pytest.raises(SnapshotError, match=r"params\.pkl is intact, but .*no such simulator.*policy\.load_npz"):
        load_snapshot(path)


def fail_to_load():
    raise ImportError("no such simulator")


class Unloadable:
    def __reduce__(self):
        return fail_to_load, ()


@pytest.mark.parametrize("mode", ["last", "all", "last_gap"])
def test_failed_write_leaves_the_earlier_snapshots_unchanged(tmp_path, mode, monkeypatch):
    """Given an object that cannot be pickled, Ctrl-C or a full disk, then no temporary file remains either."""
    for itr in range(2):
        save_snapshot(tmp_path, itr, {"itr": itr}, mode)
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    with pytest.raises(SnapshotError, match=r"could not write the snapshot .*generator.*\(iteration 1\)"):
        save_snapshot(tmp_path, 2, {"weights": np.zeros(10_000), "bad": (number for number in range(3))}, mode)
    for error, raised in ((KeyboardInterrupt, KeyboardInterrupt), (OSError(28, "No space left"), SnapshotError)):
        with monkeypatch.context() as patch, pytest.raises(raised):
            patch.setattr(os, "fsync", Mock(side_effect=error))
            save_snapshot(tmp_path, 2, {}, mode)
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before


def test_snapshot_can_be_loaded_while_another_process_saves(tmp_path):
    """Given a process that saves snapshots in a loop, then every load succeeds, also after the process is killed."""
    program = (
        "import itertools, sys\n"
        "import numpy as np\n"
        "from meta_policy_search.utils.snapshotter import save_snapshot\n"
        "for itr in itertools.count():\n"
        "    save_snapshot(sys.argv[1], itr, {'itr': itr, 'weights': np.full(100_000, itr)}, 'last_gap', 50)\n"
        "    print(itr, flush=True)\n"
    )
    process = start("-c", program, tmp_path)
    process.stdout.readline()
    for _ in range(100):
        loaded = load_snapshot(tmp_path)
        assert (loaded["weights"] == loaded["itr"]).all()
    process.kill()
    printed = int((["0"] + process.communicate()[0].split())[-1])
    assert load_snapshot(tmp_path)["itr"] in (printed, printed + 1)
    with logger.scoped_configure(tmp_path, [], resume_at=printed + 2):
        pass
    assert [name for name in files(tmp_path) if not name.endswith((".pkl", ".lock"))] == []  # no temporary file remains


def test_invalid_arguments_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"snapshot_mode: expected one of 'all', 'last', 'gap', .* got 'first'"):
        save_snapshot(tmp_path, 0, {}, "first")
    with pytest.raises(ValueError, match=r"snapshot_gap: expected an integer of at least 1, got 0"):
        save_snapshot(tmp_path, 0, {}, "gap", 0)
    with pytest.raises(ValueError, match=r"itr: expected an integer of at least 0, got -1"):
        save_snapshot(tmp_path, -1, {})


def test_contents_are_on_the_disk_before_the_file_is_renamed(tmp_path, monkeypatch):
    # given a record of synced and renamed files
    order = []
    replace = os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: order.append("sync"))
    monkeypatch.setattr(os, "replace", lambda *names: (order.append("rename"), replace(*names)))
    save_snapshot(tmp_path, 0, {})
    # then the order is: sync the file, rename it, sync its folder
    assert order == ["sync", "rename", "sync"]


LOADING = '''
    import os, sys, gym, numpy as np
    from meta_policy_search.utils.snapshotter import load_snapshot, save_snapshot
    FACTOR = 1.0
    class Reward:
        scale = 1.0
        def value(self):
            return FACTOR * self.scale
    if sys.argv[1] == "write":
        os.mkdir("a"), os.mkdir("b")
        save_snapshot("a", 0, Reward())
        Reward.scale = 2.0
        save_snapshot("b", 0, Reward())
        # when the class changes, then loading a snapshot does not change it back
        Reward.scale, Reward.value = 3.0, lambda self: 10.0 * FACTOR * self.scale
        FACTOR = 2.0
        loaded = load_snapshot("a")
        assert type(loaded) is Reward and Reward.scale == 3.0
        assert loaded.value() == Reward().value() == 60.0
    else:  # in another process, each object has the class that was saved with it
        first, second = load_snapshot("a"), load_snapshot("b")
        assert (first.value(), second.value(), first.value(), Reward().value()) == (1.0, 2.0, 1.0, 1.0)
'''


def test_loading_does_not_change_classes_of_the_script(tmp_path):
    for step in ("write", "read"):
        command = [sys.executable, "-c", textwrap.dedent(LOADING), step]
        subprocess.run(command, cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_missing_module_is_named(tmp_path, monkeypatch):
    (tmp_path / "module_of_a_user.py").write_text("class Own:\n    pass\n")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        own = importlib.import_module("module_of_a_user").Own()
        save_snapshot(tmp_path, 0, {"itr": 0, "own": own})
    monkeypatch.delitem(sys.modules, "module_of_a_user")
    with pytest.raises(SnapshotError, match="params.pkl needs the module module_of_a_user, which was not found: add"):
        load_snapshot(tmp_path)
