"""The documentation keeps up with the code."""
import re
from pathlib import Path

from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import make_env
from meta_policy_search.meta_algos import TRPOMAML, VPGMAML, ProMP
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.utils import logger

COLUMNS_PAGE = Path(__file__).resolve().parent.parent / "docs" / "columns.rst"
NUM_TASKS, NUM_ROLLOUTS, NUM_STEPS = 2, 2, 3


def logged_columns(algo_class):
    """Columns that one iteration of a tiny training logs, with `Step_i-` for each adaptation step."""
    env = make_env("HalfCheetahRandVelEnv")
    policy = MetaGaussianMLPPolicy(NUM_TASKS, env.observation_space.shape[0], env.action_space.shape[0],
                                   hidden_sizes=(2,))
    sampler = MetaSampler(env, policy, NUM_ROLLOUTS, NUM_TASKS, NUM_STEPS)
    processor = MetaSampleProcessor(LinearFeatureBaseline())
    row = Trainer(algo_class(policy, meta_batch_size=NUM_TASKS), env, sampler, processor, policy, n_itr=1).train_itr()
    return {re.sub(r"^Step_\d+-", "Step_i-", column) for column in row}


def test_the_columns_explained_are_those_that_are_logged():
    logger.set_level(logger.DISABLED)
    logged = set().union(*map(logged_columns, (ProMP, TRPOMAML, VPGMAML)))
    cells = re.findall(r"^   \* - (``.*)$", COLUMNS_PAGE.read_text(), flags=re.MULTILINE)
    assert sorted(logged) == sorted(re.findall(r"``([^`]+)``", " ".join(cells)))
