"""Tests log files that another program changes during a run or before it is resumed."""
import csv
import errno
import itertools
import json
import os

import pytest

from experiments import cem
from meta_policy_search.plotting import read_progress
from meta_policy_search.utils import log_outputs, logger

CHANGES = {
    "rows deleted": lambda data: b"".join(data.splitlines(keepends=True)[:-2]),
    "line ends": lambda data: data.replace(b"\n", b"\r\n"),
    "a number": lambda data: data.replace(b"3.5", b"9.5"),
    "a line more": lambda data: data + b"# a note\n",
    "a column more": lambda data: b"\n".join(
        line + (b",note" if row == 0 else b",%d" % row) for row, line in enumerate(data.splitlines())) + b"\n",
    "nothing left": lambda data: b"",
    "deleted": lambda data: None,
}


def dump(itr, **row):
    logger.logkvs({"Itr": itr, "x": itr + 0.5, "padding": "y" * 40, **row})
    logger.dumpkvs()


def change(path, how):
    data = CHANGES[how](path.read_bytes())
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    return data


def files(folder):
    return {path.name: path.read_bytes() for path in folder.glob("progress.*") if path.suffix != ".changed"}


@pytest.mark.parametrize("how", [how for how in CHANGES if how not in ("a number", "a column more")])
@pytest.mark.parametrize("output", ["csv", "json"])
@pytest.mark.parametrize("has_new_column", [False, True])
@pytest.mark.filterwarnings("ignore:.*was changed by another program")
def test_file_changed_during_a_run_is_rewritten_with_all_rows(how, output, has_new_column, tmp_path):
    """After a change of the file size, the next row restores the file, and the changed file is kept as a backup."""
    late = {"late": 1} if has_new_column else {}
    for folder in ("whole", "run"):
        logger.configure(tmp_path / folder, [output])
        for itr in range(5):
            dump(itr)
        if folder == "run":
            data = change(tmp_path / "run" / f"progress.{output}", how)
        for itr in range(5, 8):
            dump(itr, **late)
    kept = tmp_path / "run" / f"progress.{output}.changed"
    before = b"" if data is None else data
    assert (kept.read_bytes() == data) if kept.exists() else (tmp_path / "whole" / f"progress.{output}").read_bytes() \
        .startswith(before) or has_new_column
    assert files(tmp_path / "run") == files(tmp_path / "whole")


def test_file_saved_without_changes_counts_as_unchanged(tmp_path, capsys):
    logger.configure(tmp_path, ["stdout", "csv"])
    dump(0)
    path = tmp_path / "progress.csv"
    path.write_bytes(path.read_bytes())
    dump(1)
    assert "warning" not in capsys.readouterr().out and sorted(os.listdir(tmp_path)) == [".lock", "progress.csv"]


@pytest.mark.parametrize("moment, has_new_column", [("fsync", False), ("fsync", True), ("replace", True)])
def test_interrupted_row_does_not_count_as_an_external_change(moment, has_new_column, tmp_path, monkeypatch, capsys):
    """After Ctrl-C just after a row was written, the row is rewritten once without a warning."""
    logger.configure(tmp_path, ["stdout", "csv"])
    dump(0)
    original = getattr(os, moment)

    def interrupted(*arguments):
        original(*arguments)
        raise KeyboardInterrupt

    late = {"late": 2} if has_new_column else {}
    with monkeypatch.context() as patch:
        patch.setattr(os, moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            dump(1, **late)
    dump(1, **late)
    dump(2)
    assert "warning" not in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "progress.csv").read_text().splitlines()))
    assert [row["Itr"] for row in rows] == ["0", "1", "2"] and sorted(os.listdir(tmp_path)) == [".lock", "progress.csv"]


@pytest.mark.parametrize("formats", [["csv", "json"], ["json", "csv"], ["tensorboard", "csv"]])
@pytest.mark.parametrize("late", [{}, {"late": 2}])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
def test_row_that_fails_in_one_file_is_in_no_file(formats, late, error, tmp_path, monkeypatch,
                                                                      capsys):
    """If a second file cannot be written, the next attempt writes the row once to both files."""
    if "tensorboard" in formats:
        pytest.importorskip("tensorboard")
    written = []
    for folder in ("whole", "run"):
        logger.configure(tmp_path / folder, ["stdout", *formats])
        dump(0)
        if folder == "run":
            with monkeypatch.context() as patch, pytest.raises(type(error)):
                patch.setattr(log_outputs, "_append", failing(log_outputs._append, formats[1], error))
                patch.setattr(log_outputs, "atomic_file", failing(log_outputs.atomic_file, formats[1], error))
                dump(7, **late)
            positions = logger.output_positions()
            assert {name: positions[name].get("rows", 1) for name in formats} == dict.fromkeys(formats, 1)
        dump(1, **late)
        dump(2)
        curves = [path.stat().st_size for path in (tmp_path / folder).glob("tensorboard/*")]
        written.append((files(tmp_path / folder), curves))
    assert written[0] == written[1] and "warning" not in capsys.readouterr().out


def failing(write, format, error):
    """Writes to the files of the other formats, then fails."""
    def call(path, *arguments):
        if format in path:
            raise error
        return write(path, *arguments)

    return call


@pytest.mark.parametrize("output, how", [
    *itertools.product(["csv", "json"], ["rows deleted", "a number", "nothing left", "deleted"]),
    ("csv", "a column more"),
])
def test_resume_refuses_rows_that_differ_from_the_snapshot(how, output, tmp_path):
    """A run with a changed row or an added column is not resumed, and the file stays unchanged."""
    logger.configure(tmp_path, [output])
    for itr in range(5):
        dump(itr)
    positions = json.loads(json.dumps(logger.output_positions()))
    data = change(tmp_path / f"progress.{output}", how)
    with pytest.raises(ValueError, match=rf"progress\.{output}: expected the 5 rows that the run had"):
        logger.configure(tmp_path, [output], positions=positions)
    assert files(tmp_path) == ({} if data is None else {f"progress.{output}": data})


@pytest.mark.parametrize("output", ["csv", "json"])
@pytest.mark.parametrize("how", ["a line more", "line ends"])
def test_rewritten_file_with_equal_rows_is_accepted(how, output, tmp_path):
    logger.configure(tmp_path, [output])
    for itr in range(5):
        dump(itr)
    path = tmp_path / f"progress.{output}"
    before, positions = path.read_bytes(), logger.output_positions()
    change(path, how)
    logger.configure(tmp_path, [output], positions=positions)
    assert path.read_bytes() == before


@pytest.mark.parametrize("how", ["another digit", "a column more", "deleted"])
def test_script_reports_changed_rows_in_one_line(how, tmp_path, capsys):
    """`--resume` refuses a file with changed rows or without rows, even if length and header are unchanged."""
    folder = tmp_path / "run"
    assert cem.main(["--smoke", "--env", "MetaPointEnv", "--log_formats", "csv", "--dump_path", str(folder)]) == 0
    path = folder / "progress.csv"
    data = path.read_bytes()
    if how == "another digit":
        path.write_bytes(data[:-2] + (b"1" if data[-2:-1] != b"1" else b"2") + b"\n")
    else:
        change(path, how)
    changed = files(folder)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        cem.main(["--resume", str(folder), "--n_itr", "3"])
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "progress.csv: expected the 2 rows" in said and "Restore the file" in said
    assert "positions" not in said and files(folder) == changed
    path.write_bytes(data)
    assert cem.main(["--resume", str(folder), "--n_itr", "3"]) == 0


def test_short_rows_are_read_with_missing_numbers(tmp_path):
    (tmp_path / "progress.csv").write_text("Itr,x,y\n0,1.0,2.0\n1\n\n2,3.0,4.0\n")
    progress = read_progress(tmp_path)
    assert progress["Itr"].tolist()[:2] == [0.0, 1.0] and str(progress["y"][1]) == "nan" and progress["y"][-1] == 4.0


@pytest.mark.parametrize("is_deleted", [False, True])
def test_curves_continue_after_a_truncated_event_file(is_deleted, tmp_path):
    """After another program empties or deletes the event file, later points are written without a gap."""
    pytest.importorskip("tensorboard")
    from meta_policy_search.tf_compat import tf

    logger.configure(tmp_path, ["tensorboard"])
    dump(0)
    (path,) = (tmp_path / "tensorboard").iterdir()
    path.unlink() if is_deleted else path.write_bytes(b"")
    dump(1)
    dump(2)
    assert [event.step for event in tf.train.summary_iterator(str(path))] == [1, 2]
