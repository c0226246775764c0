"""Ctrl-C is delayed to the end of a `with` block."""
import signal
import threading

import pytest

from meta_policy_search.utils.interrupts import interrupts_delayed


@pytest.mark.parametrize("error", [None, OSError])
def test_ctrl_c_comes_at_the_end_of_the_block(error):
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


def test_the_handler_is_there_again_where_nothing_was_pressed():
    with interrupts_delayed():
        pass
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_delayed():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_have_nothing_to_delay():
    done = []

    def work():
        with interrupts_delayed():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
