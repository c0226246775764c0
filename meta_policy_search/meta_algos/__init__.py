"""Meta-RL algorithms, one module per algorithm; `base` contains the shared implementation."""
from meta_policy_search.meta_algos.base import MAMLAlgo, MetaAlgo
from meta_policy_search.meta_algos.dice_maml import DICEMAML
from meta_policy_search.meta_algos.e_maml import EMAML
from meta_policy_search.meta_algos.inputs import AdaptationStep, MetaObjective
from meta_policy_search.meta_algos.pro_mp import ProMP
from meta_policy_search.meta_algos.rl2 import RL2
from meta_policy_search.meta_algos.trpo_maml import TRPOMAML
from meta_policy_search.meta_algos.vpg_dice_maml import VPG_DICEMAML
from meta_policy_search.meta_algos.vpg_maml import VPGMAML

__all__ = ["AdaptationStep", "DICEMAML", "EMAML", "MAMLAlgo", "MetaAlgo", "MetaObjective", "ProMP", "RL2", "TRPOMAML",
           "VPGMAML", "VPG_DICEMAML"]
