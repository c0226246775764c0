"""Vectorized methods, and the check that they may stand in for the methods they vectorize.

Policies (`make_actor`, `make_actors`), environments (`make_batched`) and baselines (`fit_predict`) may have a
vectorized method next to their documented ones. It declares which methods it replaces::

    class MyPolicy(MetaPolicy):
        def get_actions(self, observations): ...

        @replaces("get_actions")
        def make_actor(self): ...

`fast_path` returns the vectorized method only while these methods are the ones it was written for. An object whose
class overrides one of them, or whose class or instance was patched, is used through its documented methods.
"""
import inspect
from typing import Any, Callable, Dict, Optional, TypeVar

F = TypeVar("F", bound=Callable)


class replaces:  # noqa: N801 - used as a decorator
    """Declares which methods of the same class a vectorized method replaces.

    The functions of these names are recorded when the class is created. If one of them is overridden or replaced later,
    the vectorized method is not used.

    Args:
        *names: names of methods or properties.
    """

    def __init__(self, *names: str) -> None:
        self._names = names

    def __call__(self, method: F) -> F:
        self._method: Callable = method
        return self  # type: ignore[return-value]  # `__set_name__` puts the method in its place

    def __set_name__(self, owner: type, name: str) -> None:
        recorded = {name: inspect.getattr_static(owner, name) for name in self._names}
        self._method.replaced = recorded  # type: ignore[attr-defined]
        setattr(owner, name, self._method)  # the class has the plain method


def fast_path(obj: Any, name: str) -> Optional[Callable]:
    """Returns the vectorized method `name` of an object, or None if the documented methods must be called instead.

    Raises:
        TypeError: the method does not declare what it replaces.
    """
    cls = type(obj)
    method = inspect.getattr_static(cls, name, None)
    if method is None:
        return None
    replaced: Optional[Dict[str, Any]] = getattr(method, "replaced", None)
    if replaced is None:
        raise TypeError(f"{cls.__name__}.{name}: expected the decorator @replaces(...) of "
                        "meta_policy_search.utils.fast_paths, which names the methods that it replaces")
    if any(inspect.getattr_static(obj, other, None) is not function for other, function in replaced.items()):
        return None
    return getattr(obj, name)
