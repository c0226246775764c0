"""The documentation keeps up with the code."""
import re
from pathlib import Path

from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import make_env
from meta_policy_search.meta_algos import TRPOMAML, VPGMAML, ProMP
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.policies import MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.utils import logger
from meta_policy_search.utils.quiet_gym import gym

COLUMNS_PAGE = Path(__file__).resolve().parent.parent / "docs" / "columns.rst"
NUM_TASKS, NUM_ROLLOUTS, NUM_STEPS = 2, 2, 3


def logged_columns(algo_class, env_name="HalfCheetahRandVelEnv", policy_class=MetaGaussianMLPPolicy):
    """Columns that one iteration of a tiny training logs, with `Step_i-` for each adaptation step."""
    env = make_env(env_name)
    policy = policy_class(NUM_TASKS, gym.spaces.flatdim(env.observation_space), gym.spaces.flatdim(env.action_space),
                          hidden_sizes=(2,))
    sampler = MetaSampler(env, policy, NUM_ROLLOUTS, NUM_TASKS, NUM_STEPS)
    processor = MetaSampleProcessor(LinearFeatureBaseline())
    algo = algo_class(policy, meta_batch_size=NUM_TASKS)
    row = Trainer(algo, env, sampler, processor, policy, n_itr=1, diagnostics=True).train_itr()
    return {re.sub(r"^Step_\d+-", "Step_i-", column) for column in row}


def test_the_columns_explained_are_those_that_are_logged():
    logger.set_level(logger.DISABLED)
    logged = set().union(*map(logged_columns, (ProMP, TRPOMAML, VPGMAML)))
    logged |= logged_columns(VPGMAML, "MetaTabularMDPEnv", MetaCategoricalMLPPolicy)
    logged |= logged_columns(VPGMAML, "AntRandDirecEnv")
    cells = re.findall(r"^   \* - (``.*)$", COLUMNS_PAGE.read_text(), flags=re.MULTILINE)
    assert sorted(logged) == sorted(re.findall(r"``([^`]+)``", " ".join(cells)))
