"""What the experiments share: settings from the command line and from files, run folders, and going on with a run.

A script states what is its own (its settings and its algorithm) and hands both to `run`. Settings come from, each
overriding the one before: the defaults of the script, `--config_file`, `--smoke`, flags.

A run folder holds `params.json` (settings, command, versions, git revision), `progress.csv`, `log.txt`, snapshots,
`learning_curve.png` and, with the setting `diagnostics`, `diagnostics.png`.

Nothing here loads TensorFlow before a trainer is built, so that `--help` and mistakes take no time.
"""
import argparse
import dataclasses
import datetime
import difflib
import importlib
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
import typing
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Mapping,
    NamedTuple,
    NoReturn,
    Optional,
    Sequence,
    TypeVar,
    Union,
)

from meta_policy_search import __version__, baselines
from meta_policy_search.actors.nonlinearities import NONLINEARITIES
from meta_policy_search.baselines import Baseline
from meta_policy_search.envs import MetaEnv, available_envs, make_env, normalize
from meta_policy_search.envs.mujoco_envs.engines.factory import chosen_engine
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.plotting import mean_gain, plot_diagnostics, plot_learning_curve, read_progress
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler, RayOptions
from meta_policy_search.samplers.executors.errors import EnvWorkerError
from meta_policy_search.samplers.ray.options import check_parallel
from meta_policy_search.utils import logger
from meta_policy_search.utils.checks import check_bool, check_choice, check_int_at_least
from meta_policy_search.utils.cores import available_cores
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.snapshotter import (
    MODES,
    SnapshotError,
    check_same_version,
    holds_snapshot,
    list_snapshots,
    load_snapshot,
)
from meta_policy_search.utils.utils import set_seed

if TYPE_CHECKING:
    from meta_policy_search.meta_algos import MAMLAlgo
    from meta_policy_search.meta_trainer import Trainer
    from meta_policy_search.policies import MetaPolicy

SMOKE = {
    "n_itr": 2,
    "meta_batch_size": 2,
    "rollouts_per_meta_task": 2,
    "envs_per_task": None,
    "max_path_length": 10,
    "hidden_sizes": (8,),
}
"""Settings of a run that takes seconds and learns nothing: it shows that everything works."""

BASELINES = sorted(set(baselines.__all__) - {Baseline.__name__})
PARAMS_FILE = "params.json"
PARALLEL_SETTINGS = ("parallel", "ray_address", "ray_workers", "ray_cpus_per_worker")  # the data are the same for all
_SHOWING_SETTINGS = ("plot_gap", "progress_bar")
_PICTURES = ("learning_curve.png", "diagnostics.png")
INTERRUPTED = 130  # exit status after Ctrl-C, as shells have it

ConfigT = TypeVar("ConfigT", bound="RunConfig")


# Settings --------------------------------------------------------------------------------------------------------


def setting(default: Any, help: str, choices: Optional[Sequence[str]] = None) -> Any:
    """Declares a setting of an experiment, a field of its `Config`.

    Args:
        default: what it is if nothing is said.
        help: what it means, with its unit.
        choices: the values that it can have.
    """
    help += "" if choices is None else f"; one of {', '.join(choices)}"
    return dataclasses.field(default_factory=lambda: default, metadata={"help": help, "choices": choices})


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """The settings that all runs have, whatever is trained.

    Raises:
        TypeError: a setting of the wrong type; lists are taken for tuples, and integers for floats.
        ValueError: a name that does not exist; lists those that do. Ranges are checked by the classes that take the
            numbers.
    """

    env: str = setting("HalfCheetahRandDirecEnv", "class of the environment", available_envs())
    env_kwargs: dict[str, Any] = setting({}, "arguments of that class, as a JSON object")
    seed: int = setting(1, "root of all random numbers, at least 0")
    n_itr: int = setting(1001, "meta-updates")
    log_formats: tuple[str, ...] = setting(("line", "log", "csv"), "outputs, see utils.logger; csv is needed")
    snapshot_mode: str = setting("last_gap", "which snapshots to keep", MODES)
    snapshot_gap: int = setting(100, "iterations between those kept by the modes gap and last_gap")
    plot_gap: int = setting(20, "iterations between two drawings of the learning curve; 0 for one at the end")
    progress_bar: bool = setting(True, "show how far training is, where standard error is a terminal")
    parallel: Union[bool, str] = setting(False, "step environments in worker processes; 'ray' for workers on a Ray "
                                         "cluster, started on this machine if there is none")
    ray_address: Optional[str] = setting(None, "host:port of the cluster, or auto; none for RAY_ADDRESS, else this "
                                         "machine")
    ray_workers: Optional[int] = setting(None, "workers on Ray; none for as many as there are CPUs")
    ray_cpus_per_worker: Optional[float] = setting(None, "CPUs, and threads, of each worker on Ray; none for 1")

    def __post_init__(self) -> None:
        """Checks types and names."""
        for name, kind in typing.get_type_hints(type(self)).items():
            object.__setattr__(self, name, _conform(name, getattr(self, name), kind))
        for field in dataclasses.fields(self):
            choices, value = field.metadata["choices"], getattr(self, field.name)
            if choices is not None and value is not None:
                check_choice(field.name, value, choices)
        check_int_at_least("plot_gap", self.plot_gap, 0)
        if "csv" not in self.log_formats:
            raise ValueError(f"log_formats: expected 'csv' among them, got {self.log_formats}")
        self.parallel_option()

    def parallel_option(self) -> Union[bool, RayOptions]:
        """Returns what samplers take for `parallel`."""
        given = {name: getattr(self, name) for name in PARALLEL_SETTINGS[1:] if getattr(self, name) is not None}
        if self.parallel == "ray":
            return RayOptions(self.ray_address, self.ray_workers, self.ray_cpus_per_worker)
        if given:
            raise ValueError(f"{next(iter(given))}: expected none without --parallel ray, got {given}")
        return check_parallel(self.parallel)


@dataclasses.dataclass(frozen=True)
class Config(RunConfig):
    """The settings that all experiments in meta-learning have; raises like `RunConfig`."""

    normalization_scale: float = setting(10.0, "bound of the policy's actions, which the environment's are scaled to")
    meta_batch_size: int = setting(40, "tasks per iteration")
    rollouts_per_meta_task: int = setting(20, "paths per task, each before and after every adaptation step")
    max_path_length: int = setting(100, "steps of a path, at most")
    envs_per_task: Optional[int] = setting(None, "paths of a task under way at the same time; none for all")
    baseline: str = setting("LinearFeatureBaseline", "class of the reward baseline", BASELINES)
    discount: float = setting(0.99, "discount factor per step, in [0, 1]")
    gae_lambda: float = setting(1.0, "lambda of the advantage estimation, in [0, 1]")
    normalize_adv: bool = setting(True, "give each task's advantages mean zero and standard deviation one")
    positive_adv: bool = setting(False, "shift each task's advantages to above zero")
    hidden_sizes: tuple[int, ...] = setting((64, 64), "units of each hidden layer of the policy")
    hidden_nonlinearity: Optional[str] = setting("tanh", "of the hidden layers, or none", sorted(NONLINEARITIES))
    output_nonlinearity: Optional[str] = setting(None, "of the policy's output, or none", sorted(NONLINEARITIES))
    learn_std: bool = setting(True, "learn the policy's standard deviation, where actions are continuous")
    init_std: float = setting(1.0, "initial standard deviation; actions span +- normalization_scale")
    min_std: float = setting(1e-6, "smallest standard deviation, in the same unit")
    inner_lr: float = setting(0.1, "step size of adaptation")
    num_inner_grad_steps: int = setting(1, "adaptation steps per iteration")
    trainable_inner_step_size: bool = setting(False, "also learn a step size for each of the policy's parameters")
    first_order: bool = setting(False, "leave out second derivatives")
    diagnostics: bool = setting(False, "log how noisy each meta-gradient is and how far adaptation moves the policy")


_KINDS = {str: "a string", int: "an integer", float: "a number", dict: "an object (names and values)"}


def _conform(name: str, value: Any, kind: Any) -> Any:
    """Returns a value in the type of its setting, or raises `TypeError`."""
    container, inner = typing.get_origin(kind), typing.get_args(kind)
    if inner == (bool, str):
        return check_choice(name, value, (False, True, "ray"))
    if container is Union:  # Optional
        return None if value is None else _conform(name, value, inner[0])
    if container is tuple:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{name}: expected a list, got {value!r}")
        return tuple(_conform(f"{name}[{i}]", item, inner[0]) for i, item in enumerate(value))
    kind = container or kind
    if kind is bool:
        return check_bool(name, value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name}: expected {_KINDS[kind]}, got {value!r}")
    return dict(value) if kind is dict else value


@dataclasses.dataclass(frozen=True)
class ExploringConfig(Config):
    """The settings of algorithms with a choice of inner objective, and with E-MAML's exploration term."""

    inner_type: str = setting(
        "log_likelihood", "loss of the adaptation step", ("likelihood_ratio", "log_likelihood", "dice")
    )
    exploration: bool = setting(False, "add the exploration term of E-MAML")
    exploration_coeff: Optional[float] = setting(
        None, "coefficient of the exploration term, at least 0; none for one over the number of samples"
    )


def import_script(name: Any, config_class: type[RunConfig]) -> Any:
    """Returns the module of a script beside this file.

    Args:
        name: the name of its file, without `.py`.
        config_class: what its settings have to be.

    Raises:
        ValueError: there is no such script.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    if f"{name}.py" in os.listdir(here):
        module = importlib.import_module(f"{__package__}.{name}" if __package__ else name)
        if hasattr(module, "build") and issubclass(module.Config, config_class):
            return module
    kind = "a meta-learning script" if config_class is Config else "a script"
    raise ValueError(f"expected a run of {kind} in {here}, got one of {name!r}")


def make_config(config_class: type[ConfigT], settings: Mapping[str, Any]) -> ConfigT:
    """Makes the settings of an experiment from those that differ from its defaults.

    Raises:
        ValueError: there is no such setting (lists those that exist), or no such name.
        TypeError: a setting of the wrong type.
    """
    known = [field.name for field in dataclasses.fields(config_class)]
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise ValueError(f"unknown setting {', '.join(map(repr, unknown))}; there are {', '.join(known)}")
    return config_class(**settings)


# The parts of an experiment --------------------------------------------------------------------------------------


class Parts(NamedTuple):
    """Everything but algorithm and trainer."""

    env: MetaEnv
    policy: "MetaPolicy"
    sampler: MetaSampler
    sample_processor: MetaSampleProcessor


def build_parts(config: Config) -> Parts:
    """Seeds all random numbers, then builds environment, policy, sampler and sample processor."""
    from meta_policy_search.policies import MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy  # loads TensorFlow

    set_seed(config.seed)
    env = normalize(make_env(config.env, **config.env_kwargs), normalization_scale=config.normalization_scale)
    if is_discrete(env.action_space):
        policy_class, std = MetaCategoricalMLPPolicy, {}
    else:
        policy_class = MetaGaussianMLPPolicy
        std = {"learn_std": config.learn_std, "init_std": config.init_std, "min_std": config.min_std}
    policy = policy_class(
        meta_batch_size=config.meta_batch_size,
        obs_dim=gym.spaces.flatdim(env.observation_space),
        action_dim=gym.spaces.flatdim(env.action_space),
        name="meta-policy",
        hidden_sizes=config.hidden_sizes,
        hidden_nonlinearity=config.hidden_nonlinearity,
        output_nonlinearity=config.output_nonlinearity,
        **std,
    )
    sampler = MetaSampler(
        env=env,
        policy=policy,
        rollouts_per_meta_task=config.rollouts_per_meta_task,
        meta_batch_size=config.meta_batch_size,
        max_path_length=config.max_path_length,
        envs_per_task=config.envs_per_task,
        parallel=config.parallel_option(),
    )
    return Parts(env, policy, sampler, MetaSampleProcessor(**processor_arguments(config)))


def processor_arguments(config: Config) -> dict[str, Any]:
    """Returns the arguments that every sample processor takes."""
    return {
        "baseline": getattr(baselines, config.baseline)(),
        "discount": config.discount,
        "gae_lambda": config.gae_lambda,
        "normalize_adv": config.normalize_adv,
        "positive_adv": config.positive_adv,
    }


def maml_arguments(config: Config, parts: Parts) -> dict[str, Any]:
    """Returns the arguments that every algorithm takes."""
    return {
        "policy": parts.policy,
        "inner_lr": config.inner_lr,
        "meta_batch_size": config.meta_batch_size,
        "num_inner_grad_steps": config.num_inner_grad_steps,
        "trainable_inner_step_size": config.trainable_inner_step_size,
        "first_order": config.first_order,
    }


def exploring_arguments(config: ExploringConfig, parts: Parts) -> dict[str, Any]:
    """Returns the arguments of algorithms with a choice of inner objective, and with E-MAML's exploration term."""
    return {
        **maml_arguments(config, parts),
        "inner_type": config.inner_type,
        "exploration": config.exploration,
        "exploration_coeff": config.exploration_coeff,
    }


def build_trainer(config: Config, parts: Parts, algo: "MAMLAlgo") -> "Trainer":
    """Puts the parts and the algorithm together."""
    from meta_policy_search.meta_trainer import Trainer

    return Trainer(
        algo=algo,
        env=parts.env,
        sampler=parts.sampler,
        sample_processor=parts.sample_processor,
        policy=parts.policy,
        n_itr=config.n_itr,
        num_inner_grad_steps=config.num_inner_grad_steps,
        progress_bar=config.progress_bar,
        diagnostics=config.diagnostics,
    )


# The command -----------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """What runs of a kind have in common beside the way they are started, recorded and resumed."""

    config_class: type[RunConfig]  # the settings that all of them have
    smoke: Mapping[str, Any]  # those of a run that takes seconds
    load: Callable[[str], dict[str, Any]]  # reads the last snapshot in a run folder
    draw: Callable[[str, Any], None]  # draws pictures into a run folder, given the settings
    summarize: Callable[[Any, Any], str]  # says what came of a run, given trainer and settings


class Experiment(NamedTuple):
    """A script: what its module holds."""

    module: ModuleType
    config_class: type[RunConfig]
    build: Callable[[Any], "Trainer"]
    kind: Kind

    @property
    def path(self) -> str:
        """Its file."""
        return os.path.abspath(str(self.module.__file__))

    @property
    def name(self) -> str:
        """The name of its file, without `.py`."""
        return os.path.splitext(os.path.basename(self.path))[0]


def run(
    config_class: type[ConfigT],
    build: Callable[[ConfigT], "Trainer"],
    argv: Optional[Sequence[str]] = None,
    kind: Optional[Kind] = None,
) -> int:
    """Runs an experiment as its command line says.

    Args:
        config_class: its settings; the module that defines them is the script.
        build: makes the trainer from the settings.
        argv: flags; by default those that the process was started with.
        kind: what is trained; by default a meta-learning algorithm.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.

    Raises:
        SystemExit: with status 2, for a mistake in flags, files or settings, which is named in one line; with status 1,
            when rows or snapshots cannot be written any more.
    """
    kind = Kind(Config, SMOKE, load_in_own_graph, _draw, _summary) if kind is None else kind
    experiment = Experiment(sys.modules[config_class.__module__], config_class, build, kind)
    argv = sys.argv[1:] if argv is None else argv
    parser = _make_parser(experiment)
    arguments = vars(parser.parse_args(argv))
    try:
        try:
            prepare = _resume if "resume" in arguments else _start
            trainer, config = prepare(experiment, arguments, [sys.executable, experiment.path, *argv])
        except (EnvWorkerError, ImportError, OSError, SnapshotError, TypeError, ValueError) as error:
            parser.error(str(error))
        try:
            _train(experiment, trainer, config)
        except (SnapshotError, logger.LogFileError) as error:  # a full disk, say
            parser.exit(1, f"{parser.prog}: error: {error}\n{_how_to_go_on(experiment)}\n")
    except KeyboardInterrupt:
        logger.log(_how_to_go_on(experiment))
        return INTERRUPTED
    return 0


class Parser(argparse.ArgumentParser):
    """A parser whose errors take one line."""

    def error(self, message: str) -> NoReturn:
        """Ends the process with status 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def _make_parser(experiment: Experiment) -> argparse.ArgumentParser:
    """Makes a flag for every setting; what is not given is not in the result."""
    parser = Parser(
        prog=os.path.basename(experiment.path),
        usage="%(prog)s [--config_file FILE] [--dump_path DIR] [--smoke] [--SETTING VALUE ...]\n"
              "       %(prog)s --resume DIR [--n_itr N]",
        description=experiment.module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument("--config_file", metavar="FILE", help="JSON object of settings by name, or a params.json")
    parser.add_argument("--dump_path", metavar="DIR",
                        help=f"run folder (default: data/{experiment.name}/<environment>/<time>_seed<seed>)")
    parser.add_argument("--resume", metavar="DIR",
                        help="go on with the run in this folder, with its settings; n_itr may be raised")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes and two iterations, to see that everything "
                        "works; the environment variable SMOKE=1 says the same")
    common = parser.add_argument_group("settings of every experiment")
    own = parser.add_argument_group("settings of this experiment")
    shared = {field.name for field in dataclasses.fields(experiment.kind.config_class)}
    kinds = typing.get_type_hints(experiment.config_class)
    defaults = experiment.config_class()
    for field in dataclasses.fields(experiment.config_class):
        group = common if field.name in shared else own
        _add_flag(group, field, kinds[field.name], _as_flag(getattr(defaults, field.name)))
    return parser


def add_parallel_flags(parser: Any) -> None:
    """Gives a parser the flags for `PARALLEL_SETTINGS`; what is not given is not in the result.

    Args:
        parser: an `argparse.ArgumentParser`, or a group of one.
    """
    kinds = typing.get_type_hints(RunConfig)
    for field in dataclasses.fields(RunConfig):
        if field.name in PARALLEL_SETTINGS:
            _add_flag(parser, field, kinds[field.name], "as in the run")


def _add_flag(parser: Any, field: dataclasses.Field, kind: Any, default: str) -> None:
    text = f"{field.metadata['help']} (default: {default})".replace("%", "%%")
    parser.add_argument(f"--{field.name}", help=text, default=argparse.SUPPRESS, **_reading(kind))


def _reading(kind: Any) -> dict[str, Any]:
    """Returns how a flag of a type is read, as arguments of `add_argument`."""
    container, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if inner == (bool, str):
        return {"action": _Switch, "choices": ["ray"]}
    if container is tuple:
        return {"nargs": "*", **_reading(inner[0])}
    if container is Union:
        def optional(text: str) -> Any:
            return None if text == "none" else inner[0](text)

        optional.__name__ = inner[0].__name__  # for argparse's messages
        return {"type": optional, "metavar": _reading(inner[0])["metavar"]}
    if container is dict:
        return {"type": _json_object, "metavar": "JSON"}
    return {"type": kind, "metavar": {str: "NAME", int: "INT", float: "FLOAT"}[kind]}


class _Switch(argparse.Action):
    """Reads `--NAME` as True, `--no-NAME` as False, and `--NAME VALUE` as the value."""

    def __init__(self, option_strings: Sequence[str], dest: str, **how: Any) -> None:
        super().__init__([*option_strings, f"--no-{dest}"], dest, nargs="?", **how)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Optional[str] = None) -> None:
        is_off = str(option_string).startswith("--no-")
        if is_off and values is not None:
            raise argparse.ArgumentError(self, f"expected no value after {option_string}, got {values!r}")
        setattr(namespace, self.dest, not is_off if values is None else values)


def _json_object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        example = '{"reward_type": "dense"}'
        raise argparse.ArgumentTypeError(f"expected a JSON object such as {example!r}, got {text!r}: {error}") from None


def _as_flag(value: Any) -> str:
    """Returns a value as it is written on a command line."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "none" if value is None else str(value)


def _given_settings(arguments: dict[str, Any], smoke: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that file, smoke and flags give."""
    flags = {name: value for name, value in arguments.items()
             if name not in ("config_file", "dump_path", "resume", "smoke")}
    settings = _read_settings(arguments["config_file"]) if "config_file" in arguments else {}
    return {**settings, **(smoke if arguments.get("smoke") else {}), **flags}


def _read_settings(path: str) -> dict[str, Any]:
    """Reads a file of settings, or those in the `params.json` of a run."""
    content = read_json(path)
    return content["settings"] if isinstance(content.get("settings"), dict) else content


def read_json(path: str) -> dict[str, Any]:
    """Returns the object that a JSON file holds.

    Raises:
        ValueError: there is no such file, or it holds something else.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError) as error:  # no such file, or not JSON
        raise ValueError(f"could not read {path}: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def _start(experiment: Experiment, arguments: dict[str, Any], command: list[str]) -> tuple["Trainer", RunConfig]:
    """Begins a run."""
    if os.environ.get("SMOKE", "0") not in ("", "0"):
        arguments["smoke"] = True
    config = make_config(experiment.config_class, _given_settings(arguments, experiment.kind.smoke))
    folder = arguments.get("dump_path") or _default_folder(experiment, config)
    if os.path.exists(os.path.join(folder, PARAMS_FILE)):
        raise ValueError(f"--dump_path: expected a folder without an earlier run, got {folder}. To go on with that "
                         f"run: --resume {folder}")
    pictures = [name for name in _PICTURES if os.path.exists(os.path.join(folder, name))]
    if pictures:
        raise ValueError(f"--dump_path: expected a folder without files of an earlier run, got {folder}, which holds "
                         f"{', '.join(pictures)}")
    _configure_logger(folder, config)
    trainer = experiment.build(config)
    started = describe_process(command)
    _write_params({"script": experiment.name, "settings": dataclasses.asdict(config), **started, "resumed": []})
    return trainer, config


def _default_folder(experiment: Experiment, config: RunConfig) -> str:
    now = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    return os.path.join("data", experiment.name, config.env, f"{now}_seed{config.seed}")


def _configure_logger(folder: str, config: RunConfig, **how: Any) -> None:
    logger.configure(folder, config.log_formats, config.snapshot_mode, config.snapshot_gap, **how)


def _resume(experiment: Experiment, arguments: dict[str, Any], command: list[str]) -> tuple["Trainer", RunConfig]:
    """Goes on with a run from its last snapshot; files change when it is certain that this is possible."""
    folder = arguments["resume"]
    for name in ("dump_path", "smoke"):
        if name in arguments:
            raise ValueError(f"--{name}: expected no such flag with --resume, which keeps folder and sizes of the run")
    params = _read_params(experiment, folder)
    config = _resumed_config(experiment.config_class, params["settings"], _given_settings(arguments, {}))
    if _had_only_begun(folder, config):
        trainer = experiment.build(config)
        _configure_logger(folder, config, overwrite=True)
    else:
        snapshot = experiment.kind.load(folder)
        if snapshot["itr"] + 1 >= config.n_itr:
            raise ValueError(f"--resume: the run in {folder} has done its {snapshot['itr'] + 1} iterations; to go on, "
                             "give a larger --n_itr")
        trainer = experiment.build(config)
        try:
            trainer.restore(snapshot)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"--resume: the snapshot in {folder} does not fit the settings in its {PARAMS_FILE}: "
                             f"{error}") from error
        _configure_logger(folder, config, positions=snapshot["state"]["outputs"])
    process = describe_process(command)
    _warn_of_changes(params, process)
    params["settings"] = dataclasses.asdict(config)
    params["resumed"].append({"itr": trainer.itr, **process})
    _write_params(params)
    logger.log(f"Going on with iteration {trainer.itr} in {logger.get_dir()}")
    return trainer, config


def _read_params(experiment: Experiment, folder: str) -> dict[str, Any]:
    """Returns what `params.json` says of a run that the experiment can go on with."""
    try:
        params = read_json(os.path.join(folder, PARAMS_FILE))
    except ValueError as error:
        raise ValueError(f"--resume: expected the folder of a run, got {folder}: {error}") from error
    kinds = {"script": str, "settings": dict, "versions": dict, "machine": dict, "tensorflow_flags": dict,
             "resumed": list}
    wrong = [name for name, kind in kinds.items() if not isinstance(params.get(name), kind)]
    if wrong:
        raise ValueError(f"--resume: expected the folder of a run, got {folder}, whose {PARAMS_FILE} lacks "
                         f"{', '.join(wrong)}")
    if params["script"] != experiment.name:
        raise ValueError(f"--resume: expected a run of {experiment.name}, {folder} holds one of {params['script']}")
    check_same_version(f"--resume: the run in {folder}", params["versions"].get("meta_policy_search"))
    return params


def _had_only_begun(folder: str, config: RunConfig) -> bool:
    """Whether a run ended before the snapshot of its first iteration, which every mode but none takes."""
    if config.snapshot_mode == "none" or holds_snapshot(folder):
        return False
    try:
        return len(read_progress(folder)["Itr"]) <= 1
    except ValueError:  # no row
        return True


def _resumed_config(config_class: type[ConfigT], recorded: dict[str, Any], given: dict[str, Any]) -> ConfigT:
    """Returns the settings to go on with: those of the run, with `n_itr` raised if it is given.

    What is shown on the way may change, and on Ray the cluster.

    Raises:
        ValueError: something else is given that differs; lists it.
    """
    before = make_config(config_class, recorded)
    config = make_config(config_class, {**recorded, **given})
    may_differ = (*PARALLEL_SETTINGS[1:], *_SHOWING_SETTINGS)
    differences = [
        f"{name} is {getattr(before, name)!r} there, {getattr(config, name)!r} here"
        for name in given
        if getattr(before, name) != getattr(config, name) and name not in may_differ
        and not (name == "n_itr" and config.n_itr > before.n_itr)
    ]
    if differences:
        raise ValueError("--resume: expected the settings of the run (n_itr may be raised), but "
                         + "; ".join(differences))
    return config


def load_in_own_graph(folder: str, itr: Optional[int] = None) -> dict[str, Any]:
    """Returns a run's snapshot of an iteration, by default the last one.

    Its policy is in a graph of its own: training's graph stays as in the first run.
    """
    from meta_policy_search.tf_compat import tf

    with tf.Graph().as_default():
        return load_snapshot(folder, itr)


def _train(experiment: Experiment, trainer: "Trainer", config: RunConfig) -> None:
    """Trains to the end and says what came of it."""
    folder = str(logger.get_dir())

    def draw() -> None:
        try:
            experiment.kind.draw(folder, config)
        except (OSError, ValueError) as error:  # a full disk, say; the pictures can be drawn later
            logger.warn(f"could not draw the learning curve: {error}")

    def draw_at_times(_: Any, row: logger.Row) -> None:
        if config.plot_gap and trainer.itr % config.plot_gap == 0:
            draw()

    trainer.callbacks.append(draw_at_times)
    try:
        trainer.train()
    finally:
        trainer.sampler.close()
    draw()
    logger.log(experiment.kind.summarize(trainer, config))
    logger.log(f"Run folder: {folder}")


def _draw(folder: str, config: Config) -> None:
    plot_learning_curve(folder)
    if config.diagnostics:
        plot_diagnostics(folder)


def _summary(trainer: "Trainer", config: Config) -> str:
    """Says in one sentence what adaptation gained at the end."""
    gain = mean_gain(read_progress(str(logger.get_dir())))
    interval = f"95% interval over tasks {gain.mean - gain.half_width:+.2f} to {gain.mean + gain.half_width:+.2f}"
    if config.meta_batch_size == 1:
        interval = "no interval over tasks, as there is one per iteration"
    return (f"Adaptation changes the return by {gain.mean:+.2f} ({interval}), from {gain.before:.2f} to "
            f"{gain.after:.2f}: mean of the last {gain.num_itr} iterations, each with {config.meta_batch_size} new "
            f"tasks and {config.rollouts_per_meta_task} paths per task")


def _how_to_go_on(experiment: Experiment) -> str:
    folder = logger.get_dir()
    if folder is None or not os.path.isdir(folder) or not list_snapshots(folder):
        return "There is no snapshot to go on from"
    command = ["python", shortest(experiment.path), "--resume", shortest(folder)]
    return f"To go on after iteration {list_snapshots(folder)[-1].itr}: {shlex.join(command)}"


def shortest(path: str) -> str:
    """Returns a path in the form with fewer characters, relative or absolute."""
    return min(os.path.relpath(path), os.path.abspath(path), key=len)


def similar(name: str, known: Sequence[str]) -> str:
    """Says which of some names are like one that is not among them; all of them if none is."""
    by_lower = {other.lower(): other for other in known}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=5, cutoff=0.5)
    return ("similar ones are " + ", ".join(by_lower[match] for match in matches) if matches else
            "there are " + ", ".join(known))


# What params.json says -------------------------------------------------------------------------------------------

_PACKAGES = ("tensorflow", "numpy", "scipy", "gym", "gymnasium", "mujoco", "cma", "cloudpickle", "joblib", "matplotlib")
_FLAGS = ("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS",
          "TF_DETERMINISTIC_OPS", "TF_XLA_FLAGS", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES")


def describe_process(command: list[str]) -> dict[str, Any]:
    """Returns what, beside the settings, the numbers of a run may depend on, and how it was started."""
    return {
        "command": command,
        "started": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "git_revision": _git_revision(),
        "versions": {
            "python": platform.python_version(),
            "meta_policy_search": __version__,
            **{name: _version(name) for name in _PACKAGES},
        },
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": available_cores(),
                    "physics_engine": chosen_engine()},
        "tensorflow_flags": {name: os.environ.get(name) for name in _FLAGS},
    }


def _version(package: str) -> Optional[str]:
    loaded = getattr(sys.modules.get(package), "__version__", None)
    if loaded is not None:
        return str(loaded)
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git_revision() -> Optional[str]:
    """Returns the commit that the scripts are of, with `-dirty` if files have changed since; None without git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        result = subprocess.run(command, cwd=os.path.dirname(os.path.abspath(__file__)), capture_output=True, text=True,
                                timeout=10.0, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()


def _warn_of_changes(params: Mapping[str, Any], process: Mapping[str, Any]) -> None:
    """Warns of what differs between the process that began a run and the one that goes on with it."""
    before, now = (
        {"git_revision": said.get("git_revision"), **said["versions"], **said["machine"], **said["tensorflow_flags"]}
        for said in (params, process)
    )
    changes = [f"{name} was {before.get(name)}, is {value}" for name, value in now.items() if before.get(name) != value]
    if changes:
        logger.warn("the run may not go on exactly as it would have: " + "; ".join(changes))


def check_is_new(flag: str, path: str, overwrite: bool) -> None:
    """Raises `ValueError` if a file is there that was not asked to be replaced (`--overwrite`)."""
    if os.path.exists(path) and not overwrite:
        raise ValueError(f"{flag}: expected a file that is not there yet, got {path}; choose another one, or have it "
                         "replaced (--overwrite)")


def _write_params(params: Mapping[str, Any]) -> None:
    write_text(os.path.join(str(logger.get_dir()), PARAMS_FILE), json.dumps(params, indent=2) + "\n")
