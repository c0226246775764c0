"""Tests the logger: rows, messages, resumed files, and unusable folders."""
import csv
import importlib.util
import json
import math
import os
import sys
import time
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pytest

from meta_policy_search.utils import logger
from meta_policy_search.utils.snapshotter import load_snapshot


def read_rows(folder):
    with open(folder / "progress.csv", newline="") as file:
        return list(csv.reader(file))


def dump(**row):
    logger.logkvs(row)
    return logger.dumpkvs()


def test_unconfigured_logger_writes_only_to_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    logger.log("hello", 3)
    logger.logkv("Itr", 1)
    assert logger.dumpkvs() == {"Itr": 1}
    assert logger.save_itr_params(0, {}) is None
    assert logger.get_dir() is None
    assert capsys.readouterr().out == "hello 3\n-----------\n| Itr | 1 |\n-----------\n"
    assert os.listdir(tmp_path) == []


def test_notebook_shows_lines_unless_tables_are_requested(tmp_path, monkeypatch, capsys):
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    row = {"Itr": 3, "Step_0-AverageReturn": 1.0, "Step_1-AverageReturn": 2.5, "ItrTime": 1.5}
    line = "itr    3 | return      1.00 ->      2.50, gain     +1.50 |   1.50 s\n"
    for folder, formats, expected in ((None, None, line), ("a", None, line), ("b", ["stdout"], "| Itr ")):
        logger.reset() if folder is None else logger.configure(tmp_path / folder, formats)
        dump(**row)
        assert expected in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [".lock", "log.txt", "progress.csv"]
    assert "| Itr " in (tmp_path / "a" / "log.txt").read_text()


def test_published_logger_calls_work(tmp_path, capsys):
    # given the configuration call of the published scripts
    folder = tmp_path / "new" / "run"
    formats = ["stdout", "log", "csv"]
    logger.configure(dir=str(folder), format_strs=formats, snapshot_mode="last_gap", snapshot_gap=2)
    # when three iterations are logged
    for itr in range(3):
        logger.logkv("Itr", itr)
        logger.logkv("Step_0-AverageReturn", np.float64(-1.5 * itr))
        logger.log("Saving snapshot...")
        logger.dumpkvs()
        logger.save_itr_params(itr, {"itr": itr})
    # then the folder has all files
    assert logger.get_dir() == str(folder)
    assert sorted(os.listdir(folder)) == [".lock", "itr_0.pkl", "itr_2.pkl", "log.txt", "params.pkl", "progress.csv"]
    assert read_rows(folder) == [["Itr", "Step_0-AverageReturn"], ["0", "-0.0"], ["1", "-1.5"], ["2", "-3.0"]]
    assert load_snapshot(folder) == {"itr": 2}
    table = "-------------------------------\n| Itr                  | 1    |\n| Step_0-AverageReturn | -1.5 |\n"
    assert table in capsys.readouterr().out
    text = (folder / "log.txt").read_text()
    assert table in text
    time_of_message, _, message = text.splitlines()[0].partition(" info: ")
    assert message == "Saving snapshot..." and datetime.fromisoformat(time_of_message) <= datetime.now().astimezone()


def test_numbers_are_written_with_all_digits(tmp_path):
    logger.configure(tmp_path, ["csv", "json"])
    values = [0.1 + 0.2, np.float64(1e-17), np.float32(0.1), np.array([2.5]), np.int64(2**60), np.bool_(True), False,
              np.nan, -math.inf]
    plain = [0.30000000000000004, 1e-17, 0.10000000149011612, 2.5, 2**60, 1, 0, math.nan, -math.inf]
    names = [f"column {i}" for i in range(len(values))]
    expected = dict(zip(names, plain))
    assert str(dump(**dict(zip(names, values)))) == str(expected)  # as text, because NaN does not equal itself
    assert read_rows(tmp_path) == [names, [str(value) for value in plain]]
    assert str(json.loads((tmp_path / "progress.json").read_text())) == str(expected)


@pytest.mark.parametrize("value", ["text", None, [1, 2], np.array([1.0, 2.0]), 1j, {}], ids=repr)
def test_a_column_is_a_number(value):
    with pytest.raises(TypeError, match="^Loss: expected a number, as in every column, got "):
        logger.logkv("Loss", value)
    assert logger.getkvs() == {}


def test_row_is_collected_and_cleared_after_the_dump():
    logger.logkv("a", 1)
    for value in (1.0, 2.0, 6.0):
        logger.logkv_mean("mean", value)
    logger.logkvs({"b": 2, "a": 3})
    assert logger.getkvs() == {"a": 3, "mean": 3.0, "b": 2}
    logger.getkvs()["a"] = 4  # a copy
    assert logger.dumpkvs() == {"a": 3, "mean": 3.0, "b": 2}
    assert logger.getkvs() == {}
    logger.logkv_mean("mean", 5.0)  # a new row starts a new mean
    assert logger.dumpkvs() == {"mean": 5.0}


def test_empty_row_is_not_written(tmp_path, capsys):
    logger.configure(tmp_path, ["stdout", "csv", "json"])
    assert logger.dumpkvs() == {}
    assert capsys.readouterr().out == ""
    assert (tmp_path / "progress.csv").read_text() == (tmp_path / "progress.json").read_text() == ""


def test_new_columns_extend_the_header(tmp_path):
    logger.configure(tmp_path, ["csv"])
    dump(Itr=0, a=1.5)
    dump(a=1)
    dump(Itr=2, b=3)
    dump(c=4)
    assert read_rows(tmp_path) == [["Itr", "a", "b", "c"], ["0", "1.5", "", ""], ["", "1", "", ""],
                                   ["2", "", "3", ""], ["", "", "", "4"]]
    assert sorted(os.listdir(tmp_path)) == [".lock", "progress.csv"]


def test_rows_are_on_the_disk_when_the_dump_returns(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    logger.configure(tmp_path, ["csv"])
    dump(Itr=0)
    dump(Itr=1)
    assert synced[-1] == os.path.getsize(tmp_path / "progress.csv") > 0


def log_rows(folder, first, last, resume_at=None):
    """Logs the iterations of a run, with an additional column `late` from iteration 3 on."""
    logger.configure(folder, ["csv", "json", "log"], resume_at=resume_at)
    for itr in range(first, last):
        row = {"Itr": itr, "return": 0.1 * itr, "ü, x": 1}
        dump(**(row if itr < 3 else {**row, "late": -itr}))


@pytest.mark.thorough(but="3-3-")
@pytest.mark.parametrize("incomplete", [b"", b"7,0.", b'7,"\xc3', b"\x00\x00"])
@pytest.mark.parametrize("rows, resume_at", [(3, 2), (3, 3), (6, 0), (6, 2), (6, 3), (6, 4), (7, 6)])
def test_resumed_run_writes_the_files_of_an_uninterrupted_run(tmp_path, rows, resume_at, incomplete):
    log_rows(tmp_path / "whole", 0, 7)
    log_rows(tmp_path / "resumed", 0, rows)
    for name in ("progress.csv", "progress.json"):
        with open(tmp_path / "resumed" / name, "ab") as file:
            file.write(incomplete)
    log_rows(tmp_path / "resumed", resume_at, 7, resume_at)
    for name in ("progress.csv", "progress.json"):
        assert (tmp_path / "resumed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("name", ["progress.csv", "progress.json"])
@pytest.mark.parametrize("itr", [1, 2])
def test_missing_row_is_refused_and_no_file_changes(tmp_path, name, itr):
    log_rows(tmp_path, 0, 5)
    lines = (tmp_path / name).read_text().splitlines(keepends=True)
    del lines[itr + name.endswith("csv")]
    (tmp_path / name).write_text("".join(lines))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=rf"{name}: the row of iteration {itr} is missing"):
        logger.configure(tmp_path, resume_at=3)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_rows_are_numbered_by_epoch_if_they_have_one(tmp_path):
    logger.configure(tmp_path, ["csv"])
    for epoch in range(4):
        dump(Epoch=epoch, Itr=10 * epoch + 10)
    logger.configure(tmp_path, ["csv"], resume_at=2)
    assert read_rows(tmp_path) == [["Epoch", "Itr"], ["0", "10"], ["1", "20"]]


def test_earlier_run_is_not_overwritten_silently(tmp_path):
    # given a folder with a run
    logger.configure(tmp_path, ["csv", "json", "log"])
    dump(old=1)
    logger.log("old message")
    logger.save_itr_params(0, {"old": True})
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    # then it is refused, and the logger keeps its configuration
    found = r"\(progress\.csv, progress\.json, params\.pkl\)\. .*resume that run or delete it"
    with pytest.raises(ValueError, match=rf"{tmp_path} already contains a run {found}"):
        logger.configure(tmp_path, ["csv"])
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before
    dump(old=2)
    assert read_rows(tmp_path) == [["old"], ["1"], ["2"]]
    # when deletion is allowed, all its files are deleted
    (tmp_path / "notes.txt").write_text("mine")
    logger.configure(tmp_path, ["csv", "log"], overwrite=True)
    dump(new=1)
    assert sorted(os.listdir(tmp_path)) == [".lock", "log.txt", "notes.txt", "progress.csv"]
    assert read_rows(tmp_path) == [["new"], ["1"]]
    assert "old" not in (tmp_path / "log.txt").read_text()


def test_resumed_run_continues_files_of_formats_that_were_not_given(tmp_path):
    logger.configure(tmp_path, ["csv", "json"])
    dump(Itr=0)
    logger.configure(tmp_path, ["csv"], resume_at=1)
    dump(Itr=1)
    assert (tmp_path / "progress.json").read_text().splitlines() == ['{"Itr": 0}', '{"Itr": 1}']


def test_unusable_folder_is_refused_immediately(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    (tmp_path / "locked").mkdir(mode=0o500)
    for folder in (file, file / "below", "/proc/self", *[tmp_path / "locked"] * (os.geteuid() != 0)):
        with pytest.raises(ValueError, match=rf"run folder: expected a writable folder, got {folder}"):
            logger.configure(folder)
    assert logger.get_dir() is None


def test_unknown_settings_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"format_strs: expected one of 'stdout', 'line', 'log', 'csv', .* got 'cvs'"):
        logger.configure(tmp_path, ["stdout", "cvs"])
    with pytest.raises(TypeError, match=r"format_strs: expected a list of formats, got the string 'csv'"):
        logger.configure(tmp_path, "csv")
    with pytest.raises(ValueError, match=r"got both 'stdout' and 'line'"):
        logger.configure(tmp_path, ["stdout", "line"])
    with pytest.raises(ValueError, match=r"snapshot_mode: expected one of"):
        logger.configure(tmp_path, snapshot_mode="best")
    with pytest.raises(ValueError, match=r"level: expected one of 10, 20, 30, 40"):
        logger.log("x", level=15)


def test_missing_folder_argument_creates_a_new_folder(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    logger.configure()
    assert os.path.dirname(logger.get_dir()) == str(tmp_path)
    assert capsys.readouterr().out == f"Logging to {logger.get_dir()}\n"
    assert sorted(os.listdir(logger.get_dir())) == [".lock", "log.txt", "progress.csv"]


def test_folder_is_independent_of_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logger.configure("run", ["csv"])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    dump(a=1)
    logger.save_itr_params(0, {})
    assert sorted(os.listdir(tmp_path / "run")) == [".lock", "params.pkl", "progress.csv"]


def test_levels(tmp_path, capsys):
    logger.configure(tmp_path, ["stdout", "log", "csv"])
    logger.debug("d")
    logger.info("i")
    logger.warn("w")
    logger.error("e")
    logger.set_level(logger.DEBUG)
    logger.debug("d2")
    assert capsys.readouterr().out == "i\nwarning: w\nerror: e\nd2\n"
    # above INFO, rows are written to files but not to the terminal
    logger.set_level(logger.WARN)
    logger.info("i2")
    dump(a=1)
    logger.set_level(logger.DISABLED)
    logger.error("e2")
    assert capsys.readouterr().out == ""
    assert read_rows(tmp_path) == [["a"], ["1"]]
    messages = [line.split(" ", 2)[2] for line in (tmp_path / "log.txt").read_text().splitlines() if line[0] == "2"]
    assert messages == ["info: i", "warning: w", "error: e", "debug: d2"]


def test_scope_has_separate_outputs_and_row(tmp_path):
    logger.configure(tmp_path / "outer", ["csv"])
    logger.logkv("outer", 1)
    with logger.scoped_configure(tmp_path / "inner", ["csv"]):
        dump(inner=2)
        assert logger.get_dir() == str(tmp_path / "inner")
    logger.dumpkvs()
    assert read_rows(tmp_path / "outer") == [["outer"], ["1"]]
    assert read_rows(tmp_path / "inner") == [["inner"], ["2"]]
    with pytest.raises(RuntimeError), logger.scoped_configure(tmp_path / "third", ["csv"]):
        raise RuntimeError
    assert logger.get_dir() == str(tmp_path / "outer")


def test_one_line_per_iteration(tmp_path, capsys):
    logger.configure(tmp_path, ["line"])
    returns = {"Step_0-AverageReturn": -40.414, "Step_1-AverageReturn": -20.0, "Step_2-AverageReturn": -11.68}
    dump(Itr=3, n_timesteps=1600000, ItrTime=2.345, other=1, **returns)
    dump(Itr=4, **{"Step_0-AverageReturn": np.float32(1.5)})
    dump(Epoch=5, Itr=100, n_timesteps=2000, AverageReturn=-7.125, EpochTime=0.5)
    dump(Epoch=0, Loss=1.25, c=1, d=2, e=3, f=4, g=5)
    assert capsys.readouterr().out.splitlines() == [
        "itr    3 |   1,600,000 steps | return    -40.41 ->    -11.68, gain    +28.73 |   2.35 s",
        "itr    4 | return      1.50",
        "epoch    5 |       2,000 steps | return     -7.12 |   0.50 s",
        "Epoch 0 | Loss 1.25 | c 1 | d 2 | e 3 | f 4",
    ]


# TensorBoard -----------------------------------------------------------------------------------------------------


needs_tensorboard = pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="needs tensorboard")


def test_missing_tensorboard_error_names_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ImportError, match="run `pip install tensorboard`"):
        logger.configure(tmp_path, ["csv", "tensorboard"])
    assert not list(tmp_path.iterdir())


def read_events(folder):
    """Returns the points of column `x` and the start steps of processes, read in file order as by TensorFlow."""
    from meta_policy_search.tf_compat import tf

    points, starts = [], []
    for path in sorted((folder / "tensorboard").iterdir()):
        for i, event in enumerate(tf.train.summary_iterator(str(path))):
            assert (event.file_version == "brain.Event:2") == (i == 0)
            assert abs(event.wall_time - time.time()) < 1000
            points += [(event.step, value.simple_value) for value in event.summary.value if value.tag == "Iteration/x"]
            starts += [event.step] if event.session_log.status == tf.SessionLog.START else []
    return points, starts


@needs_tensorboard
def test_event_files_hold_the_numbers_of_the_rows(tmp_path):
    from meta_policy_search.tf_compat import tf

    logger.configure(tmp_path, ["tensorboard"])
    row = {"Itr": 300, "Step_0-AverageReturn": -1.25, "ü": 7, "big": 1e300, "small": -1e300, "inf": np.inf,
           "truth": True, "Mine/Own-Gain": 2.0}
    dump(**row)
    (path,) = (tmp_path / "tensorboard").iterdir()
    _, event = tf.train.summary_iterator(str(path))
    values = {value.tag: value.simple_value for value in event.summary.value}
    assert event.step == 300
    assert values == {"Iteration/Itr": 300.0, "Iteration/truth": 1.0, "Step_0/AverageReturn": -1.25,
                      "Iteration/ü": 7.0, "Mine/Own-Gain": 2.0,
                      "Iteration/big": np.inf, "Iteration/small": -np.inf, "Iteration/inf": np.inf}
    dump(Itr=301, x=np.nan)
    assert np.isnan(read_events(tmp_path)[0][0][1])


def log_curves(folder, values, resume_at=None):
    logger.configure(folder, ["tensorboard"], resume_at=resume_at)
    for step, value in enumerate(values, start=resume_at or 0):
        dump(Itr=step, x=value)


@needs_tensorboard
def test_tensorboard_discards_the_points_after_the_resumed_step(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    # given an open TensorBoard, and a process that was killed while it wrote an event
    tmp_path = tmp_path / "{x}"
    log_curves(tmp_path, [0.5, 1.5, -1.0, -1.0])
    (path,) = (tmp_path / "tensorboard").iterdir()
    with open(path, "ab") as file:
        file.write(b"\x30\x00\x00")
    watching = EventAccumulator(str(tmp_path / "tensorboard"))
    watching.Reload()
    assert [event.value for event in watching.Scalars("Iteration/x")] == [0.5, 1.5, -1.0, -1.0]
    # when the run is resumed twice, from the same step and from a later one
    log_curves(tmp_path, [-2.0], 2)
    log_curves(tmp_path, [2.5, 3.5], 2)
    log_curves(tmp_path, [4.5], 4)
    # then it shows each step once, like a TensorBoard that is opened later
    for accumulator in (watching, EventAccumulator(str(tmp_path / "tensorboard"))):
        accumulator.Reload()
        assert [(event.step, event.value) for event in accumulator.Scalars("Iteration/x")] == [
            (0, 0.5), (1, 1.5), (2, 2.5), (3, 3.5), (4, 4.5)]


@needs_tensorboard
def test_new_run_has_no_curves_of_the_old_run(tmp_path):
    logger.configure(tmp_path, ["csv", "tensorboard"])
    dump(Itr=0, x=0.5)
    logger.configure(tmp_path, ["csv", "tensorboard"], overwrite=True)
    dump(Itr=0, x=1.5)
    assert read_events(tmp_path) == ([(0, 1.5)], [])
