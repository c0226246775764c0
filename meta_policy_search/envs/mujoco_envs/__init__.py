"""Simulated robots; only the package `engines` imports physics bindings."""
from meta_policy_search.envs.mujoco_envs.ant_rand_direc import AntRandDirecEnv
from meta_policy_search.envs.mujoco_envs.ant_rand_direc_2d import AntRandDirec2DEnv
from meta_policy_search.envs.mujoco_envs.ant_rand_goal import AntRandGoalEnv
from meta_policy_search.envs.mujoco_envs.half_cheetah_rand_direc import HalfCheetahRandDirecEnv
from meta_policy_search.envs.mujoco_envs.half_cheetah_rand_mass import (
    HalfCheetahRandBodyEnv,
    HalfCheetahRandMassEnv,
    HalfCheetahRandMassVelEnv,
)
from meta_policy_search.envs.mujoco_envs.half_cheetah_rand_vel import HalfCheetahRandVelEnv
from meta_policy_search.envs.mujoco_envs.hopper_rand_params import HopperRandParamsEnv
from meta_policy_search.envs.mujoco_envs.humanoid_rand_direc import HumanoidRandDirecEnv
from meta_policy_search.envs.mujoco_envs.humanoid_rand_direc_2d import HumanoidRandDirec2DEnv
from meta_policy_search.envs.mujoco_envs.reacher_rand_goal import ReacherRandGoalEnv
from meta_policy_search.envs.mujoco_envs.swimmer_rand_vel import SwimmerRandVelEnv
from meta_policy_search.envs.mujoco_envs.walker2d_rand_direc import Walker2DRandDirecEnv
from meta_policy_search.envs.mujoco_envs.walker2d_rand_params import Walker2DRandParamsEnv
from meta_policy_search.envs.mujoco_envs.walker2d_rand_vel import Walker2DRandMassVelEnv, Walker2DRandVelEnv

__all__ = ["AntRandDirec2DEnv", "AntRandDirecEnv", "AntRandGoalEnv", "HalfCheetahRandBodyEnv",
           "HalfCheetahRandDirecEnv", "HalfCheetahRandMassEnv", "HalfCheetahRandMassVelEnv", "HalfCheetahRandVelEnv",
           "HopperRandParamsEnv", "HumanoidRandDirec2DEnv", "HumanoidRandDirecEnv", "ReacherRandGoalEnv",
           "SwimmerRandVelEnv", "Walker2DRandDirecEnv", "Walker2DRandMassVelEnv", "Walker2DRandParamsEnv",
           "Walker2DRandVelEnv"]
