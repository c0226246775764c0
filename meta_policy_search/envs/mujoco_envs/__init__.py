"""Meta-environments of simulated robots, one file per robot and task."""
from meta_policy_search.envs.mujoco_envs.half_cheetah_rand_direc import HalfCheetahRandDirecEnv
from meta_policy_search.envs.mujoco_envs.half_cheetah_rand_vel import HalfCheetahRandVelEnv

__all__ = ["HalfCheetahRandDirecEnv", "HalfCheetahRandVelEnv"]
