"""Base classes of objects that record the arguments of their constructor call."""
import inspect
import reprlib
import typing
from typing import TYPE_CHECKING, Any, Callable, Collection, Dict, FrozenSet, Mapping, Optional, Tuple, TypeVar

from meta_policy_search.types import NO_EFFECT
from meta_policy_search.utils.ported_code import check_hooks

S = TypeVar("S", bound="Serializable")
T = TypeVar("T")

_LINE, _SHORT = 100, 60  # maximum characters of a one-line repr, and of one argument
_PACKAGE = __name__.partition(".")[0]


def constructor_signature(cls: type) -> inspect.Signature:
    """Returns the signature of a class's constructor.

    `inspect.signature(cls)` is not sufficient: in Python 3.10, it returns the signature of `__new__` if the class
    inherits its constructor.
    """
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return inspect.Signature()
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def replaced_arguments(obj: "Configurable", new: Mapping[str, Any]) -> Tuple[Tuple, Dict[str, Any]]:
    """Returns the constructor arguments of an object with those in `new`; ignores names that it does not accept."""
    args, kwargs = obj._given
    bound = constructor_signature(type(obj)).bind_partial(*args, **kwargs)
    bound.arguments.update({name: value for name, value in new.items() if name in bound.signature.parameters})
    return bound.args, {**bound.kwargs, **{name: new[name] for name in bound.kwargs.keys() & new.keys()}}


class Configurable:
    """Records the arguments of its constructor call; `repr` shows the arguments that differ from their defaults.

    Constructors use their arguments, so assigning another value to an argument of a class of this package raises
    `AttributeError`. Exceptions are properties with a setter and the names in `assignable_arguments`. Arguments that
    only a user's subclass has can always be assigned. A subclass passes other values to `super().__init__`.

    A subclass that defines `__new__` must call `super().__new__(cls, *args, **kwargs)`.
    """

    assignable_arguments: Collection[str] = ()
    """Names of constructor arguments that can be assigned. Each is read when it is used, and is in the snapshot."""

    _checks: Mapping[str, Callable[[str, Any], Any]] = {}
    """Functions `(name, value)` that check an assignable argument and return the value to store, at each assignment."""

    _given: tuple[tuple, Dict[str, Any]]
    _fixed: FrozenSet[str] = frozenset()  # constructor arguments of the classes of this package
    _is_built = False  # constructors that do not store all arguments by name end with `self._is_built = True`

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_hooks(cls)
        if cls.__module__.startswith(f"{_PACKAGE}."):
            cls._fixed = cls._fixed.union(constructor_signature(cls).parameters)

    if not TYPE_CHECKING:  # type checkers accept any attribute of a class with this method

        def __setattr__(self, name: str, value: Any) -> None:
            is_changed = vars(self).get(name, self if self._is_built else value) is not value
            if is_changed and name in self._fixed and name not in self.assignable_arguments and not isinstance(
                    inspect.getattr_static(type(self), name, None), property):
                cls = type(self).__name__
                raise AttributeError(f"{name} cannot be changed after construction: build a new {cls}({name}=...)")
            super().__setattr__(name, self._checks[name](name, value) if name in self._checks else value)

        def __getattr__(self, name: str) -> Any:
            try:  # again, for the error of a property
                return object.__getattribute__(self, name)
            except AttributeError as error:
                if self._is_built or name not in self._fixed and (name[:1] != "_" or name[:2] == "__"):
                    raise
                raise AttributeError(f"{error}. Does the constructor of {type(self).__name__} call super().__init__?"
                                     ) from error

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Creates the object and records the arguments."""
        if cls.__init__ is object.__init__ and (args or kwargs):  # not checked by Python if `__new__` is defined
            raise TypeError(f"{cls.__name__}() takes no arguments")
        self = super().__new__(cls)
        self._given = args, kwargs
        return self

    def __repr__(self) -> str:
        shown = [f"{name}={_as_text(value)}" for name, value in present_arguments(self, only_changed=True).items()]
        line = f"{type(self).__name__}({', '.join(shown)})"
        if len(line) <= _LINE:
            return line
        return "\n".join([f"{type(self).__name__}(", *(f"    {each}," for each in shown), ")"])


class Serializable(Configurable):
    """A `Configurable` that is copied and pickled through its constructor arguments.

    Pickles and copies contain only these arguments. To save other state, a subclass extends `__getstate__` and
    `__setstate__`::

        class Policy(Serializable):
            def __getstate__(self):
                return {"init_args": super().__getstate__(), "params": self.get_param_values()}

            def __setstate__(self, state):
                super().__setstate__(state["init_args"])
                self.set_params(state["params"])
    """

    def quick_init(self, local_variables: Any) -> None:
        """Does nothing. Older code calls this method with `locals()` to record the constructor arguments."""

    def clone(self: S, **overrides: Any) -> S:
        """Builds a new object with the same constructor arguments.

        The clone of a policy has newly initialized weights. To keep the weights, copy them with `set_params` or use
        `copy.deepcopy`.

        Args:
            **overrides: constructor arguments to replace.
        """
        args, kwargs = replaced_arguments(self, overrides)
        unknown = overrides.keys() - constructor_signature(type(self)).parameters.keys()  # the constructor refuses them
        return type(self)(*args, **{**kwargs, **{name: overrides[name] for name in unknown}})

    def __getstate__(self) -> dict:
        """Returns the constructor arguments: `{"args": tuple, "kwargs": dict}`."""
        args, kwargs = self._given
        return {"args": args, "kwargs": kwargs}

    def __setstate__(self, state: dict) -> None:
        check_own_pickle(self, state, "args")
        args, kwargs = self._given = state["args"], state["kwargs"]
        type(self).__init__(self, *args, **kwargs)


def shallow_copy(obj: T, **changed: Any) -> T:
    """Copies an object without calling its constructor; both objects share all attributes that are not `changed`.

    `copy.copy` of a `Serializable` calls the constructor instead, which builds a new graph.
    """
    other = object.__new__(type(obj))
    vars(other).update(vars(obj), **changed)
    return other


def check_own_pickle(obj: Any, state: Any, key: str, advice: str = "Build a new object from its arguments") -> None:
    """Raises `ValueError` if the state of a pickled object was not written by this package (has no entry `key`)."""
    if not isinstance(state, Mapping) or key not in state:
        raise ValueError(f"{type(obj).__name__}: expected a pickle of this package, got a pickle of other code, "
                         "such as the public code of ProMP, or an object whose constructor did not call "
                         f"super().__init__. {advice}")


def given_arguments(obj: Configurable) -> Dict[str, Any]:
    """Returns the arguments of an object's constructor call by name, without omitted arguments."""
    try:
        args, kwargs = obj._given
        return dict(constructor_signature(type(obj)).bind_partial(*args, **kwargs).arguments)
    except (AttributeError, TypeError):  # the constructor was bypassed
        return {}


def present_arguments(obj: Configurable, only_changed: bool = False) -> Dict[str, Any]:
    """Returns the current values of an object's constructor arguments by name, defaults included.

    If the object has an attribute with the name of an argument, the value of the attribute is returned, except for
    properties with a setter. It may differ from the argument of the constructor call.

    Args:
        obj: the object.
        only_changed: whether to omit values that equal their defaults.
    """
    given, found = given_arguments(obj), {}
    for p in constructor_signature(type(obj)).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        value, attribute = given.get(p.name, p.default), inspect.getattr_static(type(obj), p.name, None)
        if p.name in vars(obj) or isinstance(attribute, property) and attribute.fset is None:
            value = getattr(obj, p.name, value)
        if value is not p.empty and not (only_changed and equals_default(value, p.default)):
            found[p.name] = value
    return found


def type_hints(function: Any) -> Dict[str, Any]:
    """Returns the type hints of a function with their marks; those that cannot be evaluated are omitted."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):  # names that only type checkers import
        return {}
    # Python 3.10 wraps the hint of an argument with the default None in `Optional`, which hides its mark.
    return {name: next(filter(is_without_effect, typing.get_args(hint)), hint) for name, hint in hints.items()}


def is_without_effect(hint: Any) -> bool:
    """Returns whether a type hint is marked with `types.WithoutEffect`."""
    return NO_EFFECT in typing.get_args(hint)


def equals_default(value: Any, default: Any) -> bool:
    """Returns whether an argument has its default; a list equals a tuple."""
    try:
        return value is default or bool(value == default) or isinstance(value, list) and tuple(value) == default
    except Exception:  # the comparison of arrays raises an error
        return False


def _as_text(value: Any) -> str:
    """Formats an argument as in a call; objects with a long repr are represented by their class."""
    text = name_of_callable(value) or repr(value)
    if len(text) <= _SHORT and "\n" not in text:
        return text
    return f"{type(value).__name__}(...)" if isinstance(value, Configurable) else reprlib.repr(value)


def name_of_callable(value: Any) -> Optional[str]:
    """Returns the name of a function or class; None for other objects."""
    return getattr(value, "__name__", None) if callable(value) else None
