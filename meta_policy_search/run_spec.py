"""The record of a run: its parts with their constructor arguments, and the settings that `train` was called with.

A snapshot contains the record itself; `params.json` contains it as JSON types.
"""
import dataclasses
import inspect
import reprlib
from typing import Any, Container, Dict, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.compat import WrappingEnv, name_of_env
from meta_policy_search.settings import SUPPLIED, check_names, differences, settings_of
from meta_policy_search.utils.serializable import (
    Configurable,
    constructor_signature,
    equals_default,
    given_arguments,
    name_of_callable,
)

FIXED_OPTIONS = ("eval_every", "eval_tasks")
"""Settings without effect on the result that cannot be changed when a run is resumed."""

_MAX_NUMBERS = 100  # of an array in `params.json`; larger arrays are abbreviated


class RunSpec(NamedTuple):
    """The record of a run.

    If two parts have a setting of the same name, the later part determines the recorded value.
    """

    algorithm: str
    env: str
    classes: Dict[str, type]  # of the parts: environment, its wrappers, sample processor, policy, algorithm, ...
    arguments: Dict[str, Dict[str, Any]]  # of their constructor calls, by name; only of classes that record them
    settings: Mapping[str, Any] = {}  # of `train`, with an effect on the result, as JSON types
    options: Mapping[str, Any] = {}  # of `train`, without effect on the result (`types.WithoutEffect`)
    given: Tuple[str, ...] = ()  # names of the settings that the user gave

    def build(self, part: str) -> Any:
        """Builds a new object with the arguments of a part."""
        bound = inspect.BoundArguments(constructor_signature(self.classes[part]), self.arguments[part])
        return self.classes[part](*bound.args, **bound.kwargs)

    def describe(self) -> Dict[str, Any]:
        """Returns the entries `algorithm`, `settings`, `options` and `given` of `params.json`.

        The trainer contributes options only, because its `num_inner_grad_steps` repeats that of the algorithm.
        """
        settings, options = self._describe({"env", "trainer"})[0], self._describe({"env"})[1]
        defaults = constructor_signature(self.classes["env"]).parameters
        settings.update(env=self.env, env_kwargs=as_json({
            name: value for name, value in self.arguments.get("env", {}).items()
            if not equals_default(value, defaults[name].default)}))
        return {"algorithm": self.algorithm, "settings": {**settings, **self.settings},
                "options": {**options, **self.options}, "given": list(self.given)}

    def differences(self, other: "RunSpec", names: Tuple[str, str]) -> str:
        """Returns the classes and arguments of the parts that differ and affect the result; empty if there are none.

        Args:
            other: another record.
            names: what this and the other record belong to, such as `("snapshot", "trainer")`.
        """
        return differences(self._numbers_depend_on(), other._numbers_depend_on(), names)

    def _numbers_depend_on(self) -> Dict[str, Any]:
        classes = [cls.__name__ for name, cls in self.classes.items() if name != "trainer"]
        return {"classes": classes, **self._describe({"trainer"})[0]}

    def _describe(self, omitted: Container[str]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """Returns the arguments of parts, defaults included, as JSON types: settings, and options without effect."""
        found: Tuple[Dict[str, Any], Dict[str, Any]] = {}, {}
        for part, arguments in self.arguments.items():
            if part not in omitted:
                values = dict(arguments)
                for parameter in constructor_signature(self.classes[part]).parameters.values():
                    if parameter.kind is parameter.VAR_KEYWORD:
                        values.update(values.pop(parameter.name, {}))
                for name, setting in settings_of([self.classes[part]]).items():
                    value = values.get(name, setting.default)
                    if value is not inspect.Parameter.empty:
                        found[not setting.affects_result][name] = as_json(value)
        return found

    def replaced(self, options: Mapping[str, Any]) -> "RunSpec":
        """Returns the record with other options, for example to resume a run with other values of `parallel`.

        Raises:
            TypeError: the run has no such setting.
            ValueError: a setting with an effect on the result differs from that of the run.
        """
        described, new = self.describe(), as_json(dict(options))
        settings, recorded = described["settings"], described["options"]
        check_names(options, {*settings, *recorded}, "of the run")
        if differing := differences(settings, new, ("run", "now")):
            raise ValueError(f"settings differ: {differing}. A resumed run keeps its settings")
        evaluations = {name: recorded[name] for name in FIXED_OPTIONS if name in recorded}
        if differing := differences(evaluations, new, ("run", "now")):
            raise ValueError(f"{differing}: a resumed run keeps its evaluations. In Python, pass "
                             "callbacks=[EvalCallback(...)]")
        changed = {name: value for name, value in new.items() if name in recorded}
        replaced = {name: value for name, value in options.items() if name in recorded}
        return self.with_arguments(replaced)._replace(options={**recorded, **changed})

    def with_arguments(self, new: Mapping[str, Any]) -> "RunSpec":
        """Returns the record with other arguments of all parts that accept them."""
        return self._replace(arguments={name: replace_arguments(self.classes[name], arguments, new)
                                        for name, arguments in self.arguments.items()})


def spec_of(algorithm: str, env: Any, rebuilt: Sequence[str] = (), **parts: Any) -> RunSpec:
    """Returns the record of the parts of a run.

    Args:
        algorithm: name of the algorithm.
        env: the environment; the environments that it wraps are recorded, too.
        rebuilt: names of the parts that are built again when a snapshot is loaded: all their arguments are recorded, of
            other parts only the settings.
        **parts: the other parts, in the order of the record.
    """
    envs = [env]
    while isinstance(envs[-1], WrappingEnv):
        envs.append(envs[-1].wrapped_env)
    found = {f"wrapper_{i}" if i else "env": each for i, each in enumerate(reversed(envs))}
    found.update(parts)
    arguments = {name: given_arguments(part) for name, part in found.items() if isinstance(part, Configurable)}
    return RunSpec(algorithm, name_of_env(env), {name: type(part) for name, part in found.items()}, {
        name: {key: value for key, value in given.items() if name in ("env", *rebuilt) or key not in SUPPLIED}
        for name, given in arguments.items()})


def replace_arguments(cls: type, arguments: Mapping[str, Any], new: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns arguments of a constructor, by name, with other values; ignores names that it does not accept."""
    found = dict(arguments)
    for name, parameter in constructor_signature(cls).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD and name in found:
            found[name] = {**found[name], **{key: new[key] for key in found[name].keys() & new.keys()}}
        elif name in new:
            found[name] = new[name]
    return found


def as_json(value: Any) -> Any:
    """Converts a setting to JSON types.

    Functions and classes become their names, dataclasses dicts, other objects their `repr`, or the name of their class
    if it defines no `__repr__`.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(as_json, value), key=str)
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return as_json(dataclasses.asdict(value))
    if isinstance(value, (np.generic, np.ndarray)) and value.size <= _MAX_NUMBERS:
        return value.tolist()
    if isinstance(value, Configurable):  # its arguments, because some objects choose other values when they are used
        defaults = constructor_signature(type(value)).parameters
        given = [f"{name}={name_of_callable(each) or repr(each)}" for name, each in given_arguments(value).items()
                 if not equals_default(each, defaults[name].default)]
        return f"{type(value).__name__}({', '.join(given)})".removesuffix("()")
    if type(value).__repr__ is object.__repr__:
        return type(value).__name__
    return name_of_callable(value) or reprlib.repr(value)
