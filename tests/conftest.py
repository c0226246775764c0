"""Starts every test with a fixed seed, a separate TensorFlow graph and a reset logger."""
import gc
import os
import signal
import sys

import pytest

from meta_policy_search.utils import logger
from meta_policy_search.utils.utils import set_seed

pytest.register_assert_rewrite("tests.helpers")

# A shell starts background jobs with SIGINT ignored, and child processes inherit this. Tests of Ctrl-C need SIGINT.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


os.fsync = lambda descriptor: None  # tests end processes, but not the machine


@pytest.hookimpl(tryfirst=True)  # before markers are selected
def pytest_collection_modifyitems(items):
    """Applies `@pytest.mark.thorough(but=..., ci=...)`, whose values are ids of cases or tuples of ids.

    The default run includes the cases `but`. If `ci` is given, `.ci/run --thorough` includes `but` and `ci`; others are
    slow.
    """
    for item in items:
        for mark in item.iter_markers("thorough"):
            but, ci = ((ids,) if isinstance(ids, str) else ids for ids in map(mark.kwargs.get, ("but", "ci"), ((), ())))
            if but and item.callspec.id in but:
                item.add_marker("representative")
            elif ci and item.callspec.id not in ci:
                item.add_marker("slow")


def pytest_collection_finish():
    """Excludes the objects that imports and collection created from garbage collection, which saves 6% of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_addoption(parser):
    parser.addoption("--optimize-graphs", action="store_true",
                     help="optimize TensorFlow graphs, as users do; this takes a quarter of the time of tiny graphs")


@pytest.hookimpl(tryfirst=True)  # before fixtures of any scope
def pytest_runtest_setup(item):
    """Skips TensorFlow's graph optimization in this process, unless it is requested."""
    sessions = sys.modules.get("meta_policy_search.sessions")
    if sessions is not None:
        is_skipped = not item.config.getoption("optimize_graphs")
        sessions.CONFIG.graph_options.rewrite_options.disable_meta_optimizer = is_skipped


@pytest.fixture(autouse=True)
def _fresh_graph():
    """Runs the test in a separate graph and closes its sessions; does nothing if TensorFlow is not loaded."""
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


@pytest.fixture
def logged(monkeypatch):
    """Collects the values logged under each key instead of adding them to a row."""
    values = {}
    monkeypatch.setattr(logger, "logkv", values.__setitem__)
    return values


@pytest.fixture
def messages(monkeypatch):
    """Collects the logged messages instead of printing them."""
    said = []
    monkeypatch.setattr(logger, "log", lambda *args, **kwargs: said.append(" ".join(map(str, args))))
    return said
