"""Settings of the training scripts: types, defaults and JSON files."""
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
"""Settings of a smoke test, which takes seconds and only checks that everything works."""

NONLINEARITY_NAMES = sorted(NONLINEARITIES)
BASELINES = sorted(set(baselines.__all__) - {Baseline.__name__})
PARALLEL_SETTINGS = ("parallel", "ray_address", "ray_workers", "ray_cpus_per_worker")  # no effect on data

ConfigT = TypeVar("ConfigT", bound="RunConfig")


def setting(default: Any, help: str, choices: Optional[Sequence[str]] = None) -> Any:
    """Declares a setting of an experiment: a field of its `Config` class and a command line flag.

    Args:
        default: default value.
        help: description with unit, for `--help`.
        choices: valid values; default None, any value.
    """
    help += "" if choices is None else f"; one of {', '.join(choices)}"
    return dataclasses.field(default_factory=lambda: default, metadata={"help": help, "choices": choices})


_TYPE_NAMES = {bool: "a bool", str: "a string", int: "an integer", float: "a number", tuple: "a list",
               dict: "an object (names and values)", type(None): "none"}


def _as_type(name: str, value: Any, kind: Any) -> Any:
    """Converts a value from JSON or from a flag to the type of its setting; raises `TypeError` for other types."""
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
    """The settings of all training scripts.

    Raises:
        TypeError: a setting has the wrong type. Lists are accepted for tuples, and integers for floats.
        ValueError: a setting is not one of its choices; the message lists them. Ranges of numbers are checked by the
            classes that receive them.
    """

    smoke: ClassVar[Mapping[str, Any]] = SMOKE  # the settings of `--smoke`

    env: str = setting("HalfCheetahRandDirecEnv", "class of the environment", available_envs())
    env_kwargs: dict[str, Any] = setting({}, "arguments of the environment class, as a JSON object")
    seed: int = setting(1, "root seed of all random generators, at least 0")
    n_itr: int = setting(1001, "number of iterations, with one meta-update each")
    log_formats: tuple[str, ...] = setting(("line", "log", "csv"), "outputs, see utils.logger; csv is required")
    snapshot_mode: str = setting("last_gap", "which snapshots to keep", MODES)
    snapshot_gap: int = setting(100, "iterations between snapshots in the modes gap and last_gap")
    plot_gap: int = setting(20, "iterations between updates of the learning curve; 0: only at the end")
    progress_bar: bool = setting(True, "show a progress bar if standard error is a terminal")
    parallel: Union[bool, str] = setting(False, "step environments in worker processes; 'ray': in workers on a Ray "
                                         "cluster, which is started on this machine if none is running")
    ray_address: Optional[str] = setting(None, "host:port of the Ray cluster, or auto; none: RAY_ADDRESS or, if that "
                                         "is not set, this machine")
    ray_workers: Optional[int] = setting(None, "number of Ray workers; none: the number of CPUs")
    ray_cpus_per_worker: Optional[float] = setting(None, "CPUs and threads of each Ray worker; none: 1")

    def __post_init__(self) -> None:
        """Checks types and choices, and converts lists to tuples and integers to floats."""
        types = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value = _as_type(field.name, getattr(self, field.name), types[field.name])
            if field.metadata["choices"] is not None and value is not None:
                check_choice(field.name, value, field.metadata["choices"])
            object.__setattr__(self, field.name, value)
        check_int_at_least("plot_gap", self.plot_gap, 0)
        check_int_at_least("snapshot_gap", self.snapshot_gap, 1)
        if "csv" not in self.log_formats:
            raise ValueError(f"log_formats: expected formats including 'csv', got {self.log_formats}")
        self.parallel_option()

    def parallel_option(self) -> Union[bool, RayOptions]:
        """Returns the argument `parallel` of samplers; raises `ValueError` if Ray settings are given without Ray."""
        given = {name: getattr(self, name) for name in PARALLEL_SETTINGS[1:] if getattr(self, name) is not None}
        if self.parallel == "ray":
            return RayOptions(self.ray_address, self.ray_workers, self.ray_cpus_per_worker)
        if given:
            raise ValueError(f"{next(iter(given))}: expected no value without --parallel ray, got {given}")
        return check_parallel(self.parallel)


@dataclasses.dataclass(frozen=True)
class MetaConfig(RunConfig):
    """The settings of all meta-learning scripts; raises the same errors as `RunConfig`."""

    observe_task: bool = setting(False, "append the task to the policy's observations (oracle, an upper bound)")
    normalization_scale: float = setting(10.0, "bound of the policy's actions, which are scaled to the environment's")
    meta_batch_size: int = setting(40, "tasks per iteration")
    rollouts_per_meta_task: int = setting(20, "paths per task, before adaptation and after each adaptation step")
    max_path_length: int = setting(100, "maximum number of steps of a path")
    envs_per_task: Optional[int] = setting(None, "environments per task that step at the same time; none: one per path")
    baseline: str = setting("LinearFeatureBaseline", "class of the reward baseline", BASELINES)
    discount: float = setting(0.99, "discount factor per step, in [0, 1]")
    gae_lambda: float = setting(1.0, "lambda of generalized advantage estimation, in [0, 1]")
    normalize_adv: bool = setting(True, "normalize advantages per task to mean 0 and standard deviation 1")
    positive_adv: bool = setting(False, "shift advantages per task to positive values")
    hidden_sizes: tuple[int, ...] = setting((64, 64), "units of each hidden layer of the policy")
    hidden_nonlinearity: Optional[str] = setting("tanh", "activation of the hidden layers, or none", NONLINEARITY_NAMES)
    output_nonlinearity: Optional[str] = setting(None, "activation of the policy's output, or none", NONLINEARITY_NAMES)
    learn_std: bool = setting(True, "learn the standard deviation of the policy (continuous actions)")
    init_std: float = setting(1.0, "initial standard deviation; actions span +- normalization_scale")
    min_std: float = setting(1e-6, "minimum standard deviation, in the same unit")
    inner_lr: float = setting(0.1, "step size of adaptation")
    num_inner_grad_steps: int = setting(1, "adaptation steps per iteration; 0 trains one policy for all tasks")
    trainable_inner_step_size: bool = setting(False, "learn one adaptation step size per policy parameter")
    first_order: bool = setting(False, "ignore second derivatives")
    adapt_params: tuple[str, ...] = setting(("all",), "parameters that adaptation changes: all, head, body, context "
                                            "or patterns of their names")
    context_dim: int = setting(0, "context parameters of the policy, which adaptation changes")
    diagnostics: bool = setting(False, "log gradient diagnostics: noise of the meta-gradient, effect of adaptation")


@dataclasses.dataclass(frozen=True)
class FirstOrderSettings:
    """The settings of first-order meta-updates."""

    learning_rate: float = setting(1e-3, "learning rate of the meta-optimizer")
    learning_rate_schedule: str = setting("constant", "schedule: constant, or linear decay to 0 over n_itr iterations",
                                          ("constant", "linear"))
    entropy_coef: float = setting(0.0, "coefficient of the mean entropy of the adapted policies, nats")
    max_grad_norm: Optional[float] = setting(None, "largest norm of the meta-gradient; none for no limit")
    meta_optimizer: str = setting("Adam", "optimizer of the meta-objective, from tf.train",
                                  ("Adam", "GradientDescent", "RMSProp", "Adagrad"))


@dataclasses.dataclass(frozen=True)
class FirstOrderConfig(FirstOrderSettings, MetaConfig):
    """The settings of algorithms whose meta-update takes first-order steps."""


@dataclasses.dataclass(frozen=True)
class ExploringConfig(MetaConfig):
    """The settings of algorithms with a selectable inner loss and the exploration term of E-MAML."""

    inner_type: str = setting("log_likelihood", "loss of the adaptation step",
                              ("likelihood_ratio", "log_likelihood", "dice", "taypo"))
    exploration: bool = setting(False, "add the exploration term of E-MAML")
    exploration_coeff: Optional[float] = setting(None, "coefficient of the exploration term, at least 0; none: 1 / "
                                                 "number of samples")


def make_config(config_class: type[ConfigT], settings: Mapping[str, Any]) -> ConfigT:
    """Builds the settings of a script.

    Args:
        config_class: settings class of the script.
        settings: values that differ from the defaults, by name.

    Raises:
        ValueError: a name is unknown (the message lists the valid names), or a value is not one of its choices.
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


def find_script(name: str) -> Any:
    """Imports a training script and returns its module.

    Args:
        name: name of its file in this folder, without `.py`.

    Raises:
        ValueError: the script does not exist, or it is not a training script.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    if f"{name}.py" in os.listdir(here):
        module = importlib.import_module(f"{__package__}.{name}" if __package__ else name)
        if hasattr(module, "build"):
            return module
    raise ValueError(f"script: expected the name of a training script in {here}, got {name!r}")


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


def write_json(path: str, content: Mapping[str, Any]) -> None:
    """Writes an object to a JSON file atomically."""
    write_text(path, json.dumps(content, indent=2) + "\n")
