"""Starts every test with a fixed seed, a separate TensorFlow graph and a reset logger."""
import signal
import sys

import pytest

from meta_policy_search.utils import logger
from meta_policy_search.utils.utils import set_seed

pytest.register_assert_rewrite("tests.helpers")

# A shell starts background jobs with SIGINT ignored, and child processes inherit this. Tests of Ctrl-C need SIGINT.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before markers are selected
def pytest_collection_modifyitems(items):
    """Includes the cases named by `@pytest.mark.thorough(but=...)` in the default run."""
    for item in items:
        for mark in item.iter_markers("thorough"):
            but = mark.kwargs.get("but", ())
            if but and item.callspec.id in ((but,) if isinstance(but, str) else but):
                item.add_marker("representative")


@pytest.fixture(autouse=True)
def _fresh_graph(request):
    """Runs the test in a separate graph and closes its sessions; does nothing if TensorFlow is not loaded.

    TensorFlow optimizes the graph before its first run in a session. This takes a quarter of the time of tests with
    tiny graphs, so only tests that are excluded by default do it.
    """
    if "meta_policy_search.tf_compat" not in sys.modules:
        yield
        return
    from meta_policy_search import sessions
    from meta_policy_search.tf_compat import tf

    is_fast = not any(map(request.node.get_closest_marker, ("documentation", "slow", "thorough")))
    sessions.CONFIG.graph_options.rewrite_options.disable_meta_optimizer = is_fast
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
