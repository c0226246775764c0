"""Gradient-based meta-RL algorithms."""
from meta_policy_search.meta_algos.base import MAMLAlgo, MetaAlgo
from meta_policy_search.meta_algos.pro_mp import ProMP
from meta_policy_search.meta_algos.trpo_maml import TRPOMAML
from meta_policy_search.meta_algos.vpg_maml import VPGMAML

__all__ = ["MAMLAlgo", "MetaAlgo", "ProMP", "TRPOMAML", "VPGMAML"]
