"""Standard output that is closed, full or a pipe without a reader ends the display, not the run."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from meta_policy_search.utils import logger
from meta_policy_search.utils.progress import progress_bar
from tests.utils.test_progress import Terminal

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = "--smoke --env MetaPointEnv --plot_gap 0 --log_formats line log csv"


class Failing(Terminal):
    """A terminal, or a pipe, that is gone."""

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("stream", [Failing(), None])
@pytest.mark.parametrize("has_bar", [False, True])
def test_messages_and_rows_are_still_written_to_files(stream, has_bar, tmp_path, monkeypatch):
    """Given an output that cannot be written, then the files have messages and rows as ever."""
    logger.configure(tmp_path, ["stdout", "log", "csv"])
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar(has_bar, 2, "training", "itr"):
        for itr in range(2):
            logger.log("a message")
            logger.logkv("Itr", itr)
            logger.dumpkvs()
    assert (tmp_path / "progress.csv").read_text() == "Itr\n0\n1\n"
    assert (tmp_path / "log.txt").read_text().count("a message") == 2


@pytest.mark.parametrize("output", [
    "| head -n 1",
    pytest.param("> /dev/full", marks=pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")),
    ">&-",
])
@pytest.mark.thorough(ci="| head -n 1")
def test_run_continues_after_its_output_ends(output, tmp_path):
    """Given a script whose output ends after a line, then the run is done, without an error."""
    command = f"{sys.executable} experiments/cem.py {SMALL} --dump_path {tmp_path / 'run'}"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", f"{command} {output}"], cwd=ROOT, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "run" / "progress.csv").read_text().count("\n") == 3
    assert done.stdout.count("\n") == ("head" in output)
    assert "Run folder" in (tmp_path / "run" / "log.txt").read_text()
