"""Tests the comparison of gradient steps with CEM and CMA-ES."""
import json
from types import SimpleNamespace

import numpy as np
import pytest

import meta_policy_search as mps
from experiments import baselines_without_gradients, vpg_maml
from experiments.baselines_without_gradients import SearchAdaptation, compare_with_search
from meta_policy_search.envs import MetaPointEnvCorner
from meta_policy_search.utils import logger
from tests.helpers.runs import read_csv
from tests.helpers.sampling import make_policy

T = 10


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A run with two tasks; tests must not change it."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    logger.reset()
    assert vpg_maml.main(["--env", "MetaPointEnvCornerGoals", "--smoke", "--dump_path", str(folder)]) == 0
    return folder


@pytest.mark.thorough(but="cem")
@pytest.mark.parametrize("search", ["cem", "cma_es"])
def test_search_adapts_without_changing_the_policy(search):
    """The gain from adaptation is significant, and a second evaluation gives the same numbers."""
    env = MetaPointEnvCorner(reward_type="dense")
    policy = make_policy(env)
    before = policy.get_flat_params()
    evaluator = mps.MetaEvaluator(SearchAdaptation(policy, env, search, 6, 1.0), env, None, 6, T)
    evaluation = evaluator.evaluate(tasks=8, num_steps=6)
    assert evaluation.gain.mean[-1] > 1.5 * evaluation.gain.half_width[-1]
    np.testing.assert_array_equal(evaluation.timesteps, np.broadcast_to(np.arange(7) * 6 * T, (1, 8, 7)))
    np.testing.assert_array_equal(policy.get_flat_params(), before)
    np.testing.assert_array_equal(evaluator.evaluate(tasks=8, num_steps=2).returns, evaluation.returns[..., :3])


@pytest.mark.thorough
def test_script_compares_at_equal_environment_steps(run_folder, tmp_path, capsys):
    flags = [str(run_folder), "--num_tasks", "3", "--num_steps", "1", "--search_steps", "2", "--rollouts", "4"]
    assert baselines_without_gradients.main([*flags, "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("std 0.1") == 2
    first, *searches = json.loads((tmp_path / "evaluation.json").read_text())
    assert len(searches) == 2 and len(read_csv(tmp_path / "returns.csv")) == 2 + 3 + 3
    for search in searches:
        assert np.shape(search["timesteps"]) == (1, 3, 3) and search["tasks"] == first["tasks"]
        np.testing.assert_allclose(np.array(search["returns"])[..., 0], np.array(first["returns"])[..., 0], rtol=1e-5)
    with pytest.raises(SystemExit, match="2"):
        baselines_without_gradients.main([*flags, "--output", str(tmp_path)])
    assert "output: expected a file that does not exist" in capsys.readouterr().err


def test_invalid_arguments_are_refused():
    policy, env = make_policy(MetaPointEnvCorner()), MetaPointEnvCorner()
    with pytest.raises(ValueError, match="init_std: expected a finite number above 0, got 0"):
        SearchAdaptation(policy, env, "cem", 6, 0)
    with pytest.raises(ValueError, match="search: expected one of 'cem', 'cma_es', got 'sgd'"):
        SearchAdaptation(policy, env, "sgd", 6, 0.1)
    with pytest.raises(ValueError, match="expected a run of an algorithm with gradient steps, got one of RL2"):
        compare_with_search(SimpleNamespace(algo=object.__new__(mps.RL2)))
