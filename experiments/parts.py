"""Builds environment, policy, sampler, sample processor and trainer from the settings of a meta-learning experiment.

`mps.NAME` imports TensorFlow on first use, so that `--help` and error messages do not wait for it.
"""
from typing import Any, NamedTuple

import meta_policy_search as mps
from experiments.settings import FirstOrderSettings, MetaConfig, arguments_for
from experiments.task_observation import TaskObservingEnv
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.utils.schedules import LinearSchedule
from meta_policy_search.utils.utils import set_seed


class Parts(NamedTuple):
    """Everything but algorithm and trainer."""

    env: mps.MetaEnv
    policy: "mps.MetaPolicy"
    sampler: MetaSampler
    sample_processor: MetaSampleProcessor


def build_parts(
    config: MetaConfig, processor_class: type[MetaSampleProcessor] = MetaSampleProcessor, **processor_arguments: Any
) -> Parts:
    """Sets the seed, then builds environment, policy, sampler and sample processor.

    Args:
        config: the settings.
        processor_class: class of the sample processor.
        **processor_arguments: its arguments that are not settings.
    """
    set_seed(config.seed)
    wrapper = TaskObservingEnv if config.observe_task else mps.normalize
    env = wrapper(mps.make_env(config.env, **config.env_kwargs), normalization_scale=config.normalization_scale)
    policy_class = mps.MetaCategoricalMLPPolicy if is_discrete(env.action_space) else mps.MetaGaussianMLPPolicy
    policy = policy_class.for_env(env, **arguments_for(policy_class, config, name="meta-policy"))
    sampler = MetaSampler(**arguments_for(MetaSampler, config, env=env, policy=policy,
                                          parallel=config.parallel_option()))
    processor = processor_class(**arguments_for(processor_class, config, **processor_arguments,
                                                baseline=getattr(mps, config.baseline)()))
    return Parts(env, policy, sampler, processor)


def build_trainer(config: MetaConfig, parts: Parts, algo_class: type["mps.MAMLAlgo"], **others: Any) -> "mps.Trainer":
    """Builds the algorithm and the trainer.

    Args:
        config: the settings; those that are arguments of the algorithm are passed to it, but for `max_path_length`.
        parts: see `build_parts`.
        algo_class: class of the algorithm.
        **others: its arguments that are not settings, or differ from them.
    """
    given = arguments_for(algo_class, config, policy=parts.policy)
    given.pop("max_path_length", None)  # most algorithms accept it only with inner_type="dice"
    algo = algo_class(**{**given, **others})
    return mps.Trainer(**arguments_for(mps.Trainer, config, algo=algo, **parts._asdict()))


def first_order_arguments(config: FirstOrderSettings) -> dict[str, Any]:
    """Returns learning rate, or its schedule, and optimizer class of an algorithm with first-order meta-updates."""
    from meta_policy_search.tf_compat import tf

    is_linear = config.learning_rate_schedule == "linear"
    return {
        "learning_rate": LinearSchedule(config.learning_rate, 0.0, config.n_itr) if is_linear else config.learning_rate,
        "tf_optimizer_cls": getattr(tf.train, f"{config.meta_optimizer}Optimizer"),
    }
