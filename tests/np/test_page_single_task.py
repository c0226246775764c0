"""Tests the page about single tasks: its code runs, and its columns are those that are logged."""
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

from meta_policy_search.algos import DDPG
from meta_policy_search.baselines import ZeroBaseline
from meta_policy_search.envs import MetaPointEnv
from meta_policy_search.envs.env_spec import EnvSpec
from meta_policy_search.local_runner import LocalRunner
from meta_policy_search.np.algos import CEM, CMAES
from meta_policy_search.np.exploration_policies import OrnsteinUhlenbeckPolicy
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.np.q_functions import MLPQFunction
from meta_policy_search.np.replay_buffer import ReplayBuffer
from meta_policy_search.utils import logger

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "single_task.rst"
SHORTER = {"n_epochs=30": "n_epochs=2", "batch_size=4 * 500": "batch_size=20", "max_path_length=500":
           "max_path_length=20", "n_epochs=60": "n_epochs=3", "n_epochs=15": "n_epochs=1", "batch_size=200":
           "batch_size=20", "max_path_length=200": "max_path_length=20", "n_train_steps=200": "n_train_steps=2",
           "min_buffer_size=1000": "min_buffer_size=20"}


def code_blocks():
    """Returns the code of the page with settings that take seconds instead of minutes."""
    text = PAGE.read_text()
    for long, short in SHORTER.items():
        assert text.count(long) == 1, long
        text = text.replace(long, short)
    pattern = r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)"
    return [textwrap.dedent(block) for block in re.findall(pattern, text, flags=re.MULTILINE)]


@pytest.mark.thorough
def test_page_code_runs(tmp_path, monkeypatch):
    """With fewer and shorter paths, training, resuming and the custom algorithm run."""
    monkeypatch.chdir(tmp_path)
    search, resume, ddpg, own = code_blocks()
    names = {"observation": np.zeros(4)}  # all examples use the objects of the first one
    exec(search, names)
    assert names["runner"].step_itr == 2 * 40
    logger.reset()
    exec(resume, names)
    assert names["runner"].epoch == 3 and (tmp_path / "data" / "cart_pole" / "params.pkl").exists()
    logger.reset()
    exec(ddpg, names)
    assert names["runner"].step_itr == 5 and (tmp_path / "data" / "pendulum" / "params.pkl").exists()
    logger.reset()
    exec(own, names)
    runner = LocalRunner()
    runner.setup(names["HillClimbing"](DeterministicMLPPolicy(2, 2), max_path_length=5), MetaPointEnv())
    first = runner.train(1, 5)
    assert runner.resume(10) > first > -np.inf


def columns_of(algo):
    """Returns the columns of an epoch; `Evaluation-AverageReturn` represents all evaluation columns."""
    logged = set()
    runner = LocalRunner(callbacks=[lambda runner, row: logged.update(row)])
    runner.setup(algo, MetaPointEnv())
    runner.train(1, 3)
    return {key for key in logged if not key.startswith("Evaluation-")} | (logged & {"Evaluation-AverageReturn"})


def test_documented_columns_equal_logged_columns():
    spec, policy = EnvSpec.of(MetaPointEnv()), DeterministicMLPPolicy(2, 2, ())
    logged = {"SuccessRate"}  # logged if the environment reports successes
    for cls in (CEM, CMAES):
        logged |= columns_of(cls(spec, policy, ZeroBaseline(), n_samples=20, max_path_length=3))
    logged |= columns_of(DDPG(spec, policy, MLPQFunction(2, 2, ()), ReplayBuffer(spec, 10), max_path_length=3,
                              exploration_policy=OrnsteinUhlenbeckPolicy(spec, policy), min_buffer_size=1))
    cells = re.findall(r"^   \* - (``.*)$", PAGE.read_text(), flags=re.MULTILINE)
    assert sorted(logged) == sorted(re.findall(r"``([^`]+)``", " ".join(cells)))
