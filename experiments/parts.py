"""The parts of an experiment in meta-learning, built from its settings.

TensorFlow is loaded when they are built, not before, so that `--help` and mistakes take no time.
"""
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.settings import ExploringConfig, FirstOrderConfig, MetaConfig
from experiments.task_observation import TaskObservingEnv
from meta_policy_search import baselines
from meta_policy_search.envs import MetaEnv, make_env, normalize
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.utils.utils import set_seed

if TYPE_CHECKING:
    from meta_policy_search.meta_algos import MAMLAlgo
    from meta_policy_search.meta_trainer import Trainer
    from meta_policy_search.policies import MetaPolicy


class Parts(NamedTuple):
    """Everything but algorithm and trainer."""

    env: MetaEnv
    policy: "MetaPolicy"
    sampler: MetaSampler
    sample_processor: MetaSampleProcessor


def build_parts(config: MetaConfig) -> Parts:
    """Seeds all random numbers, then builds environment, policy, sampler and sample processor."""
    from meta_policy_search.policies import MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy  # loads TensorFlow

    set_seed(config.seed)
    wrapper = TaskObservingEnv if config.observe_task else normalize
    env = wrapper(make_env(config.env, **config.env_kwargs), normalization_scale=config.normalization_scale)
    if is_discrete(env.action_space):
        policy_class, std = MetaCategoricalMLPPolicy, {}
    else:
        policy_class = MetaGaussianMLPPolicy
        std = {"learn_std": config.learn_std, "init_std": config.init_std, "min_std": config.min_std}
    policy = policy_class.for_env(
        env,
        meta_batch_size=config.meta_batch_size,
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


def processor_arguments(config: MetaConfig) -> dict[str, Any]:
    """Returns the arguments that every sample processor takes."""
    return {
        "baseline": getattr(baselines, config.baseline)(),
        "discount": config.discount,
        "gae_lambda": config.gae_lambda,
        "normalize_adv": config.normalize_adv,
        "positive_adv": config.positive_adv,
    }


def maml_arguments(config: MetaConfig, parts: Parts) -> dict[str, Any]:
    """Returns the arguments that every algorithm takes."""
    return {
        "policy": parts.policy,
        "inner_lr": config.inner_lr,
        "meta_batch_size": config.meta_batch_size,
        "num_inner_grad_steps": config.num_inner_grad_steps,
        "trainable_inner_step_size": config.trainable_inner_step_size,
        "first_order": config.first_order,
    }


def first_order_arguments(config: FirstOrderConfig) -> dict[str, Any]:
    """Returns the arguments of algorithms whose meta-update is made of first-order steps."""
    from meta_policy_search.tf_compat import tf
    from meta_policy_search.utils.schedules import LinearSchedule

    is_linear = config.learning_rate_schedule == "linear"
    return {
        "learning_rate": LinearSchedule(config.learning_rate, 0.0, config.n_itr) if is_linear else config.learning_rate,
        "tf_optimizer_cls": getattr(tf.train, f"{config.meta_optimizer}Optimizer"),
    }


def exploring_arguments(config: ExploringConfig, parts: Parts) -> dict[str, Any]:
    """Returns the arguments of algorithms with a choice of inner objective, and with E-MAML's exploration term."""
    return {
        **maml_arguments(config, parts),
        "inner_type": config.inner_type,
        "exploration": config.exploration,
        "exploration_coeff": config.exploration_coeff,
    }


def build_trainer(config: MetaConfig, parts: Parts, algo: "MAMLAlgo") -> "Trainer":
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
