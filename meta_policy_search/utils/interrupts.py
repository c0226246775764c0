"""Ctrl-C, and what it must not cut in two."""
import contextlib
import signal
import threading
from typing import Iterator


@contextlib.contextmanager
def interrupts_delayed() -> Iterator[None]:
    """Delays Ctrl-C within a `with` block to its end.

    The handler is exchanged rather than the signal blocked: a blocked signal is delivered to another thread of the
    process (TensorFlow has some), and Python answers it in the main thread all the same.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):  # it raises nothing here
        yield
        return
    pressed = []
    signal.signal(signal.SIGINT, lambda *arguments: pressed.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if pressed:
            handler(*pressed[-1])
