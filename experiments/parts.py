"""Builds environment, policy, sampler, sample processor and trainer from the settings of a meta-learning experiment.

`mps.NAME` imports TensorFlow on first access. This keeps `--help` and error messages fast.
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
    """All parts of an experiment except algorithm and trainer."""

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
        **processor_arguments: arguments of the sample processor that are not settings.

    Raises:
        TypeError, ValueError: a setting is invalid for the class that receives it.
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
        config: the settings. Settings with the name of an argument of the algorithm are passed to it, except
            `max_path_length`.
        parts: return value of `build_parts`.
        algo_class: class of the algorithm.
        **others: further arguments of the algorithm; they override settings.
    """
    given = arguments_for(algo_class, config, policy=parts.policy)
    given.pop("max_path_length", None)  # most algorithms accept it only with inner_type="dice"
    algo = algo_class(**{**given, **others})
    return mps.Trainer(**arguments_for(mps.Trainer, config, algo=algo, **parts._asdict()))


def first_order_arguments(config: FirstOrderSettings) -> dict[str, Any]:
    """Returns the arguments of algorithms with first-order meta-updates: learning rate and optimizer class."""
    from meta_policy_search.tf_compat import tf

    is_linear = config.learning_rate_schedule == "linear"
    return {
        "learning_rate": LinearSchedule(config.learning_rate, 0.0, config.n_itr) if is_linear else config.learning_rate,
        "tf_optimizer_cls": getattr(tf.train, f"{config.meta_optimizer}Optimizer"),
    }
