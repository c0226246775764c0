"""Settings of training: types, defaults, checks and JSON files. `algorithms` adds the settings of each algorithm."""
import dataclasses
import json
import reprlib
import typing
from typing import Any, Callable, ClassVar, Mapping, Optional, Sequence, TypeVar, Union

from meta_policy_search.actors.stacked_mlp import NONLINEARITIES
from meta_policy_search.envs import find_env
from meta_policy_search.samplers import RayOptions
from meta_policy_search.samplers.ray.connection import check_parallel
from meta_policy_search.utils.checks import (
    check_choice,
    check_fraction,
    check_int_at_least,
    check_positive,
    check_positive_int,
    did_you_mean,
)
from meta_policy_search.utils.log_outputs import check_formats
from meta_policy_search.utils.serializable import argument_names
from meta_policy_search.utils.snapshotter import MODES

SMOKE = {"n_itr": 2, "meta_batch_size": 2, "rollouts_per_meta_task": 2, "envs_per_task": None, "max_path_length": 10,
         "hidden_sizes": (8,)}
"""Settings of a smoke test, which takes seconds and only checks that everything works."""

NONLINEARITY_NAMES = sorted(NONLINEARITIES)
PARALLEL_SETTINGS = ("parallel", "ray_address", "ray_workers", "ray_cpus_per_worker")  # no effect on data

ConfigT = TypeVar("ConfigT", bound="RunConfig")


Check = Callable[[str, Any], Any]
"""Function that receives the name and the value of a setting and raises `TypeError` or `ValueError`."""


def setting(default: Any, help: str, choices: Optional[Sequence[str]] = None, check: Optional[Check] = None) -> Any:
    """Declares a setting of training: a field of a settings class and a command line flag.

    A subclass changes the default of a setting by `NAME: TYPE = VALUE`.

    Args:
        default: default value.
        help: description with unit, for `--help`.
        choices: valid values; default None, any value.
        check: checks the range of the value, or of each value of a list, if it is not None. Default None: no check.
    """
    help += "" if choices is None else f"; one of {', '.join(choices)}"
    return dataclasses.field(default_factory=lambda: default,
                             metadata={"help": help, "choices": choices, "check": check})


def check_count(name: str, value: Any) -> None:
    """Raises an error unless `value` is an integer of at least 0."""
    check_int_at_least(name, value, 0)


def check_from_0_to_1(name: str, value: Any) -> None:
    """Raises an error unless `value` is a number in [0, 1]."""
    check_fraction(name, value, low_open=False)


def declared(config_class: type, name: str) -> Mapping[str, Any]:
    """Returns the arguments `help`, `choices` and `check` with which a setting was declared."""
    fields = (vars(base).get("__dataclass_fields__", {}).get(name) for base in config_class.__mro__)
    return next(field.metadata for field in fields if field is not None and field.metadata)


_TYPE_NAMES = {bool: "a bool", str: "a string", int: "an integer", float: "a number", tuple: "a list",
               dict: "an object (names and values)", type(None): "none"}


def _as_type(name: str, value: Any, kind: Any) -> Any:
    """Converts a value from JSON or from a flag to the type of its setting; raises `TypeError` for other types."""
    container, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind == tuple[str, ...] and isinstance(value, str):
        return (value,)
    if container is tuple and isinstance(value, (list, tuple)):
        return tuple(_as_type(f"{name}[{i}]", item, inner[0]) for i, item in enumerate(value))
    accepted = inner if container is Union else (container or kind,)
    if float in accepted and type(value) is int:
        return float(value)
    if type(value) not in accepted:
        expected = " or ".join(_TYPE_NAMES[option] for option in accepted)
        raise TypeError(f"{name}: expected {expected}, got {reprlib.repr(value)}")
    return value


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """The settings of all algorithms.

    Raises:
        TypeError: a setting has the wrong type. Lists are accepted for tuples, and integers for floats.
        ValueError: a setting is out of range, or not one of its choices.
    """

    algorithm: ClassVar[str]  # name in `algorithms.CONFIGS`, or MODULE:NAME of the user's class
    smoke: ClassVar[Mapping[str, Any]] = SMOKE  # the settings of `--smoke`

    env: str = setting("HalfCheetahRandDirecEnv", "name of the environment (listed by the command envs), or "
                       "MODULE:NAME of a class or function that returns an environment")
    env_kwargs: dict[str, Any] = setting({}, "arguments of the environment, as a JSON object")
    seed: int = setting(1, "root seed of all random generators, at least 0", check=check_count)
    n_itr: int = setting(100, "number of iterations, with one meta-update each", check=check_positive_int)
    log_formats: tuple[str, ...] = setting(("line", "log", "csv"), "outputs, see utils.logger; csv is required")
    snapshot_mode: str = setting("last_gap", "which snapshots to keep", MODES)
    snapshot_gap: int = setting(100, "iterations between snapshots in the modes gap and last_gap",
                                check=check_positive_int)
    plot_gap: int = setting(20, "iterations between updates of the learning curve; 0: only at the end",
                            check=check_count)
    progress_bar: bool = setting(True, "show a progress bar if standard error is a terminal")
    parallel: Union[bool, str] = setting(False, "step environments in worker processes; 'ray': in workers on a Ray "
                                         "cluster, which is started on this machine if none is running")
    ray_address: Optional[str] = setting(None, "host:port of the Ray cluster, or auto; none: RAY_ADDRESS or, if that "
                                         "is not set, this machine")
    ray_workers: Optional[int] = setting(None, "number of Ray workers; none: the number of CPUs",
                                         check=check_positive_int)
    ray_cpus_per_worker: Optional[float] = setting(None, "CPUs and threads of each Ray worker; none: 1",
                                                   check=check_positive)

    def __post_init__(self) -> None:
        """Checks types and choices, and converts lists to tuples and integers to floats."""
        types = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            name, how = field.name, declared(type(self), field.name)
            value = _as_type(name, vars(self)[name], types[name])
            if how["choices"] is not None and value is not None:
                check_choice(name, value, how["choices"])
            if how["check"] is not None:
                for each in value if isinstance(value, tuple) else (value,) * (value is not None):
                    how["check"](name, each)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "env", self.find_env())
        if "csv" not in check_formats(self.log_formats, "log_formats"):
            raise ValueError(f"log_formats: expected formats including 'csv', got {self.log_formats}")
        self.parallel_option()

    def find_env(self) -> str:
        """Returns the registered name of the environment; raises `ValueError` if it is unknown."""
        return find_env(self.env)

    def parallel_option(self) -> Union[bool, RayOptions]:
        """Returns the argument `parallel` of samplers; raises `ValueError` if Ray settings are given without Ray."""
        given = {name: vars(self)[name] for name in PARALLEL_SETTINGS[1:] if vars(self)[name] is not None}
        if self.parallel == "ray":
            return RayOptions(self.ray_address, self.ray_workers, self.ray_cpus_per_worker)
        if given:
            raise ValueError(f"{next(iter(given))}: expected no value without --parallel ray, got {given}")
        return check_parallel(self.parallel)


def make_config(config_class: type[ConfigT], settings: Mapping[str, Any]) -> ConfigT:
    """Builds the settings of a script.

    Args:
        config_class: settings class of the script.
        settings: values that differ from the defaults, by name.

    Raises:
        ValueError: a name is unknown, or a value is not one of its choices.
        TypeError: a setting has the wrong type.
    """
    known = [field.name for field in dataclasses.fields(config_class)]
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise ValueError(f"settings: expected names among {', '.join(known)}, got {', '.join(map(repr, unknown))}"
                         + did_you_mean(unknown[0], known))
    return config_class(**settings)


def arguments_for(cls: type, config: RunConfig, **others: Any) -> dict[str, Any]:
    """Returns arguments for a class: all settings with the name of an argument, overridden by `others`."""
    names = argument_names(cls)
    return {**{name: value for name, value in vars(config).items() if name in names}, **others}


def read_json(path: str) -> dict[str, Any]:
    """Reads an object from a JSON file.

    Raises:
        ValueError: the file is missing, or its content is not a JSON object.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = load_json(file.read())
    except (OSError, ValueError, RecursionError) as error:  # missing, invalid JSON, or nested too deeply
        raise ValueError(f"could not read {path}: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def load_json(text: str) -> Any:
    """Returns the value of a JSON text; raises `ValueError` if an object has two entries of the same name."""

    def to_dict(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"expected each name once, got {name!r} {names.count(name)} times")
        return dict(pairs)

    return json.loads(text, object_pairs_hook=to_dict)
