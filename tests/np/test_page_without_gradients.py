"""The page about searching without gradients: its code runs, and its columns are those that are logged."""
import re
import textwrap
from pathlib import Path

import numpy as np

from meta_policy_search.baselines import ZeroBaseline
from meta_policy_search.envs import MetaPointEnv
from meta_policy_search.envs.env_spec import EnvSpec
from meta_policy_search.local_runner import LocalRunner
from meta_policy_search.np.algos import CEM, CMAES, RLAlgorithm
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.samplers.population_sampler import PopulationSampler
from meta_policy_search.utils import logger

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "without_gradients.rst"


def code_blocks():
    pattern = r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)"
    return [textwrap.dedent(block) for block in re.findall(pattern, PAGE.read_text(), flags=re.MULTILINE)]


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    """Given fewer and shorter paths, then training, going on with it, and the algorithm of one's own all work."""
    monkeypatch.chdir(tmp_path)
    train, resume, own = code_blocks()
    for long, short in (("n_epochs=30", "n_epochs=2"), ("batch_size=4 * 500", "batch_size=20"),
                        ("max_path_length=500", "max_path_length=20")):
        assert long in train
        train = train.replace(long, short)
    names = {"observation": np.zeros(4)}
    exec(train, names)
    assert names["runner"].step_itr == 2 * 40
    logger.reset()
    exec(resume.replace("n_epochs=60", "n_epochs=3"), names)
    assert names["runner"].epoch == 3 and (tmp_path / "data" / "cart_pole" / "params.pkl").exists()
    logger.reset()
    names = {"RLAlgorithm": RLAlgorithm, "PopulationSampler": PopulationSampler, "np": np, "logger": logger}
    exec(own, names)
    runner = LocalRunner()
    runner.setup(names["HillClimbing"](DeterministicMLPPolicy(2, 2), max_path_length=5), MetaPointEnv())
    first = runner.train(1, 5)
    assert runner.resume(10) > first > -np.inf


def test_the_columns_explained_are_those_that_are_logged():
    logged = set()
    for cls in (CEM, CMAES):
        env = MetaPointEnv()
        algo = cls(EnvSpec.of(env), DeterministicMLPPolicy(2, 2, ()), ZeroBaseline(), n_samples=20, max_path_length=3)
        runner = LocalRunner(callbacks=[lambda runner, row: logged.update(row)])
        runner.setup(algo, env)
        runner.train(1, 3)
    cells = re.findall(r"^   \* - (``.*)$", PAGE.read_text(), flags=re.MULTILINE)
    assert sorted(logged) == sorted(re.findall(r"``([^`]+)``", " ".join(cells)))
