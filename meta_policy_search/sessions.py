"""One session per graph, and sets of variables that initialize, read and write themselves in it.

Whoever uses a policy needs no `with session:` block: the session that holds a graph's variables is found
through the graph. A session entered with `with` or `session.as_default()`, or given to the `Trainer`, wins.
Every operation is built up front, so all of this works on a finalized graph too.
"""
import weakref
from collections import OrderedDict
from typing import List, Mapping, Optional

import numpy as np

from meta_policy_search.tf_compat import tf

_COLLECTION = "meta_policy_search/session"


def get_session(graph: Optional[tf.Graph] = None) -> tf.Session:
    """Returns the session of a graph: the default one if it is of this graph, else the graph's own.

    The graph's own session is the default one of the first call, or if there was none, one that is made then. That one
    computes in the thread that calls it: whoever has much to compute calls it from several, each with a part of the
    work. So no result depends on the number of cores.

    Args:
        graph: the graph; by default the default graph.

    Raises:
        RuntimeError: the graph's session was closed, and its variables are lost with it.
    """
    graph = tf.get_default_graph() if graph is None else graph
    known: List[tf.Session] = graph.get_collection_ref(_COLLECTION)
    default = tf.get_default_session()
    if default is not None and default.graph is graph:
        if not known:  # or what was trained in it would be fresh again, without a word, after its `with` block
            known.append(default)
        return default
    if not known:
        config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=-1)
        known.append(tf.Session(graph=graph, config=config))
    if known[0]._closed:  # noqa: SLF001 - the session has no public way to ask
        raise RuntimeError(
            "the TensorFlow session of this graph was closed, and the values of its variables are lost with it. Keep "
            "the session open as long as the policy is used, enter another one (`with session.as_default():`), or "
            "build everything anew in another graph (`tf.reset_default_graph()`)"
        )
    return known[0]


def adopt_session(session: tf.Session) -> None:
    """Makes `session` the one that `get_session` finds for its graph."""
    session.graph.get_collection_ref(_COLLECTION)[:] = [session]


class VariableSet:
    """Named variables that are read and written together, and initialized when first needed.

    Args:
        variables: ordered mapping of name to variable.
    """

    def __init__(self, variables: Mapping[str, tf.Variable]) -> None:
        self.variables: "OrderedDict[str, tf.Variable]" = OrderedDict(variables)
        self._graph = tf.get_default_graph()
        self._ready: "weakref.WeakSet[tf.Session]" = weakref.WeakSet()
        with tf.name_scope("access"):
            self._is_initialized = [  # the variables of `tf.get_variable` have no such method
                v.is_initialized() if hasattr(v, "is_initialized") else tf.is_variable_initialized(v)
                for v in self.variables.values()]
            self._initializers = [v.initializer for v in self.variables.values()]
            self._new_values = OrderedDict((name, tf.placeholder(v.dtype.base_dtype, v.shape))
                                           for name, v in self.variables.items())
            self._assign = tf.group(*(v.assign(self._new_values[name]) for name, v in self.variables.items()))

    def session(self) -> tf.Session:
        """Returns the session to run in, with the variables initialized in it; set values are kept."""
        session = get_session(self._graph)
        if session not in self._ready:
            done = session.run(self._is_initialized)
            session.run([op for op, is_done in zip(self._initializers, done) if not is_done])
            self._ready.add(session)
        return session

    def read(self) -> "OrderedDict[str, np.ndarray]":
        """Returns the current values by name."""
        values = self.session().run(list(self.variables.values()))
        return OrderedDict(zip(self.variables, values))

    def write(self, values: Mapping[str, np.ndarray], what: str = "values") -> None:
        """Sets all variables by name; `what` is what errors call `values`."""
        checked = self.checked(values, what)
        self.session().run(self._assign, {placeholder: checked[name] for name, placeholder in self._new_values.items()})

    def checked(self, values: Mapping[str, np.ndarray], what: str) -> "OrderedDict[str, np.ndarray]":
        """Returns values by name in the variables' order and type; `what` is what errors call `values`.

        Raises:
            ValueError: names or shapes are not the variables', or a number is not finite in their type.
        """
        if set(values) != set(self.variables):
            raise ValueError(f"{what}: expected the names {sorted(self.variables)}, got {sorted(values)}")
        checked = OrderedDict()
        for name, variable in self.variables.items():
            shape = tuple(variable.shape.as_list())
            with np.errstate(over="ignore"):
                value = np.asarray(values[name], variable.dtype.as_numpy_dtype)
            if value.shape == (1, *shape):  # so the public code of ProMP keeps `log_std`
                value = value[0]
            if value.shape != shape:
                raise ValueError(f"{what}[{name!r}]: expected shape {shape}, got {value.shape}")
            if not np.isfinite(value).all():
                raise ValueError(f"{what}[{name!r}]: expected finite numbers, got {value}")
            checked[name] = value
        return checked
