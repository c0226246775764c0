"""Re-exports the environment interfaces, which are defined in `interface.py` and `mujoco_envs/base.py`."""
from meta_policy_search.envs.interface import BatchableMetaEnv, BatchedEnv, MetaEnv, PhysicsError
from meta_policy_search.envs.mujoco_envs.base import RandomEnv

__all__ = ["BatchableMetaEnv", "BatchedEnv", "MetaEnv", "PhysicsError", "RandomEnv"]
