"""Tests the success rates of all algorithms, evaluations and tables: one rule, `samplers.paths.has_success`."""
import gym
import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.evaluation.evaluation import Evaluation
from meta_policy_search.plotting.progress import final_success
from meta_policy_search.run_folder import RunInfo
from meta_policy_search.samplers.paths import has_success, success_rate
from tests.helpers.runs import read_csv

SMALL = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 4, "progress_bar": False,
         "log_formats": ["csv"]}


@pytest.mark.parametrize("infos, expected", [
    ({"success": [False, True, False]}, True),  # any step counts
    ({"success": [0.0, 0.0, 0.0]}, False),
    ({"is_success": [[0.0], [1.0], [0.0]]}, True),  # shape (1,)
    ({"is_success": [np.nan, np.nan, 1.0]}, True),  # missing in the first steps
    ({"is_success": [np.nan, np.nan, np.nan]}, False),
    ({"success": [None, None, True]}, True),
    ({"success": [0.0, 0.0], "is_success": [0.0, 1.0]}, True),
    ({"success": [None, None]}, False),
    ({"success": ["no", "yes"]}, None), ({"success": [None, "yes"]}, None),  # another info with this name
    ({"reward_success": [True]}, None), ({}, None),
])
def test_any_true_step_is_a_success_and_a_missing_info_is_none(infos, expected):
    path = {"env_infos": {name: np.array(values) for name, values in infos.items()}}
    assert has_success(path) is expected
    rate = success_rate([path, {"env_infos": {}}])
    np.testing.assert_equal(rate, {True: 0.5, False: 0.0, None: np.nan}[expected])


class Attempts(mps.MetaEnv):
    """The third step of a path succeeds in tasks above 0; other steps have no info."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float64)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float64)

    def sample_tasks(self, n_tasks, rng=None):
        return [1.0, -1.0] * (n_tasks // 2) + [1.0] * (n_tasks % 2)

    def set_task(self, task):
        self.task = task

    def get_task(self):
        return self.task

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.zeros(1), {}

    def step(self, action):
        self.t += 1
        return np.zeros(1), 1.0, False, False, {"is_success": np.array([True])} if self.t == 3 and self.task > 0 else {}


@pytest.mark.thorough(but="vpg_maml")
@pytest.mark.parametrize("algo", ["vpg_maml", "rl2"])
def test_rows_and_evaluations_report_the_share_of_successful_paths(algo, tmp_path):
    """Given that paths succeed in one of two tasks, then all success rates are one half."""
    run = mps.train(Attempts(), algo, 2, dump_path=tmp_path / "run", eval_every=2, eval_tasks=2, **SMALL)
    np.testing.assert_array_equal(run.progress["Step_0-SuccessRate"], 0.5)
    for name in ("Eval-SuccessBefore", "Eval-SuccessAfter"):
        np.testing.assert_array_equal(run.progress[name], [np.nan, 0.5])
    assert final_success(run.progress) == RunInfo.read(run.folder).success == 0.5
    evaluation = run.evaluate(tasks=[1.0, -1.0, -1.0, -1.0], num_steps=1, seeds=(1, 2))
    assert evaluation.success.shape == (2, 4, 2)
    np.testing.assert_array_equal(evaluation.success[0, :2], [[1.0, 1.0], [0.0, 0.0]])
    np.testing.assert_array_equal(evaluation.success_rate, [0.25, 0.25])
    assert "success" in str(evaluation) and "0.25" in str(evaluation)


def test_evaluations_without_successes_have_no_rate(tmp_path):
    returns = np.zeros((1, 2, 2))
    arguments = returns, ([1, 2],), True, (1,), None, 3, 4, 24, np.zeros((1, 2, 2), int), 1
    plain, other = Evaluation("a", *arguments), Evaluation("b", *arguments, np.array([[[0.0, 1.0], [0.5, 0.0]]]))
    assert plain.success_rate is None and "success" not in plain.table()
    plain.write_csv(tmp_path / "plain.csv")
    assert "success_rate" not in (tmp_path / "plain.csv").read_text()
    rows = [line.split() for line in plain.table(other).splitlines()]
    assert ["success", "rate", "0.25", "0.50"] in rows
    plain.write_csv(tmp_path / "both.csv", other)
    assert [float(row["success_rate"]) for row in read_csv(tmp_path / "both.csv")][2:] == [0.25, 0.5]


def test_final_success_is_that_after_the_last_step():
    progress = {"Step_1-SuccessRate": np.array([*[0.0] * 6, 0.5, np.nan]), "Step_0-SuccessRate": np.zeros(8)}
    assert final_success(progress) == 0.5  # in any order of the columns
    assert final_success({"SuccessRate": np.ones(2), "Evaluation-SuccessRate": np.zeros(2)}) == 1.0
    assert final_success({"Step_0-AverageReturn": np.ones(2)}) is None
    assert final_success({"SuccessRate": np.full(2, np.nan)}) is None
