"""Tests the number of available cores, and Ctrl-C deferred to the end of a `with` block."""
import os
import signal

import pytest

from meta_policy_search.utils.threads import VARIABLE, available_cores, interrupts_delayed


def test_cores_are_those_of_the_process_or_of_the_environment_variable(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert available_cores() == 3
    monkeypatch.setenv(VARIABLE, "7")
    assert available_cores() == 7


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_invalid_number_is_refused(monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ValueError, match=VARIABLE):
        available_cores()


@pytest.mark.parametrize("error", [None, OSError])
def test_ctrl_c_is_raised_at_the_end_of_the_block(error):
    done = []
    with pytest.raises(KeyboardInterrupt):
        with interrupts_delayed():
            signal.raise_signal(signal.SIGINT)
            with interrupts_delayed():
                signal.raise_signal(signal.SIGINT)
            done.append(True)
            if error is not None:
                raise error
    assert done == [True] and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_process_that_ignores_ctrl_c_keeps_ignoring_it():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_delayed():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
