"""NumPy algorithms for `LocalRunner`: CEM, CMA-ES and the base class of off-policy algorithms."""
from meta_policy_search.np.algos.cem import CEM
from meta_policy_search.np.algos.cma_es import CMAES
from meta_policy_search.np.algos.off_policy_rl_algorithm import OffPolicyRLAlgorithm
from meta_policy_search.np.algos.rl_algorithm import NOP, MetaRLAlgorithm, RLAlgorithm

__all__ = ["CEM", "CMAES", "NOP", "MetaRLAlgorithm", "OffPolicyRLAlgorithm", "RLAlgorithm"]
