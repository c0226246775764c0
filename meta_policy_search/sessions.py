"""Manages one TensorFlow session per graph, and reads and writes sets of variables.

Policies work without a `with session:` block, because each graph stores the session that holds its variable values. A
session that the user enters with `with` or `session.as_default()`, or passes to the `Trainer`, takes precedence. A
`VariableSet` builds all its operations in the constructor, so it also works on a finalized graph.
"""
import contextlib
import weakref
from collections import OrderedDict
from typing import Any, Iterator, List, Mapping, Optional

import numpy as np

from meta_policy_search.actors.parameters import check_params
from meta_policy_search.tf_compat import tf

CONFIG = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=-1)  # of new sessions
_COLLECTION = "meta_policy_search/session"
_USED = "meta_policy_search/used"  # collection: names of the variables that have been used in a session
_REMEDY = ("session.run(tf.global_variables_initializer()) for initial values, then policy.load_npz(...) for saved "
           "weights")


def get_session(graph: Optional[tf.Graph] = None) -> tf.Session:
    """Returns the session of a graph.

    If the default session belongs to the graph, it is returned; if no session is stored with the graph, it is also
    stored. Otherwise, the stored session is returned. If there is none, a new session is created and stored.

    A new session runs each operation in the calling thread, so results do not depend on the number of cores. Large
    computations are divided among several threads, which call `session.run` concurrently.

    The variable values are lost when the stored session is closed; later TensorFlow calls then raise `RuntimeError`.
    Keep the session open while the policy is in use, or enter another session.

    Args:
        graph: the graph. Default: the default graph.
    """
    graph = tf.get_default_graph() if graph is None else graph
    stored: List[tf.Session] = graph.get_collection_ref(_COLLECTION)
    default = tf.get_default_session()
    if default is not None and default.graph is graph:
        if not stored:  # otherwise the trained values would be lost silently at the end of the `with` block
            stored.append(default)
        return default
    if not stored:
        stored.append(tf.Session(graph=graph, config=CONFIG))
    return stored[0]


def adopt_session(session: tf.Session) -> None:
    """Makes `get_session(session.graph)` return `session`.

    Raises:
        RuntimeError: a variable that was used in another session has no value in this one.
    """
    used = {*session.graph.get_collection(_USED)}
    try:
        session.run([v for v in session.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES) if v.name in used])
    except tf.errors.FailedPreconditionError as error:
        raise RuntimeError("sess: variables that were used in another session have no value in this one. Set them "
                           f"first: {_REMEDY}") from error
    session.graph.get_collection_ref(_COLLECTION)[:] = [session]


@contextlib.contextmanager
def graph_scope(owner: Any) -> Iterator[None]:
    """A name scope for the graph that the constructor of `owner` builds.

    Raises:
        AttributeError: an attribute of `owner` is missing, usually because a subclass sets it too late.
    """
    try:
        with tf.name_scope(owner.name):
            yield
    except AttributeError as error:
        if error.obj is not owner or "super().__init__" in str(error):
            raise
        raise AttributeError(f"{error}. The constructor of the base class builds the graph: set the attribute before "
                             "super().__init__") from error


class VariableSet:
    """Named variables that are read and written together, and initialized before their first use.

    Args:
        variables: ordered mapping from name to variable.
    """

    def __init__(self, variables: Mapping[str, tf.Variable]) -> None:
        self.variables: "OrderedDict[str, tf.Variable]" = OrderedDict(variables)
        self._graph = tf.get_default_graph()
        self._ready: "weakref.WeakSet[tf.Session]" = weakref.WeakSet()
        with tf.name_scope("access"):
            self._is_initialized = [  # reference variables lack the method; the function warns for others
                v.is_initialized() if hasattr(v, "is_initialized") else tf.is_variable_initialized(v)
                for v in self.variables.values()]
            self._new_values = OrderedDict((name, tf.placeholder(v.dtype.base_dtype, v.shape))
                                           for name, v in self.variables.items())
            self._assign = tf.group(*(v.assign(self._new_values[name]) for name, v in self.variables.items()))

    def session(self) -> tf.Session:
        """Returns the session of the graph. Variables without a value are initialized first.

        Raises:
            RuntimeError: a variable that was used in another session has no value in this one.
        """
        session = get_session(self._graph)
        if session not in self._ready:
            done = session.run(self._is_initialized)
            missing = {v.name: v.initializer for v, is_done in zip(self.variables.values(), done) if not is_done}
            lost = [name for name in missing if name in self._graph.get_collection(_USED)]
            if lost:
                raise RuntimeError(f"session: {len(lost)} variables, such as {lost[0]}, have no value in this session, "
                                   f"but were used in another one. Leave this session, or set them in it: {_REMEDY}")
            session.run(list(missing.values()))
            self._set_ready(session)
        return session

    def _set_ready(self, session: tf.Session) -> None:
        """Records that all variables have values in a session."""
        if session not in self._ready:
            self._ready.add(session)
            self._graph.get_collection_ref(_USED).extend(v.name for v in self.variables.values())

    def read(self) -> "OrderedDict[str, np.ndarray]":
        """Returns the current values by name."""
        values = self.session().run(list(self.variables.values()))
        return OrderedDict(zip(self.variables, values))

    def write(self, values: Mapping[str, np.ndarray], what: str = "values") -> None:
        """Sets all variables by name; `what` is the name of `values` in error messages."""
        checked, session = self.checked(values, what), get_session(self._graph)
        session.run(self._assign, {placeholder: checked[name] for name, placeholder in self._new_values.items()})
        self._set_ready(session)

    def checked(self, values: Mapping[str, np.ndarray], what: str) -> "OrderedDict[str, np.ndarray]":
        """Returns the values in the order and dtype of the variables; see `actors.parameters.check_params`."""
        like = {name: np.broadcast_to(np.zeros((), v.dtype.as_numpy_dtype), v.shape.as_list())
                for name, v in self.variables.items()}
        return check_params(values, like, what)
