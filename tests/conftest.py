"""Every test begins with a seed, and with a TensorFlow graph and a logger of its own; slow tests run on request."""
import sys

import pytest

from meta_policy_search.utils import logger
from meta_policy_search.utils.utils import set_seed


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than a few seconds; runs with --slow, or if chosen by -m")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow") or "slow" in config.getoption("-m"):
        return
    left_out = [item for item in items if "slow" in item.keywords]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if "slow" not in item.keywords]


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
