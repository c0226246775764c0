"""The settings that scripts share, their types and defaults, and the files that hold settings."""
import dataclasses
import importlib
import json
import os
import reprlib
import typing
from typing import Any, ClassVar, Mapping, Optional, Sequence, TypeVar, Union

from meta_policy_search import baselines
from meta_policy_search.actors.stacked_mlp import NONLINEARITIES
from meta_policy_search.baselines import Baseline
from meta_policy_search.envs import available_envs
from meta_policy_search.samplers import RayOptions
from meta_policy_search.samplers.ray.connection import check_parallel
from meta_policy_search.utils.checks import check_choice, check_int_at_least, did_you_mean
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.serializable import argument_names
from meta_policy_search.utils.snapshotter import MODES

SMOKE = {"n_itr": 2, "meta_batch_size": 2, "rollouts_per_meta_task": 2, "envs_per_task": None, "max_path_length": 10,
         "hidden_sizes": (8,)}
"""Settings of a run that takes seconds and only tests that everything works."""

NONLINEARITY_NAMES = sorted(NONLINEARITIES)
BASELINES = sorted(set(baselines.__all__) - {Baseline.__name__})
PARALLEL_SETTINGS = ("parallel", "ray_address", "ray_workers", "ray_cpus_per_worker")  # the data are the same for all

ConfigT = TypeVar("ConfigT", bound="RunConfig")


def setting(default: Any, help: str, choices: Optional[Sequence[str]] = None) -> Any:
    """Declares a setting of an experiment, a field of its `Config` class.

    Args:
        default: its default.
        help: its meaning, with its unit.
        choices: its possible values.
    """
    help += "" if choices is None else f"; one of {', '.join(choices)}"
    return dataclasses.field(default_factory=lambda: default, metadata={"help": help, "choices": choices})


_TYPE_NAMES = {bool: "a bool", str: "a string", int: "an integer", float: "a number", tuple: "a list",
               dict: "an object (names and values)", type(None): "none"}


def _as_type(name: str, value: Any, kind: Any) -> Any:
    """Converts a value from JSON or from a flag to the type of its setting; raises `TypeError` if it has another."""
    container, inner = typing.get_origin(kind), typing.get_args(kind)
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
    """The settings of every script that trains.

    Raises:
        TypeError: a setting has the wrong type; lists are accepted as tuples, and integers as floats.
        ValueError: a setting is none of its choices, which the message lists. The classes that receive numbers check
            their ranges.
    """

    smoke: ClassVar[Mapping[str, Any]] = SMOKE  # the settings that `--smoke` sets

    env: str = setting("HalfCheetahRandDirecEnv", "class of the environment", available_envs())
    env_kwargs: dict[str, Any] = setting({}, "arguments of that class, as a JSON object")
    seed: int = setting(1, "root of all random numbers, at least 0")
    n_itr: int = setting(1001, "meta-updates")
    log_formats: tuple[str, ...] = setting(("line", "log", "csv"), "outputs, see utils.logger; csv is needed")
    snapshot_mode: str = setting("last_gap", "which snapshots to keep", MODES)
    snapshot_gap: int = setting(100, "iterations between those kept by the modes gap and last_gap")
    plot_gap: int = setting(20, "iterations between two drawings of the learning curve; 0 for one at the end")
    progress_bar: bool = setting(True, "show a progress bar if standard error is a terminal")
    parallel: Union[bool, str] = setting(False, "step environments in worker processes; 'ray' for workers on a Ray "
                                         "cluster, started on this machine if there is none")
    ray_address: Optional[str] = setting(None, "host:port of the cluster, or auto; none for RAY_ADDRESS or, if that "
                                         "is not set, this machine")
    ray_workers: Optional[int] = setting(None, "workers on Ray; none for as many as there are CPUs")
    ray_cpus_per_worker: Optional[float] = setting(None, "CPUs, and threads, of each worker on Ray; none for 1")

    def __post_init__(self) -> None:
        """Checks types and names."""
        types = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value = _as_type(field.name, getattr(self, field.name), types[field.name])
            if field.metadata["choices"] is not None and value is not None:
                check_choice(field.name, value, field.metadata["choices"])
            object.__setattr__(self, field.name, value)
        check_int_at_least("plot_gap", self.plot_gap, 0)
        check_int_at_least("snapshot_gap", self.snapshot_gap, 1)
        if "csv" not in self.log_formats:
            raise ValueError(f"log_formats: expected 'csv' among them, got {self.log_formats}")
        self.parallel_option()

    def parallel_option(self) -> Union[bool, RayOptions]:
        """Returns the argument `parallel` of samplers."""
        given = {name: getattr(self, name) for name in PARALLEL_SETTINGS[1:] if getattr(self, name) is not None}
        if self.parallel == "ray":
            return RayOptions(self.ray_address, self.ray_workers, self.ray_cpus_per_worker)
        if given:
            raise ValueError(f"{next(iter(given))}: expected none without --parallel ray, got {given}")
        return check_parallel(self.parallel)


@dataclasses.dataclass(frozen=True)
class MetaConfig(RunConfig):
    """The settings of every script that meta-learns; raises like `RunConfig`."""

    observe_task: bool = setting(False, "append the task to the observations of the policy, which gives an upper bound")
    normalization_scale: float = setting(10.0, "bound of the policy's actions, which are scaled to the environment's")
    meta_batch_size: int = setting(40, "tasks per iteration")
    rollouts_per_meta_task: int = setting(20, "paths per task, each before and after every adaptation step")
    max_path_length: int = setting(100, "steps of a path, at most")
    envs_per_task: Optional[int] = setting(None, "paths of a task that are sampled at the same time; none for all")
    baseline: str = setting("LinearFeatureBaseline", "class of the baseline of the rewards", BASELINES)
    discount: float = setting(0.99, "discount factor per step, in [0, 1]")
    gae_lambda: float = setting(1.0, "lambda of the advantage estimation, in [0, 1]")
    normalize_adv: bool = setting(True, "give each task's advantages mean zero and standard deviation one")
    positive_adv: bool = setting(False, "shift each task's advantages to above zero")
    hidden_sizes: tuple[int, ...] = setting((64, 64), "units of each hidden layer of the policy")
    hidden_nonlinearity: Optional[str] = setting("tanh", "of the hidden layers, or none", NONLINEARITY_NAMES)
    output_nonlinearity: Optional[str] = setting(None, "of the policy's output, or none", NONLINEARITY_NAMES)
    learn_std: bool = setting(True, "learn the policy's standard deviation, where actions are continuous")
    init_std: float = setting(1.0, "initial standard deviation; actions span +- normalization_scale")
    min_std: float = setting(1e-6, "smallest standard deviation, in the same unit")
    inner_lr: float = setting(0.1, "step size of adaptation")
    num_inner_grad_steps: int = setting(1, "adaptation steps per iteration; 0 trains one policy for all tasks")
    trainable_inner_step_size: bool = setting(False, "also learn a step size for each of the policy's parameters")
    first_order: bool = setting(False, "leave out second derivatives")
    diagnostics: bool = setting(False, "log the noise of each meta-gradient and its change by adaptation")


@dataclasses.dataclass(frozen=True)
class FirstOrderSettings:
    """The settings of meta-updates that take first-order steps."""

    learning_rate: float = setting(1e-3, "step size on the meta-objective")
    learning_rate_schedule: str = setting("constant", "constant, or linear decay to 0 after n_itr iterations",
                                          ("constant", "linear"))
    meta_optimizer: str = setting("Adam", "optimizer of the meta-objective, from tf.train",
                                  ("Adam", "GradientDescent", "RMSProp", "Adagrad"))


@dataclasses.dataclass(frozen=True)
class FirstOrderConfig(FirstOrderSettings, MetaConfig):
    """The settings of algorithms whose meta-update takes first-order steps."""


@dataclasses.dataclass(frozen=True)
class ExploringConfig(MetaConfig):
    """The settings of algorithms with a choice of inner objectives and with E-MAML's exploration term."""

    inner_type: str = setting("log_likelihood", "loss of the adaptation step",
                              ("likelihood_ratio", "log_likelihood", "dice"))
    exploration: bool = setting(False, "add the exploration term of E-MAML")
    exploration_coeff: Optional[float] = setting(None, "coefficient of the exploration term, at least 0; none for one "
                                                 "over the number of samples")


def make_config(config_class: type[ConfigT], settings: Mapping[str, Any]) -> ConfigT:
    """Returns the settings of a script, from those that differ from its defaults.

    Raises:
        ValueError: there is no such setting (the message lists those that exist), or a value is none of its choices.
        TypeError: a setting has the wrong type.
    """
    known = [field.name for field in dataclasses.fields(config_class)]
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise ValueError(f"unknown setting {', '.join(map(repr, unknown))}; there are {', '.join(known)}"
                         + did_you_mean(unknown[0], known))
    return config_class(**settings)


def arguments_for(cls: type, config: RunConfig, **others: Any) -> dict[str, Any]:
    """Returns arguments for a class: the settings that it takes under the same name, overridden by `others`."""
    names = argument_names(cls)
    return {**{name: value for name, value in vars(config).items() if name in names}, **others}


def find_script(name: str) -> Any:
    """Returns the module of a script that trains.

    Args:
        name: the name of its file in this folder, without `.py`.

    Raises:
        ValueError: there is no such script.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    if f"{name}.py" in os.listdir(here):
        module = importlib.import_module(f"{__package__}.{name}" if __package__ else name)
        if hasattr(module, "build"):
            return module
    raise ValueError(f"script: expected the name of a script that trains in {here}, got {name!r}")


def read_json(path: str) -> dict[str, Any]:
    """Returns the object in a JSON file.

    Raises:
        ValueError: there is no such file, or its content is not a JSON object.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError, RecursionError) as error:  # no such file, not JSON, or nested too deep
        raise ValueError(f"could not read {path}: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def write_json(path: str, content: Mapping[str, Any]) -> None:
    """Writes an object to a JSON file, atomically."""
    write_text(path, json.dumps(content, indent=2) + "\n")
