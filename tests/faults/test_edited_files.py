"""Tests log files that another program changes during a run or before it is resumed."""
import errno
import os
import shutil

import pytest

import meta_policy_search as mps
from meta_policy_search.plotting import read_progress
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import log_outputs, logger
from tests.helpers.runs import read_rows


def dump(itr, **row):
    logger.logkvs({"Itr": itr, "x": itr + 0.5, "padding": 1e40 + 1e24, **row})
    logger.dumpkvs()


def files(folder):
    return {path.name: path.read_bytes() for path in folder.glob("progress.*")}


@pytest.mark.parametrize("moment, has_new_column", [("fsync", False), ("fsync", True), ("replace", True)])
def test_interrupted_row_is_written_once(moment, has_new_column, tmp_path, monkeypatch, capsys):
    """After Ctrl-C just after a row was written, the row is written once."""
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
    assert [row["Itr"] for row in read_rows(tmp_path)] == ["0", "1", "2"]
    assert sorted(os.listdir(tmp_path)) == [".lock", "progress.csv"]


@pytest.mark.parametrize("formats", [["csv", "json"], ["json", "csv"], ["tensorboard", "csv"]])
@pytest.mark.parametrize("late", [{}, {"late": 2}])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
def test_row_that_fails_in_one_file_is_in_no_file(formats, late, error, tmp_path, monkeypatch, capsys):
    """If a second file cannot be written, the next attempt writes the row once to both files."""
    if "tensorboard" in formats:
        pytest.importorskip("tensorboard")
    written = []
    for folder in ("whole", "run"):
        logger.configure(tmp_path / folder, ["stdout", *formats])
        dump(0)
        if folder == "run":
            with monkeypatch.context() as patch, pytest.raises(type(error)):
                patch.setattr(log_outputs, "append_text", failing(log_outputs.append_text, formats[1], error))
                patch.setattr(log_outputs, "write_text", failing(log_outputs.write_text, formats[1], error))
                dump(7, **late)
            assert all(content.count(b"\n") == (2 if name.endswith("csv") else 1)
                       for name, content in files(tmp_path / "run").items())
        dump(1, **late)
        dump(2)
        curves = [path.stat().st_size for path in (tmp_path / folder).glob("tensorboard/*")]
        written.append((files(tmp_path / folder), curves))
    assert written[0] == written[1] and "warning" not in capsys.readouterr().out


def failing(write, format, error):
    """Writes to the files of the other formats, then fails."""
    def call(path, *arguments, **options):
        if format in path:
            raise error
        return write(path, *arguments, **options)

    return call


def test_short_rows_are_read_with_missing_numbers(tmp_path):
    (tmp_path / "progress.csv").write_text("Itr,x,y\n0,1.0,2.0\n1\n\n2,3.0,4.0\n")
    progress = read_progress(tmp_path)
    assert progress["Itr"].tolist()[:2] == [0.0, 1.0] and str(progress["y"][1]) == "nan" and progress["y"][-1] == 4.0


@pytest.fixture(scope="module", params=[
    ("vpg_maml", {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "hidden_sizes": (3,)}),
    ("cem", {"n_samples": 5, "batch_size": 5}),
], ids=["vpg_maml", "cem"])
def trained(request, tmp_path_factory):
    """The folder of a run with four iterations."""
    (algo, settings), folder = request.param, tmp_path_factory.mktemp("trained")
    with tf.Graph().as_default():
        mps.train("MetaPointEnvCorner", algo, 4, dump_path=folder / "run", max_path_length=5, log_formats=["csv"],
                  **settings)
    return folder / "run"


@pytest.mark.parametrize("keep, message", [
    ([1, 2, 3], "the first rows in progress.csv are missing"),
    ([1, 0, 2, 3], "the first rows in progress.csv are missing"),
    ([0, 2, 1, 3], "progress.csv: the rows are not in the order of their iterations"),
    ([0, 1, 3], "progress.csv: the row of iteration 2 is missing"),
    ([], "the first rows in progress.csv are missing"),
])
def test_rows_that_were_removed_or_moved_are_noticed(trained, keep, message, tmp_path):
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    header, *rows = (tmp_path / "progress.csv").read_text().splitlines()
    (tmp_path / "progress.csv").write_text("\n".join([header, *(rows[i] for i in keep)]) + "\n")
    before = files(tmp_path)
    with pytest.raises(ValueError, match=message):
        mps.load_run(tmp_path).resume(5)
    assert files(tmp_path) == before
