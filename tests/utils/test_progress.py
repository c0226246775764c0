"""Tests progress bars, which are shown only on terminals and in notebooks."""
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
    """Calls a function with standard output and error connected to a terminal; returns the terminal output."""
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
    """Simulates a notebook kernel, whose streams are not terminals."""
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    return shell


def count_to_three(is_wanted=True):
    with progress_bar(is_wanted, 3, "counting", "sheep", mininterval=0) as bar:
        for _ in range(3):
            bar.update()
            logger.log("one more")


def test_terminal_shows_a_bar_below_the_messages(on_terminal):
    """The bar is erased before each message, which is printed on a separate line."""
    shown = on_terminal(count_to_three)
    assert "counting: 100%" in shown and "3/3" in shown and "sheep" in shown
    lines = shown.split("\n")
    assert [line.rpartition("\r")[2] for line in lines[:3]] == ["one more"] * 3
    for line in lines[:3]:
        wiped = line.split("\r")[-2]
        assert wiped.strip() == ""


def test_file_gets_only_the_messages(capfd):
    count_to_three()
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("one more\n" * 3, "")


def test_no_bar_without_standard_error(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    count_to_three()
    assert capsys.readouterr().out == "one more\n" * 3


def test_bar_can_be_disabled(on_terminal):
    assert on_terminal(count_to_three, False) == "one more\n" * 3


def test_ipython_with_output_to_a_file_shows_no_bar(notebook, capfd):
    notebook.config = {"TerminalIPythonApp": {}}
    count_to_three()
    assert capfd.readouterr().err == ""
