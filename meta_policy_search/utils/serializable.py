"""Objects that are copied and pickled by how they were built."""
from typing import Any, Mapping, TypeVar

from meta_policy_search.utils.signatures import SharedArguments, merged_parameters

S = TypeVar("S", bound="Serializable")


def check_own_pickle(obj: Any, state: Any, key: str, advice: str = "Build it anew from its arguments") -> None:
    """Raises `ValueError` unless the state of a pickled object has `key`, as those that this package writes have."""
    if not isinstance(state, Mapping) or key not in state:
        raise ValueError(f"{type(obj).__name__}: expected a pickle of this package, got one of other code, such as the "
                         f"public code of ProMP. {advice}")


class Serializable(SharedArguments):
    """Base class of objects that remember the arguments that they are built with, and are rebuilt from them.

    Pickling and copying keep these arguments alone; containers are remembered by reference. A subclass keeps what its
    objects learn by extending `__getstate__` and `__setstate__`::

        class Policy(Serializable):
            def __getstate__(self):
                return {"init_args": super().__getstate__(), "params": self.get_param_values()}

            def __setstate__(self, state):
                super().__setstate__(state["init_args"])
                self.set_params(state["params"])

    A subclass with a `__new__` of its own passes the arguments on: `super().__new__(cls, *args, **kwargs)`.
    """

    def quick_init(self, local_variables: Any) -> None:
        """Does nothing; subclasses of older code call it with `locals()` to have their arguments remembered."""

    def clone(self: S, **overrides: Any) -> S:
        """Returns a new object, built from the same arguments except for those given here.

        A policy's clone has new weights: copy them with `set_params`, or use `copy.deepcopy`.
        """
        args, kwargs = self._arguments_with(overrides)
        return type(self)(*args, **kwargs)

    def _arguments_with(self, overrides: Mapping[str, Any]) -> tuple[list, dict]:
        given_args, given_kwargs = self._given
        args, kwargs = list(given_args), {**given_kwargs, **overrides}
        positional = [p.name for p in merged_parameters(type(self)) if p.kind <= p.POSITIONAL_OR_KEYWORD]
        for position, name in enumerate(positional[: len(args)]):
            if name in overrides:
                args[position] = kwargs.pop(name)
        return args, kwargs

    def __getstate__(self) -> dict:
        """Returns the constructor's arguments: `{"args": tuple, "kwargs": dict}`."""
        args, kwargs = self._given
        return {"args": args, "kwargs": kwargs}

    def __setstate__(self, state: dict) -> None:
        check_own_pickle(self, state, "args")
        args, kwargs = self._given = state["args"], state["kwargs"]
        type(self).__init__(self, *args, **kwargs)
