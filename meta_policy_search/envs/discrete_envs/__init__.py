"""Environments with a few actions to choose from, small enough to solve by hand: a bandit, and random MDPs."""
from meta_policy_search.envs.discrete_envs.bernoulli_bandit import MetaBernoulliBanditEnv
from meta_policy_search.envs.discrete_envs.tabular_mdp import MetaTabularMDPEnv

__all__ = ["MetaBernoulliBanditEnv", "MetaTabularMDPEnv"]
