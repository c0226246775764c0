"""Settings of each algorithm, with the defaults of `meta_policy_search.train`, and the trainer built from them.

Training scripts derive their settings from these classes and replace defaults by published values. TensorFlow is
imported on the first access to a class of the package (`mps.NAME`), which keeps `--help` and error messages fast.
"""
import dataclasses
import typing
from dataclasses import dataclass
from typing import Any, ClassVar, Mapping, Optional

import meta_policy_search as mps
from meta_policy_search.baselines import BASELINES
from meta_policy_search.cli import single_task
from meta_policy_search.cli.settings import (
    NONLINEARITY_NAMES,
    PARALLEL_SETTINGS,
    SMOKE,
    RunConfig,
    check_count,
    check_from_0_to_1,
    setting,
)
from meta_policy_search.registry import find_algorithm, get_algorithm
from meta_policy_search.utils.checks import check_fraction, check_non_negative, check_positive, check_positive_int


@dataclass(frozen=True)
class SharedSettings:
    """The settings that RL2 shares with the algorithms that adapt by gradient steps."""

    normalization_scale: float = setting(10.0, "bound of the policy's actions, which are scaled to the environment's",
                                         check=check_positive)
    meta_batch_size: int = setting(20, "tasks per iteration", check=check_positive_int)
    discount: float = setting(0.99, "discount factor per step, in [0, 1]", check=check_from_0_to_1)
    init_std: float = setting(1.0, "initial standard deviation; actions span +- normalization_scale",
                              check=check_positive)
    min_std: float = setting(1e-6, "minimum standard deviation, in the same unit", check=check_positive)
    eval_every: int = setting(0, "iterations between evaluations in sampled tasks, which select best.pkl; 0: none",
                              check=check_count)
    eval_tasks: int = setting(20, "tasks per evaluation, with as many paths per task as in training",
                              check=check_positive_int)


@dataclass(frozen=True)
class MetaConfig(SharedSettings, RunConfig):
    """The settings of all algorithms that adapt by gradient steps; raises the same errors as `RunConfig`."""

    observe_task: bool = setting(False, "append the task to the policy's observations (oracle)")
    rollouts_per_meta_task: int = setting(20, "paths per task, before adaptation and after each adaptation step",
                                          check=check_positive_int)
    max_path_length: int = setting(100, "maximum number of steps of a path", check=check_positive_int)
    envs_per_task: Optional[int] = setting(None, "environments per task that step at the same time; none: one per path",
                                           check=check_positive_int)
    baseline: str = setting("LinearFeatureBaseline", "class of the reward baseline", BASELINES)
    gae_lambda: float = setting(1.0, "lambda of generalized advantage estimation, in [0, 1]", check=check_from_0_to_1)
    normalize_adv: bool = setting(True, "normalize advantages per task to mean 0 and standard deviation 1")
    positive_adv: bool = setting(False, "shift advantages per task to positive values")
    hidden_sizes: tuple[int, ...] = setting((64, 64), "units of each hidden layer of the policy",
                                            check=check_positive_int)
    hidden_nonlinearity: Optional[str] = setting("tanh", "activation of the hidden layers, or none", NONLINEARITY_NAMES)
    output_nonlinearity: Optional[str] = setting(None, "activation of the policy's output, or none", NONLINEARITY_NAMES)
    learn_std: bool = setting(True, "learn the standard deviation of the policy (continuous actions)")
    inner_lr: float = setting(0.1, "step size of adaptation", check=check_non_negative)
    num_inner_grad_steps: int = setting(1, "adaptation steps per iteration; 0 trains one policy for all tasks",
                                        check=check_count)
    trainable_inner_step_size: bool = setting(False, "learn an adaptation step size for each adapted entry of the "
                                              "parameters")
    first_order: bool = setting(False, "ignore second derivatives")
    adapt_params: tuple[str, ...] = setting(("all",), "parameters that adaptation changes: all, head, body, context "
                                            "or patterns of their names")
    context_dim: int = setting(0, "context parameters of the policy, which adaptation changes", check=check_count)
    diagnostics: bool = setting(False, "log gradient diagnostics: noise of the meta-gradient, effect of adaptation")


@dataclass(frozen=True)
class FirstOrderSettings:
    """The settings of first-order meta-updates."""

    learning_rate: float = setting(1e-3, "learning rate of the meta-optimizer", check=check_positive)
    learning_rate_schedule: str = setting("constant", "schedule: constant, or linear decay to 0 over n_itr iterations",
                                          ("constant", "linear"))
    entropy_coef: float = setting(0.0, "coefficient of the policy's mean entropy in the meta-objective",
                                  check=check_non_negative)
    meta_optimizer: str = setting("Adam", "optimizer of the meta-objective, from tf.train",
                                  ("Adam", "GradientDescent", "RMSProp", "Adagrad"))


@dataclass(frozen=True)
class FirstOrderConfig(FirstOrderSettings, MetaConfig):
    """The settings of algorithms whose meta-update takes first-order steps."""

    max_grad_norm: Optional[float] = setting(None, "largest norm of the meta-gradient; none for no limit",
                                             check=check_positive)


@dataclass(frozen=True)
class ExploringConfig(MetaConfig):
    """The settings of algorithms with a selectable inner loss and the exploration term of E-MAML."""

    inner_type: str = setting("likelihood_ratio", "loss of the adaptation step",
                              ("likelihood_ratio", "log_likelihood", "dice", "taypo"))
    exploration: bool = setting(False, "add the exploration term of E-MAML")
    exploration_coeff: Optional[float] = setting(None, "coefficient of the exploration term, at least 0; none: 1 / "
                                                 "number of samples", check=check_non_negative)


@dataclass(frozen=True)
class ProMPConfig(FirstOrderConfig):
    """ProMP (arXiv:1810.06784): several clipped gradient steps per meta-update on the same samples."""

    algorithm: ClassVar[str] = "promp"

    num_ppo_steps: int = setting(5, "passes over the same samples per meta-update", check=check_positive_int)
    num_minibatches: int = setting(1, "minibatches (gradient steps) per pass over the samples after adaptation",
                                   check=check_positive_int)
    clip_eps: float = setting(0.2, "likelihood ratios are clipped to 1 - clip_eps to 1 + clip_eps",
                              check=check_positive)
    init_inner_kl_penalty: float = setting(0.01, "initial coefficient of the KL divergence of an adaptation step",
                                           check=check_non_negative)
    adaptive_inner_kl_penalty: bool = setting(True, "adapt this coefficient to reach target_inner_step")
    target_inner_step: float = setting(0.01, "target KL divergence per adaptation step, nats", check=check_non_negative)
    anneal_factor: float = setting(1.0, "factor of clip_eps after every meta-update, in (0, 1]", check=check_fraction)


@dataclass(frozen=True)
class TRPOMAMLConfig(ExploringConfig):
    """MAML (arXiv:1703.03400) with one trust-region step per meta-update, as in its original experiments."""

    algorithm: ClassVar[str] = "trpo_maml"

    step_size: float = setting(0.01, "maximum mean KL divergence per meta-update, nats", check=check_positive)
    cg_iters: int = setting(10, "conjugate gradient iterations per meta-update, at least 1", check=check_positive_int)
    subsample_factor: float = setting(1.0, "fraction of the samples used for curvature products, in (0, 1]",
                                      check=check_fraction)
    curvature: str = setting("gauss_newton", "method for curvature products of the KL divergence",
                             ("gauss_newton", "finite_difference", "exact"))


@dataclass(frozen=True)
class EMAMLConfig(TRPOMAMLConfig):
    """E-MAML (arXiv:1803.01118): TRPO-MAML with an exploration term for the samples before adaptation."""

    algorithm: ClassVar[str] = "e_maml"

    exploration: bool = setting(True, "add the exploration term of E-MAML; without it, the algorithm is TRPO-MAML")


@dataclass(frozen=True)
class VPGMAMLConfig(FirstOrderConfig, ExploringConfig):
    """MAML (arXiv:1703.03400) with one Adam step along the policy gradient per meta-update."""

    algorithm: ClassVar[str] = "vpg_maml"


@dataclass(frozen=True)
class DICEMAMLConfig(FirstOrderConfig):
    """DiCE-MAML (arXiv:1802.05098): adaptation steps with unbiased second derivatives."""

    algorithm: ClassVar[str] = "dice_maml"

    # A state-dependent baseline would bias DiCE.
    baseline: str = setting("LinearTimeBaseline", "class of the reward baseline", BASELINES)


@dataclass(frozen=True)
class VPGDICEMAMLConfig(DICEMAMLConfig):
    """DiCE-MAML with a policy gradient on advantages after adaptation."""

    algorithm: ClassVar[str] = "vpg_dice_maml"

    return_baseline: str = setting("LinearFeatureBaseline", "class of the baseline of these advantages", BASELINES)


@dataclass(frozen=True)
class RL2Config(FirstOrderSettings, SharedSettings, RunConfig):
    """RL2 (arXiv:1611.02779): a recurrent policy that adapts within a trial of several episodes."""

    algorithm: ClassVar[str] = "rl2"
    smoke: ClassVar[Mapping[str, Any]] = {
        **{name: value for name, value in SMOKE.items() if name != "hidden_sizes"}, "max_path_length": 2,
        "hidden_size": 8, "num_minibatches": 2, "episodes_per_trial": 3}

    episodes_per_trial: int = setting(2, "episodes of a trial", check=check_positive_int)
    max_path_length: int = setting(100, "maximum number of steps of an episode", check=check_positive_int)
    rollouts_per_meta_task: int = setting(20, "trials per task", check=check_positive_int)
    envs_per_task: Optional[int] = setting(None, "trials of a task that are sampled at the same time; none for all",
                                           check=check_positive_int)
    hidden_size: int = setting(64, "gated recurrent units of the policy", check=check_positive_int)
    baseline: Optional[str] = setting(None, "class of the baseline of the rewards; none for the policy's value head",
                                      BASELINES)
    gae_lambda: float = setting(0.3, "lambda of the advantage estimation, in [0, 1]", check=check_from_0_to_1)
    normalize_adv: bool = setting(True, "give advantages mean zero and standard deviation one")
    positive_adv: bool = setting(False, "shift advantages to positive values")
    num_ppo_steps: int = setting(8, "passes over the same trials per meta-update", check=check_positive_int)
    num_minibatches: int = setting(4, "random parts of the trials per pass, with one step each",
                                   check=check_positive_int)
    clip_eps: float = setting(0.1, "half-width of the interval that likelihood ratios are clipped to",
                              check=check_positive)
    value_coef: float = setting(0.5, "coefficient of the loss of the value head", check=check_non_negative)


CONFIGS: dict[str, type[RunConfig]] = {
    config.algorithm: config for config in (
        ProMPConfig, TRPOMAMLConfig, EMAMLConfig, VPGMAMLConfig, DICEMAMLConfig, VPGDICEMAMLConfig, RL2Config,
        single_task.CEMConfig, single_task.CMAESConfig, single_task.DDPGConfig)}
"""Settings classes by the names of the algorithms."""

_NOT_PASSED = ("env", "env_kwargs", "seed", "n_itr", "log_formats", "snapshot_mode", "snapshot_gap", "plot_gap",
               "observe_task", "eval_every", "eval_tasks", *PARALLEL_SETTINGS)
_OPTIMIZER = ("cg_iters", "subsample_factor", "curvature")


def find_config(name: str) -> type[RunConfig]:
    """Returns the settings class of an algorithm.

    Args:
        name: name of an algorithm; case, hyphens and underscores are ignored. Also MODULE:NAME of a class or of a
            registered name in the user's module.

    Raises:
        ValueError: the algorithm is unknown.
    """
    name = find_algorithm(name, CONFIGS)
    return CONFIGS[name] if name in CONFIGS else _config_of_class(name)


def _config_of_class(name: str) -> type[RunConfig]:
    """Derives the settings class of a user's algorithm.

    Constructor arguments with a bool, number or string as default become settings with this default, except the
    arguments for which `train` has a default.
    """
    from meta_policy_search.run import TRAIN_DEFAULTS
    from meta_policy_search.utils.serializable import constructor_signature

    algo_class = get_algorithm(name)
    configs = {get_algorithm(each.algorithm): each for each in CONFIGS.values()
               if not issubclass(each, (single_task.Config, EMAMLConfig))}
    base = next((configs[parent] for parent in algo_class.__mro__ if parent in configs), None)
    if base is None:
        base = FirstOrderConfig if "learning_rate" in constructor_signature(algo_class).parameters else MetaConfig
    types, arguments = typing.get_type_hints(base), constructor_signature(algo_class).parameters
    defaults = {key: argument.default for key, argument in arguments.items()
                if key not in {*TRAIN_DEFAULTS, "name"} and typing.get_origin(types.get(key)) is not tuple
                and type(argument.default) in (bool, int, float, str)}
    added = [(key, types[key], default) if key in types else
             (key, type(default), setting(default, f"argument of {algo_class.__name__}"))
             for key, default in defaults.items()]
    return dataclasses.make_dataclass(f"{algo_class.__name__}Config", added, bases=(base,), frozen=True,
                                      namespace={"algorithm": name, "__module__": __name__, "__doc__": base.__doc__})


def build_trainer(config: Any) -> "mps.Trainer":
    """Sets the seed, then builds environment, policy, algorithm and trainer, as `meta_policy_search.train` does.

    Args:
        config: the settings.

    Raises:
        TypeError, ValueError: a setting is invalid for the class that receives it.
    """
    from meta_policy_search.cli.task_observation import TaskObservingEnv
    from meta_policy_search.run import make_trainer
    from meta_policy_search.utils.utils import set_seed

    set_seed(config.seed)
    env = mps.make_env(config.env, **config.env_kwargs)
    settings = _arguments(config)
    if vars(config).get("observe_task"):
        settings.pop("normalization_scale", None)
        env = TaskObservingEnv(env, normalization_scale=config.normalization_scale)
    callbacks = [mps.EvalCallback(config.eval_every, config.eval_tasks)] if config.eval_every else []
    return make_trainer(env, get_algorithm(config.algorithm), config.n_itr, callbacks, settings)


def _arguments(config: Any) -> dict[str, Any]:
    """Returns the settings that differ from the defaults of `meta_policy_search.train`, as arguments of classes."""
    usual = vars(find_config(config.algorithm)())
    given = {name: value for name, value in vars(config).items()
             if value != usual[name] and name not in (*_NOT_PASSED, *_OPTIMIZER)}
    given.update(progress_bar=config.progress_bar, parallel=config.parallel_option())
    if isinstance(config, EMAMLConfig):
        given["exploration"] = config.exploration
    if isinstance(config, TRPOMAMLConfig) and any(vars(config)[name] != usual[name] for name in _OPTIMIZER):
        products = {"gauss_newton": mps.GaussNewtonHvp, "finite_difference": mps.FiniteDifferenceHvp,
                    "exact": mps.ExactHvp}
        given["optimizer"] = mps.ConjugateGradientOptimizer(
            cg_iters=config.cg_iters, subsample_factor=config.subsample_factor,
            hvp_approach=products[config.curvature]())
    if given.pop("learning_rate_schedule", "constant") == "linear":
        from meta_policy_search.utils.schedules import LinearSchedule

        given["learning_rate"] = LinearSchedule(config.learning_rate, 0.0, config.n_itr)
    if "meta_optimizer" in given:
        from meta_policy_search.tf_compat import tf

        given["tf_optimizer_cls"] = getattr(tf.train, f"{given.pop('meta_optimizer')}Optimizer")
    return given
