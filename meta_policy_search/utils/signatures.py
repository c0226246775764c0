"""Constructor arguments that a family of classes shares: stated and documented once, shown in full by every class.

A base class states arguments with their defaults and documents them. A subclass that passes them on says so by a
`TypedDict` of their names and types, which editors and type checkers read::

    class RobotArguments(TypedDict, total=False):
        engine: str

    class Robot(SharedArguments):
        def __init__(self, *, engine: str = "mujoco"): ...

    class Ant(Robot):
        def __init__(self, legs: int = 4, **robot: Unpack[RobotArguments]):
            super().__init__(**robot)

Then `inspect.signature(Ant)` is `(legs: int = 4, *, engine: str = "mujoco")`, the docstring of `Ant` describes
`engine`, and `Ant(engin="mujoco")` is a `TypeError` that asks whether `engine` was meant. An object says what it is by
the arguments that differ from their defaults: `Ant(legs=6)`.
"""
import functools
import inspect
import re
import sys
import types
import typing
from inspect import Parameter
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple, Type

from meta_policy_search.utils.checks import did_you_mean
from meta_policy_search.utils.serializable import Configurable

if sys.version_info >= (3, 11):
    from typing import Unpack
else:
    from typing_extensions import Unpack

__all__ = ["SharedArguments", "Unpack", "merged_parameters"]

_PACKAGE = __name__.partition(".")[0] + "."
_STARS: Dict[Any, str] = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
_TITLE = re.compile(r"^([A-Z]\w*):$", re.MULTILINE)  # of a section of a docstring
_ENTRY = re.compile(r"^ {4}(\*{0,2}\w+)((?: \([^)]*\))?:.*(?:\n {5,}.*)*)", re.MULTILINE)  # in the section `Args:`


class _Signature:
    """The attribute `__signature__`, which `inspect.signature` looks at, of whichever class is asked."""

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        return inspect.Signature(merged_parameters(owner))


class _Docstring:
    """The docstring of a class, put together when it is looked at."""

    def __init__(self, own: str) -> None:
        self.own = own

    def __get__(self, instance: Any, owner: Type["SharedArguments"]) -> str:
        return _merged_docstring(owner)


def refuse_replaced(cls: Any) -> None:
    """Raises `TypeError` if a class overrides methods of the public code of ProMP that nothing would call here.

    Args:
        cls: has `_replaced`, a dict of these to what is called in their place.
    """
    for name in sorted(set(cls._replaced) & set(vars(cls))):
        raise TypeError(f"{cls.__name__}.{name}: this method of the public code of ProMP is not called here; override "
                        f"{cls._replaced[name]} instead")


class SharedArguments(Configurable):
    """Base of classes whose constructors share arguments, see the module's docstring.

    Attributes:
        shared_sections: titles of the sections that a docstring takes from those of the bases where it has none of its
            own, in the order in which they are shown; `Args` is put together argument by argument.
    """

    __signature__ = _Signature()
    shared_sections: Tuple[str, ...] = ("Args", "Raises")
    _replaced: Dict[str, str] = {}  # see `refuse_replaced`

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_replaced(cls)
        if isinstance(vars(cls).get("__init__"), types.FunctionType):
            cls.__init__ = _refusing_unknown(cls.__init__)  # type: ignore[method-assign]
            if hasattr(cls.__init__, "__wrapped__") and _passes_on(cls):  # what `help` shows of it
                me = Parameter("self", Parameter.POSITIONAL_ONLY)
                signature = inspect.Signature([me, *merged_parameters(cls)])
                cls.__init__.__signature__ = signature  # type: ignore[attr-defined]
        if isinstance(vars(cls).get("__doc__"), str) and (cls.__module__.startswith(_PACKAGE) or _passes_on(cls)):
            cls.__doc__ = _Docstring(cls.__doc__)  # type: ignore[arg-type, assignment]

    @classmethod
    def _delegate(cls) -> Optional[type]:
        """Returns the class to which the constructor passes arguments on by name, if any, besides its bases."""
        return None


def _passes_on(cls: type) -> bool:
    """Returns whether the arguments of a class are not all written in its own constructor."""
    init = vars(cls).get("__init__")
    return init is None or any(p.kind in _STARS for p in _own_parameters(init))


def _own_parameters(init: Callable) -> List[Parameter]:
    """Returns the arguments that a constructor itself names, `self` left out."""
    return list(inspect.signature(getattr(init, "__wrapped__", init)).parameters.values())[1:]


def _refusing_unknown(init: Callable) -> Callable:
    """Makes a constructor refuse argument names that it does not take; none if it takes any by a plain `**`."""
    code = init.__code__
    known = set(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])
    if code.co_flags & inspect.CO_VARKEYWORDS:
        rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)]
        shared = _shared_names(init.__annotations__.get(rest))
        if shared is None:
            return init
        known.update(shared)

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if not kwargs.keys() <= known:
            raise TypeError(_complaint(type(self), next(name for name in kwargs if name not in known)))
        init(self, *args, **kwargs)

    return __init__


def _complaint(cls: type, name: str) -> str:
    known = [p.name for p in merged_parameters(cls) if p.kind not in _STARS]
    return f"{cls.__name__}: unknown argument {name!r}{did_you_mean(name, known)}"


def _shared_names(annotation: Any) -> Optional[List[str]]:
    """Returns the names that `**name: Unpack[SomeArguments]` stands for, or None for a plain `**name`."""
    unpacked = [a for a in typing.get_args(annotation) if typing.is_typeddict(a)]
    return list(unpacked[0].__annotations__) if unpacked else None


def _lineage(cls: type) -> Iterator[Tuple[type, bool]]:
    """Yields the classes whose constructors a call reaches, each with whether it is the delegate or a base of it."""
    delegate = cls._delegate() if issubclass(cls, SharedArguments) else None
    for start in filter(None, (cls, delegate)):
        for base in start.__mro__:
            if base is not object:
                yield base, start is not cls


def merged_parameters(cls: type) -> List[Parameter]:
    """Returns the arguments of a constructor, those of bases included that it takes by `*args` and `**kwargs`.

    The positional ones come in the order in which they can be given.
    """
    found: Dict[str, Parameter] = {}
    by_position, by_name, rest = True, True, None
    order: List[str] = []  # names that the first class passes on
    wanted: Optional[Set[str]] = None  # names that all of them pass on; None for any
    for base, is_delegate in _lineage(cls):
        if "__init__" not in vars(base):
            continue
        own = _own_parameters(vars(base)["__init__"])
        for p in own:
            is_positional = p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            if p.name in found:  # given by position, it would be given twice
                by_position &= not is_positional or found[p.name].kind is not p.KEYWORD_ONLY
            elif p.kind in _STARS or is_positional and is_delegate or wanted is not None and p.name not in wanted:
                continue
            elif by_position and is_positional:
                found[p.name] = p
            elif by_name:
                found[p.name] = p.replace(kind=p.KEYWORD_ONLY)
        by_position &= any(p.kind is p.VAR_POSITIONAL for p in own)
        rest = next((p for p in own if p.kind is p.VAR_KEYWORD), None)
        by_name = rest is not None
        names = _shared_names(rest.annotation) if rest is not None else None
        if names is not None:
            order = order or [name for name in names if name not in found]
            wanted = set(names) if wanted is None else wanted.intersection(names)
        if not by_name and not by_position:
            break
    rank = {name: i for i, name in enumerate(order, 1)}
    parameters = sorted(found.values(), key=lambda p: (p.kind, rank.get(p.name, 0) if p.kind is p.KEYWORD_ONLY else 0))
    return parameters + [rest] if rest is not None and wanted is None else parameters


def _merged_docstring(cls: Type[SharedArguments]) -> str:
    """Returns the docstring of a class, completed by shared sections and by all arguments."""
    texts = [vars(base).get("__doc__") for base, _ in _lineage(cls)]
    lineage = [_sections(text.own if isinstance(text, _Docstring) else text) for text in texts if text]
    own, entries = lineage[0], {}
    for sections in reversed(lineage):
        entries.update({name: name + text for name, text in _ENTRY.findall(sections.get("Args", ""))})
    names = [_STARS.get(p.kind, "") + p.name for p in merged_parameters(cls)]
    own["Args"] = "\n".join("    " + entries[name] for name in names if name in entries)
    for title in cls.shared_sections:
        own.setdefault(title, next((sections[title] for sections in lineage if title in sections), ""))
    rank = {title: i for i, title in enumerate(("", *cls.shared_sections))}
    titles = sorted(filter(own.get, own), key=lambda title: rank.get(title, len(rank)))
    return "\n\n".join(f"{title}:\n{own[title]}" if title else own[title] for title in titles)


def _sections(text: str) -> Dict[str, str]:
    """Splits a docstring into its sections by title; what comes before the first has the title `""`."""
    first, *rest = _TITLE.split(inspect.cleandoc(text))
    return {"": first.rstrip(), **{title: body.strip("\n") for title, body in zip(rest[::2], rest[1::2])}}
