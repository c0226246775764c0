"""Fast paths: vectorized methods that replace documented methods, and the check whether they may be used.

Policies (`make_actor`, `make_actors`), environments (`make_batched`) and baselines (`fit_predict`) may have a
vectorized method in addition to their documented methods. A decorator declares the methods that the vectorized method
replaces::

    class MyPolicy(MetaPolicy):
        def get_actions(self, observations): ...

        @replaces("get_actions")
        def make_actor(self): ...

`fast_path` returns the vectorized method only if the replaced methods are unchanged. If a subclass overrides one of
them, or the class was patched, the library calls the documented methods instead. Methods that were replaced on an
object are refused (`checks.check_not_replaced`).
"""
import inspect
from typing import Any, Callable, Optional, TypeVar

F = TypeVar("F", bound=Callable)
_RECORD = "_replaced_by_"  # prefix of the attribute with the declared method and the methods that it replaces


class replaces:  # noqa: N801 - used as a decorator
    """Decorator that declares the methods of the same class that a vectorized method replaces.

    The decorator records these methods when the class is created. If one of them is overridden or patched later, the
    vectorized method is not used.

    Args:
        *names: names of methods or properties.
    """

    def __init__(self, *names: str) -> None:
        self._names = names

    def __call__(self, method: F) -> F:
        self._method: Callable = method
        return self  # type: ignore[return-value]  # `__set_name__` restores the plain method

    def __set_name__(self, owner: type, name: str) -> None:
        recorded = {name: inspect.getattr_static(owner, name) for name in self._names}
        setattr(owner, name, self._method)
        setattr(owner, _RECORD + name, (self._method, recorded))  # pickles of classes lose attributes of static methods


def fast_path(obj: Any, name: str) -> Optional[Callable]:
    """Returns the vectorized method `name` of an object, or None if the documented methods must be called instead.

    Raises:
        TypeError: the vectorized method does not declare the methods that it replaces.
    """
    cls = type(obj)
    method = inspect.getattr_static(cls, name, None)
    if method is None:
        return None
    records = (vars(base).get(_RECORD + name, (None, {})) for base in cls.__mro__)
    replaced = next((replaced for declared, replaced in records if declared is method), None)
    if replaced is None:
        raise TypeError(f"{cls.__name__}.{name}: expected a method decorated with @replaces(...) of "
                        "meta_policy_search.utils.fast_paths, got a method without this decorator. Pass the names of "
                        "the methods that it replaces")
    if any(inspect.getattr_static(cls, other, None) is not function for other, function in replaced.items()):
        return None
    return getattr(obj, name)
