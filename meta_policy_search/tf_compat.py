"""Imports `tensorflow.compat.v1` in graph mode and suppresses its log messages.

All other modules of the package import `tf` from here.
"""
import contextlib
import logging
import os
import random
import sys
import tempfile
import warnings
from typing import Iterator

_FIRST = "tensorflow" not in sys.modules


@contextlib.contextmanager
def _quiet_import() -> Iterator[None]:
    """Suppresses TensorFlow's C++ messages on standard error during the import; prints them if the import fails."""
    with contextlib.suppress(AttributeError, ValueError):  # standard error may be closed
        sys.stderr.flush()
    try:
        terminal = os.dup(2)
    except OSError:  # standard error is closed
        yield
        return
    with tempfile.TemporaryFile() as kept, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except Exception:
            kept.seek(0)
            os.write(terminal, kept.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
_random_state = random.getstate()
with _quiet_import() if _FIRST else contextlib.nullcontext():
    import tensorflow.compat.v1 as tf

random.setstate(_random_state)  # the import draws random numbers


def _use_static_graphs() -> None:
    from tensorflow.python.eager import context

    current = context.context_safe()
    if tf.executing_eagerly() and current is not None and current._initialized:  # noqa: SLF001 - True after an eager operation
        raise RuntimeError(
            "meta_policy_search builds static TensorFlow graphs, but eager TensorFlow has already run in this process. "
            "Import meta_policy_search.policies (or call tensorflow.compat.v1.disable_v2_behavior()) before any "
            "TensorFlow operation, or use a fresh process.")
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.ERROR)  # hides the deprecation warning of the next call
    try:
        tf.disable_v2_behavior()
    finally:
        logger.setLevel(level)


_use_static_graphs()

__all__ = ["tf"]
