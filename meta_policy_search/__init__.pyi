# Table of the names `meta_policy_search.NAME`, for editors and type checkers. `__init__.py` reads it at run time: names
# that are imported as themselves.
from . import actors as actors, algos as algos, baselines as baselines, envs as envs, evaluation as evaluation
from . import meta_algos as meta_algos, np as np, ops as ops, optimizers as optimizers, plotting as plotting
from . import policies as policies, pretrained_policies as pretrained_policies, samplers as samplers, utils as utils
from .actors import Actor as Actor, actor_from_policy as actor_from_policy
from .algos import DDPG as DDPG
from .baselines import Baseline as Baseline, GaussianMLPBaseline as GaussianMLPBaseline
from .baselines import LinearFeatureBaseline as LinearFeatureBaseline, LinearTimeBaseline as LinearTimeBaseline
from .baselines import ZeroBaseline as ZeroBaseline
from .envs import BatchableMetaEnv as BatchableMetaEnv, BatchedEnv as BatchedEnv, CartPoleMassEnv as CartPoleMassEnv
from .envs import EnvSpec as EnvSpec, KhazadDumEnv as KhazadDumEnv, PendulumMassEnv as PendulumMassEnv
from .envs import GymnasiumMetaEnv as GymnasiumMetaEnv, MetaBernoulliBanditEnv as MetaBernoulliBanditEnv
from .envs import MetaEnv as MetaEnv, MetaPointEnv as MetaPointEnv, MetaPointEnvCorner as MetaPointEnvCorner
from .envs import MetaPointEnvCornerGoals as MetaPointEnvCornerGoals, MetaPointEnvMomentum as MetaPointEnvMomentum
from .envs import MetaPointEnvNavigation as MetaPointEnvNavigation, MetaPointEnvOrigin as MetaPointEnvOrigin
from .envs import MetaPointEnvSemicircle as MetaPointEnvSemicircle
from .envs import MetaPointEnvV2 as MetaPointEnvV2, MetaPointEnvWalls as MetaPointEnvWalls
from .envs import MetaTabularMDPEnv as MetaTabularMDPEnv, MetaWorldML1 as MetaWorldML1, MetaWorldML10 as MetaWorldML10
from .envs import MetaWorldML25 as MetaWorldML25, MetaWorldML45 as MetaWorldML45, NormalizedEnv as NormalizedEnv
from .envs import PhysicsError as PhysicsError, RandomEnv as RandomEnv, SingleTaskEnv as SingleTaskEnv
from .envs import TrialEnv as TrialEnv, VariedEnv as VariedEnv, vary as vary
from .envs import available_envs as available_envs, get_env_class as get_env_class, make_env as make_env
from .envs import find_env as find_env, load_tasks as load_tasks, normalize as normalize, register_env as register_env
from .envs.mujoco_envs import AntRandDirec2DEnv as AntRandDirec2DEnv, AntRandDirecEnv as AntRandDirecEnv
from .envs.mujoco_envs import AntRandGoalEnv as AntRandGoalEnv, HalfCheetahRandDirecEnv as HalfCheetahRandDirecEnv
from .envs.mujoco_envs import HalfCheetahRandBodyEnv as HalfCheetahRandBodyEnv
from .envs.mujoco_envs import HalfCheetahRandMassEnv as HalfCheetahRandMassEnv
from .envs.mujoco_envs import HalfCheetahRandMassVelEnv as HalfCheetahRandMassVelEnv
from .envs.mujoco_envs import HalfCheetahRandVelEnv as HalfCheetahRandVelEnv, HopperRandParamsEnv as HopperRandParamsEnv
from .envs.mujoco_envs import HumanoidRandDirec2DEnv as HumanoidRandDirec2DEnv
from .envs.mujoco_envs import HumanoidRandDirecEnv as HumanoidRandDirecEnv, SwimmerRandVelEnv as SwimmerRandVelEnv
from .envs.mujoco_envs import ReacherRandGoalEnv as ReacherRandGoalEnv
from .envs.mujoco_envs import Walker2DRandMassVelEnv as Walker2DRandMassVelEnv
from .envs.mujoco_envs import Walker2DRandDirecEnv as Walker2DRandDirecEnv
from .envs.mujoco_envs import Walker2DRandParamsEnv as Walker2DRandParamsEnv, Walker2DRandVelEnv as Walker2DRandVelEnv
from .evaluation import AdaptedPolicy as AdaptedPolicy, AdaptedRecurrentPolicy as AdaptedRecurrentPolicy, adapt as adapt
from .evaluation import adapt_with as adapt_with
from .comparison import Comparison as Comparison, compare as compare, sweep as sweep
from .evaluation import Evaluation as Evaluation, MetaEvaluator as MetaEvaluator, Recording as Recording
from .evaluation import TrialEvaluation as TrialEvaluation, TrialEvaluator as TrialEvaluator
from .evaluation import EvalCallback as EvalCallback, load_evaluator as load_evaluator
from .local_runner import LocalRunner as LocalRunner
from .meta_algos import AdaptationStep as AdaptationStep, DICEMAML as DICEMAML, EMAML as EMAML
from .meta_algos import MAMLAlgo as MAMLAlgo, MetaAlgo as MetaAlgo
from .meta_algos import MetaObjective as MetaObjective, ProMP as ProMP, RL2 as RL2
from .meta_algos import TRPOMAML as TRPOMAML, VPG_DICEMAML as VPG_DICEMAML, VPGMAML as VPGMAML
from .meta_trainer import EarlyStopping as EarlyStopping, Trainer as Trainer
from .np.algos import CEM as CEM, CMAES as CMAES, NOP as NOP, MetaRLAlgorithm as MetaRLAlgorithm
from .np.algos import OffPolicyRLAlgorithm as OffPolicyRLAlgorithm, RLAlgorithm as RLAlgorithm
from .np.exploration_policies import ExplorationPolicy as ExplorationPolicy, GaussianNoisePolicy as GaussianNoisePolicy
from .np.exploration_policies import OrnsteinUhlenbeckPolicy as OrnsteinUhlenbeckPolicy
from .np.loading import load_policy as load_policy
from .np.replay_buffer import ReplayBuffer as ReplayBuffer
from .optimizers import ConjugateGradientOptimizer as ConjugateGradientOptimizer
from .optimizers import FiniteDifferenceHvp as FiniteDifferenceHvp
from .optimizers import MAMLFirstOrderOptimizer as MAMLFirstOrderOptimizer, MAMLPPOOptimizer as MAMLPPOOptimizer
from .optimizers import Optimizer as Optimizer
from .policies import Categorical as Categorical, CategoricalMLPPolicy as CategoricalMLPPolicy
from .policies import CategoricalRecurrentPolicy as CategoricalRecurrentPolicy
from .policies import GaussianRecurrentPolicy as GaussianRecurrentPolicy, RecurrentPolicy as RecurrentPolicy
from .policies import DiagonalGaussian as DiagonalGaussian, Distribution as Distribution
from .policies import GaussianMLPPolicy as GaussianMLPPolicy, MetaCategoricalMLPPolicy as MetaCategoricalMLPPolicy
from .policies import MetaGaussianMLPPolicy as MetaGaussianMLPPolicy, MetaPolicy as MetaPolicy, Policy as Policy
from .pretrained_policies import Pretrained as Pretrained, load_pretrained as load_pretrained, pretrained as pretrained
from .registry import available_algorithms as available_algorithms, get_algorithm as get_algorithm
from .registry import register_algorithm as register_algorithm
from .resume_check import check_resume as check_resume
from .run import Run as Run, load_run as load_run, train as train
from .samplers import DiceMetaSampleProcessor as DiceMetaSampleProcessor, DiceSampleProcessor as DiceSampleProcessor
from .samplers import MetaSampleProcessor as MetaSampleProcessor, MetaSampler as MetaSampler
from .samplers import RayOptions as RayOptions, RoML as RoML
from .samplers import TaskSampler as TaskSampler, WorstTaskSampler as WorstTaskSampler
from .samplers import SampleProcessor as SampleProcessor, Sampler as Sampler, SingleTaskSampler as SingleTaskSampler
from .samplers import TrialSampleProcessor as TrialSampleProcessor, check_env as check_env
from .samplers.vectorized_env_executor import EnvValueError as EnvValueError, EnvWorkerError as EnvWorkerError
from .samplers.vectorized_env_executor import MetaBatchedEnvExecutor as MetaBatchedEnvExecutor
from .samplers.vectorized_env_executor import MetaEnvExecutor as MetaEnvExecutor
from .samplers.vectorized_env_executor import MetaIterativeEnvExecutor as MetaIterativeEnvExecutor
from .samplers.vectorized_env_executor import MetaParallelEnvExecutor as MetaParallelEnvExecutor
from .trajectory_batch import TrajectoryBatch as TrajectoryBatch
from .utils import logger as logger, set_seed as set_seed
from .utils.callbacks import StatefulCallback as StatefulCallback
from .utils.snapshotter import load_snapshot as load_snapshot

__version__: str
