"""Builds environment, policy and sampler without an algorithm, whose graph takes seconds to build."""
from typing import NamedTuple

import meta_policy_search as mps
from meta_policy_search.cli.algorithms import MetaConfig
from meta_policy_search.cli.settings import arguments_for
from meta_policy_search.envs.spaces import is_discrete
from meta_policy_search.utils.utils import set_seed


class Parts(NamedTuple):
    """The parts that sample."""

    env: mps.MetaEnv
    policy: "mps.MetaPolicy"
    sampler: "mps.MetaSampler"


def build_parts(config: MetaConfig) -> Parts:
    """Sets the seed, then builds environment, policy and sampler from settings."""
    set_seed(config.seed)
    env = mps.normalize(mps.make_env(config.env, **config.env_kwargs), normalization_scale=config.normalization_scale)
    policy_class = mps.MetaCategoricalMLPPolicy if is_discrete(env.action_space) else mps.MetaGaussianMLPPolicy
    policy = policy_class.for_env(env, **arguments_for(policy_class, config))
    sampler = mps.MetaSampler(**arguments_for(mps.MetaSampler, config, env=env, policy=policy,
                                              parallel=config.parallel_option()))
    return Parts(env, policy, sampler)
