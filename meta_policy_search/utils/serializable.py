"""Base classes of objects that record the arguments of their constructor call."""
import functools
import inspect
import reprlib
import sys
import typing
from typing import TYPE_CHECKING, Any, Collection, Dict, FrozenSet, Mapping, Optional, Tuple, TypeVar

from meta_policy_search.types import NO_EFFECT

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


def replace_arguments(part: Tuple[type, Tuple, Dict[str, Any]], new: Mapping[str, Any]) -> Tuple[type, Tuple, Dict]:
    """Replaces recorded constructor arguments of a class by those in `new`; ignores names that it does not accept."""
    cls, args, kwargs = part
    bound = constructor_signature(cls).bind_partial(*args, **kwargs)
    bound.arguments.update({name: value for name, value in new.items() if name in bound.signature.parameters})
    return cls, bound.args, {**bound.kwargs, **{name: new[name] for name in bound.kwargs.keys() & new.keys()}}


_REMOVED_HOOKS: Dict[str, Dict[str, str]] = {
    "MAMLAlgo": {"_adapt_objective_sym": "inner_loss", "_build_inner_adaption": "inner_update",
                 "_adapt_sym": "inner_update", "_extract_input_dict": "input_values", "make_vars": "meta_objective",
                 "build_inner_loss": "inner_loss", "build_meta_objective": "meta_objective",
                 "_make_input_placeholders": "meta_objective", "_create_step_size_vars": "inner_update",
                 "_extract_input_dict_meta_op": "meta_input_values"},
    "MetaPointEnvNavigation": {"reward": "step", "done": "step"},
    "MetaSampler": {"_handle_info_dicts": "obtain_samples"},
    "MujocoMetaEnv": {"_get_obs": "reset and step", "reset_model": "reset"},
    "NormalizedEnv": dict.fromkeys((
        "_apply_normalize_obs", "_apply_normalize_reward", "_update_obs_estimate", "_update_reward_estimate"),
        "reset and step"),
    "Policy": {"_get_pre_update_actions": "get_actions", "_get_post_update_actions": "get_actions",
               "_build_output": "distribution_info_sym", "_create_placeholders_for_vars": "build_graph",
               "log_likelihood_sym": "distribution", "likelihood_ratio_sym": "distribution"},
    "SampleProcessor": dict.fromkeys((
        "_compute_samples_data", "_compute_advantages", "_stack_path_data", "_log_path_stats", "_pad_and_stack_paths",
        "_compute_discounted_rewards", "_compute_adjusted_rewards", "_fit_reward_baseline_compute_advantages"),
        "process_samples"),
    "Trainer": {"log_diagnostics": "perform_itr"},
}
"""For each base class of this package, a dict from the name of a removed method to the method to override instead."""


def _reject_removed_hooks(cls: type) -> None:
    """Raises `TypeError` if a class overrides a method of the public ProMP code that this package does not call.

    `Configurable` calls this function for each subclass. Without this check, the override would silently have no
    effect.
    """
    for base in cls.__mro__:
        hooks = _REMOVED_HOOKS.get(base.__name__, {}) if base.__module__.startswith(f"{_PACKAGE}.") else {}
        for name, instead in hooks.items():
            if inspect.getattr_static(cls, name, None) is not inspect.getattr_static(base, name, None):
                raise TypeError(f"{cls.__name__}.{name}: this version never calls this method of older code; override "
                                f"{instead} instead")


class Configurable:
    """Records the arguments of its constructor call; `repr` shows the arguments that differ from their defaults.

    Constructors use their arguments, so assigning an argument of a class of this package later raises
    `AttributeError`. Exceptions are properties with a setter and the names in `assignable_arguments`. Arguments that
    only a user's subclass has can always be assigned.

    A subclass that defines `__new__` must call `super().__new__(cls, *args, **kwargs)`.
    """

    assignable_arguments: Collection[str] = ()
    """Names of constructor arguments that can be assigned. Each is read when it is used, and is in the snapshot."""

    _given: tuple[tuple, Dict[str, Any]]
    _fixed: FrozenSet[str] = frozenset()  # constructor arguments of the classes of this package

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _reject_removed_hooks(cls)
        if cls.__module__.startswith(f"{_PACKAGE}."):
            cls._fixed = cls._fixed.union(constructor_signature(cls).parameters)

    if not TYPE_CHECKING:  # type checkers accept any attribute of a class with this method

        def __setattr__(self, name: str, value: Any) -> None:
            if name in self._fixed and not _is_in_constructor(self) and name not in self.assignable_arguments and not (
                    isinstance(own := inspect.getattr_static(type(self), name, None), property) and own.fset):
                cls = type(self).__name__
                raise AttributeError(f"{name} cannot be changed after construction: build a new {cls}({name}=...)")
            super().__setattr__(name, value)

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
        _, args, kwargs = replace_arguments((type(self), *self._given), overrides)
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


def _is_in_constructor(obj: Any) -> bool:
    """Returns whether the constructor of an object, or a method that it calls, is running."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        names = frame.f_code.co_varnames
        if frame.f_code.co_name in ("__init__", "__setstate__") and names and frame.f_locals.get(names[0]) is obj:
            return True
        frame = frame.f_back
    return False


def add_defaults(part: Any, interface: type) -> Any:
    """Adds the public attributes of an interface that an object of another class lacks; returns the object.

    Raises:
        TypeError: attributes of the object cannot be set, for example because its class has `__slots__`.
    """
    for name, default in vars(interface).items() if not isinstance(part, interface) else ():
        if not name.startswith("_") and not hasattr(part, name):
            try:
                setattr(part, name, functools.partial(default, part) if callable(default) else default)
            except AttributeError as error:
                raise TypeError(f"{type(part).__name__}: expected a subclass of {interface.__name__}, because its "
                                f"objects accept no attribute {name!r}") from error
    return part


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
                         f"such as the public code of ProMP. {advice}")


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
        if value is not p.empty and not (only_changed and _equals_default(value, p.default)):
            found[p.name] = value
    return found


def type_hints(function: Any) -> Dict[str, Any]:
    """Returns the type hints of a function with their marks; those that cannot be evaluated are omitted."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):  # names that only type checkers import
        return {}


def is_without_effect(hint: Any) -> bool:
    """Returns whether a type hint is marked with `types.WithoutEffect`."""
    return NO_EFFECT in typing.get_args(hint)


def _equals_default(value: Any, default: Any) -> bool:
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
