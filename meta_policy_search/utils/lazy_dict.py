"""A dict whose entries are made when somebody first asks for one."""
import functools
from typing import Any, Callable, Dict, Mapping, Optional


class LazyDict(dict):
    """A dict that fills itself on first use, and knows whether it was changed since.

    Pickles and copies are plain dicts.

    Args:
        make: returns the entries; called at most once.
    """

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__()
        self._make: Optional[Callable[[], Mapping[str, Any]]] = make
        self._made: Dict[str, Any] = {}

    def _fill(self) -> None:
        if self._make is not None:
            make, self._make = self._make, None
            dict.update(self, make())
            self._made = _shallow(self)

    def add(self, key: str, value: Any) -> None:
        """Sets an entry as if `make` had returned it; without effect on a dict that has not been filled."""
        if self._make is None:
            dict.__setitem__(self, key, value)
            self._made[key] = value

    @property
    def is_changed(self) -> bool:
        """Whether an entry was added, removed or replaced; writing into an array is no such change."""
        return self._make is None and not _is_same(self, self._made)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)


def _shallow(entries: Dict[str, Any]) -> Dict[str, Any]:
    return {key: dict(value) if isinstance(value, dict) else value for key, value in dict.items(entries)}


def _is_same(entries: Dict[str, Any], made: Dict[str, Any]) -> bool:
    return dict.keys(entries) == made.keys() and all(
        _is_same(value, made[key]) if isinstance(value, dict) and isinstance(made[key], dict) else value is made[key]
        for key, value in dict.items(entries))


def _filling(name: str) -> Callable[..., Any]:
    method = getattr(dict, name)

    @functools.wraps(method)
    def call(self: LazyDict, *args: Any, **kwargs: Any) -> Any:
        self._fill()
        return method(self, *args, **kwargs)

    return call


for _name in (
    "__contains__ __delitem__ __eq__ __getitem__ __ior__ __iter__ __len__ __ne__ __or__ __repr__ __reversed__ __ror__ "
    "__setitem__ clear copy get items keys pop popitem setdefault update values"
).split():
    setattr(LazyDict, _name, _filling(_name))
