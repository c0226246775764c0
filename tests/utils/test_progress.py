"""Progress bars: drawn on terminals and in notebooks, and nowhere else."""
import io
import sys
from types import SimpleNamespace

import pytest

from meta_policy_search.utils import logger
from meta_policy_search.utils.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def on_terminal(monkeypatch):
    """Calls a function with standard output and standard error on a terminal; returns what is shown there."""
    def show(function, *args):
        terminal = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", terminal)
            patch.setattr(sys, "stderr", terminal)
            function(*args)
        return terminal.getvalue()

    return show


@pytest.fixture
def notebook(monkeypatch):
    """A kernel; its streams are no terminals."""
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    return shell


def count_to_three(is_wanted=True):
    with progress_bar(is_wanted, 3, "counting", "sheep", mininterval=0) as bar:
        for _ in range(3):
            bar.update()
            logger.log("one more")


def test_a_terminal_shows_a_bar_below_the_messages(on_terminal):
    """Given messages while a bar is shown, then it is wiped before each, which stands on a line of its own."""
    shown = on_terminal(count_to_three)
    assert "counting: 100%" in shown and "3/3" in shown and "sheep" in shown
    lines = shown.split("\n")
    assert [line.rpartition("\r")[2] for line in lines[:3]] == ["one more"] * 3
    for line in lines[:3]:
        wiped = line.split("\r")[-2]
        assert wiped.strip() == ""


def test_a_file_gets_the_messages_alone(capfd):
    count_to_three()
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("one more\n" * 3, "")


def test_it_can_be_turned_off(on_terminal):
    assert on_terminal(count_to_three, False) == "one more\n" * 3


def test_a_notebook_shows_a_bar(notebook, capsys):
    count_to_three()
    assert "counting: 100%" in capsys.readouterr().err


def test_ipython_in_a_file_is_no_notebook(notebook, capfd):
    notebook.config = {"TerminalIPythonApp": {}}
    count_to_three()
    assert capfd.readouterr().err == ""
