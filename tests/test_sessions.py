"""Tests which session holds the variables of a graph, and variable sets that initialize themselves."""
from collections import OrderedDict

import numpy as np
import pytest

from meta_policy_search.policies import GaussianMLPPolicy
from meta_policy_search.sessions import VariableSet, adopt_session, get_session
from meta_policy_search.tf_compat import tf


def variable(value):
    return tf.Variable(np.array(value, "f"), use_resource=True)


@pytest.fixture
def variables():
    return VariableSet(OrderedDict(a=variable([1.0, 2.0]), b=variable(3.0)))


def test_graph_has_one_session():
    session = get_session()
    assert get_session() is session and get_session(tf.get_default_graph()) is session
    assert session.graph is tf.get_default_graph()
    with tf.Graph().as_default() as other:
        assert get_session() is not session and get_session().graph is other
        assert get_session(session.graph) is session


def test_entered_session_is_used_unless_it_belongs_to_another_graph():
    own = get_session()
    with tf.Session() as entered:
        assert get_session() is entered
    assert get_session() is own
    with tf.Session(graph=tf.Graph()):
        assert get_session(own.graph) is own


def test_adopted_session_is_found_without_entering_it():
    session = tf.Session()
    adopt_session(session)
    assert get_session() is session


def test_first_used_session_remains_the_session_of_the_graph():
    session = tf.Session()
    with session.as_default():
        policy = GaussianMLPPolicy(2, 1, hidden_sizes=())
        policy.set_flat_params([1.0, 2.0, 3.0, 4.0])
    assert policy.get_flat_params().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_closed_session_raises(variables):
    with tf.Session():
        variables.write({"a": [5.0, 6.0], "b": 7.0})
    with pytest.raises(RuntimeError, match="closed Session"):
        variables.read()
    with tf.Session(), pytest.raises(RuntimeError, match="no value in this session, but were used in another one"):
        variables.read()


def test_variables_are_initialized_on_first_use(variables):
    values = variables.read()
    assert isinstance(values, OrderedDict) and list(values) == ["a", "b"]
    np.testing.assert_array_equal(values["a"], [1.0, 2.0])
    assert values["b"] == 3.0


def test_assigned_values_are_not_overwritten_by_initialization(variables):
    get_session().run(variables.variables["b"].initializer)
    get_session().run(variables.variables["b"].assign(9.0))
    assert variables.read()["b"] == 9.0
    again = VariableSet(variables.variables)
    assert again.read()["b"] == 9.0


def test_each_session_has_separate_values(variables):
    variables.write({"a": [5.0, 6.0], "b": 7.0})
    with tf.Session():
        variables.write({"a": [1.0, 2.0], "b": 3.0})
        assert variables.read()["b"] == 3.0
    assert variables.read()["b"] == 7.0


def test_other_variables_are_not_initialized(variables):
    other = variable(0.0)
    is_initialized = other.is_initialized()
    variables.read()
    assert not get_session().run(is_initialized)


def test_no_ops_are_added_after_construction(variables):
    tf.get_default_graph().finalize()
    variables.write({"a": [5.0, 6.0], "b": 7.0})
    np.testing.assert_array_equal(variables.read()["a"], [5.0, 6.0])


@pytest.mark.parametrize(
    "values, message",
    [
        ({"a": [1.0, 2.0]}, r"settings: expected the names \['a', 'b'\], got \['a'\]"),
        ({"a": [1.0, 2.0], "b": 1.0, "c": 1.0}, "settings: expected the names"),
        ({"a": [1.0], "b": 1.0}, r"settings\['a'\]: expected shape \(2,\), got \(1,\)"),
        ({"a": [1.0, 2.0], "b": np.nan}, r"settings\['b'\]: expected finite numbers, got nan"),
    ],
)
def test_invalid_values_are_refused_before_any_assignment(variables, values, message):
    with pytest.raises(ValueError, match=message):
        variables.write(values, "settings")
    np.testing.assert_array_equal(variables.read()["a"], [1.0, 2.0])


def test_empty_variable_set_works():
    empty = VariableSet({})
    empty.write({})
    assert empty.read() == OrderedDict()
