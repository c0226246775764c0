"""Every test begins with a seed, with a TensorFlow graph and a logger of its own."""
import signal
import sys

import pytest

from meta_policy_search.utils import logger
from meta_policy_search.utils.utils import set_seed

pytest.register_assert_rewrite("tests.helpers")

# A shell starts what runs in its background with SIGINT ignored, and processes inherit that; tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before markers are selected
def pytest_collection_modifyitems(items):
    """Has the quick run keep the cases that `@pytest.mark.thorough(but=...)` names."""
    for item in items:
        for mark in item.iter_markers("thorough"):
            but = mark.kwargs.get("but", ())
            if but and item.callspec.id in ((but,) if isinstance(but, str) else but):
                item.add_marker("representative")


@pytest.fixture(autouse=True)
def _fresh_graph():
    """A graph of the test's own, whose session ends with it, where TensorFlow is loaded (the fixture loads nothing)."""
    if "meta_policy_search.tf_compat" not in sys.modules:
        yield
        return
    from meta_policy_search.tf_compat import tf

    with tf.Graph().as_default() as graph:
        yield
    for session in graph.get_collection("meta_policy_search/session"):
        session.close()


@pytest.fixture(autouse=True)
def _fixed_seed(_fresh_graph):
    set_seed(1)


@pytest.fixture(autouse=True)
def _fresh_logger():
    logger.reset()
    yield
    logger.reset()
