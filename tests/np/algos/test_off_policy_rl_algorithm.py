"""Tests each argument of the base class of off-policy algorithms."""
import re
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from meta_policy_search import EnvSpec, LocalRunner, MetaPointEnv, ReplayBuffer, SingleTaskSampler, logger
from meta_policy_search.np.algos import OffPolicyRLAlgorithm
from meta_policy_search.np.exploration_policies import GaussianNoisePolicy
from meta_policy_search.np.policies import DeterministicMLPPolicy
from tests.helpers.paths import paths_with_returns
from tests.helpers.runs import read_rows

T = 5  # path length; paths never end early
SPEC = EnvSpec.of(MetaPointEnv())


class Recording(OffPolicyRLAlgorithm):
    """Records its batches."""

    def init_opt(self):
        pass

    def optimize_policy(self, batches):
        self.batches = list(batches)
        return {"Loss": float(len(self.batches))}


def make(**arguments):
    policy = DeterministicMLPPolicy(2, 2, ())
    buffer = ReplayBuffer(SPEC, 1000)
    return Recording(SPEC, policy, None, buffer, **{"max_path_length": T, "min_buffer_size": 1, "steps_per_epoch": 2,
                                                    **arguments})


def train(algo, n_epochs=1, batch_size=T, env=None):
    rows = []
    runner = LocalRunner(callbacks=[lambda runner, row: rows.append(row)])
    runner.setup(algo, MetaPointEnv() if env is None else env)
    return runner, rows, runner.train(n_epochs, batch_size)


def test_steps_per_epoch_is_the_number_of_train_once_calls():
    algo, calls = make(steps_per_epoch=3), []
    train_once = algo.train_once
    algo.train_once = lambda itr, paths: calls.append((itr, len(paths))) or train_once(itr, paths)
    runner, _, _ = train(algo, n_epochs=2, batch_size=2 * T)
    assert calls == [(itr, 2) for itr in range(6)] and runner.step_itr == 6
    assert runner.total_timesteps_sampled == algo.replay_buffer.n_transitions_stored == 6 * 2 * T


def test_path_length_defaults_to_the_limit_of_the_environment():
    env = gymnasium.make("Pendulum-v1", max_episode_steps=9, disable_env_checker=True)
    policy = DeterministicMLPPolicy(3, 1, ())
    algo = Recording(env, policy, None, ReplayBuffer(env, 100), min_buffer_size=1, steps_per_epoch=1)
    runner, _, _ = train(algo, env=env, batch_size=10)
    assert [len(path["rewards"]) for path in runner.step_path] == [9, 9]
    with pytest.raises(ValueError, match="max_path_length: expected .*MetaPointEnvNavigation has no time limit"):
        train(make(max_path_length=None))


@pytest.mark.parametrize("arguments, length", [({}, T), ({"max_eval_path_length": 8}, 8),
                                               ({"max_eval_path_length": 2}, 2)])
def test_max_eval_path_length_limits_evaluation_paths(arguments, length):
    algo = make(**arguments, num_eval_paths=3)
    paths = SingleTaskSampler(algo, MetaPointEnv()).obtain_evaluation_samples(0, 3)
    assert [len(path["rewards"]) for path in paths] == [length] * 3


def test_n_train_steps_and_buffer_batch_size_set_number_and_size_of_updates():
    algo = make(n_train_steps=4, buffer_batch_size=6)
    algo.policy.set_flat_params(np.ones(6))  # all transitions differ
    _, rows, _ = train(algo)
    assert [batch["rewards"].shape for batch in algo.batches] == [(6,)] * 4
    assert rows[0]["Loss"] == 4.0
    assert not np.array_equal(algo.batches[0]["observations"], algo.batches[1]["observations"])


def test_updates_start_at_min_buffer_size():
    algo = make(min_buffer_size=2 * T)
    algo.batches = None
    algo.train_once(0, paths_with_returns(*[1.0] * 4))  # 8 transitions
    assert algo.batches is None
    algo.train_once(1, paths_with_returns(1.0))  # 10
    assert len(algo.batches) == 50


@pytest.mark.parametrize("min_buffer_size, warnings", [(2 * T, 0), (2 * T + 1, 1)])
def test_training_without_an_update_warns_once(min_buffer_size, warnings, capsys):
    train(make(min_buffer_size=min_buffer_size))  # collects 2 T transitions
    assert capsys.readouterr().out.count(
        "the policy was not updated, because the replay buffer contains 10 transitions, fewer than "
        "min_buffer_size=11") == warnings


def test_rollout_batch_size_sets_the_number_of_environments_without_changing_data():
    paths = []
    for size in (1, 3, 50):
        algo = make(rollout_batch_size=size)
        sampler = SingleTaskSampler(algo, MetaPointEnv())
        algo.policy.set_flat_params(np.arange(6.0))
        paths.append(sampler.obtain_samples(3, 4 * T))
        ((_, executor),) = sampler._executors.values()
        assert executor.num_envs == min(size, 4)
    for other in paths[1:]:
        for path, expected in zip(other, paths[0], strict=True):
            np.testing.assert_array_equal(path["actions"], expected["actions"])


def test_reward_scale_applies_only_to_learning():
    algo = make(reward_scale=-3.0)
    assert algo.train_once(0, paths_with_returns(5.0)) == 5.0
    assert set(np.concatenate([batch["rewards"] for batch in algo.batches])) == {-12.0, -3.0}
    assert set(algo.replay_buffer.sample_transitions(100)["rewards"]) == {4.0, 1.0}


@pytest.mark.parametrize("smooth, expected", [(True, [1.0, 2.0, 2.5]), (False, [1.0, 3.0, 3.5])])
def test_smooth_return_averages_over_epochs(smooth, expected):
    algo = make(smooth_return=smooth, steps_per_epoch=1, num_eval_paths=0)
    returns = iter([[1.0], [3.0], [3.0, 4.0]])  # mean over the paths of three epochs
    expected = [1.0, 2.0, np.mean([1, 3, 3, 4])] if smooth else expected
    runner, rows = LocalRunner(), []
    runner.setup(algo, None, lambda algo, env: SimpleNamespace(
        start_worker=lambda: None, shutdown_worker=lambda: None,
        obtain_samples=lambda itr, batch_size: paths_with_returns(*next(returns))))
    runner.callbacks = [lambda runner, row: rows.append(row["AverageReturn"])]
    assert runner.train(3, 1) == expected[-1]
    assert rows == pytest.approx(expected)


@pytest.mark.parametrize("name, value", [
    ("buffer_batch_size", 0.5), ("min_buffer_size", 10**6), ("max_eval_path_length", -1), ("reward_scale", np.nan),
    ("exploration_policy", GaussianNoisePolicy(SPEC, DeterministicMLPPolicy(2, 2, ())))])
def test_assigned_arguments_are_checked(name, value):
    algo = make()
    with pytest.raises((TypeError, ValueError), match=f"^{name}: expected "):
        setattr(algo, name, value)
        train(algo)


def test_smoothed_return_covers_the_last_100_paths():
    algo = make()
    algo.train_once(0, paths_with_returns(*[0.0] * 80))
    assert algo.train_once(1, paths_with_returns(*[1.0] * 60)) == pytest.approx(0.6)


def test_exploration_policy_explores_and_policy_is_evaluated():
    algo = make()
    algo.exploration_policy = GaussianNoisePolicy(SPEC, algo.policy, sigma=0.01)
    algo.policy.set_flat_params(np.zeros(6))
    sampler = SingleTaskSampler(algo, MetaPointEnv())
    noise = np.concatenate([path["actions"] for path in sampler.obtain_samples(0, 200 * T)])
    assert noise.std() == pytest.approx(0.01, rel=0.1)
    (path,) = sampler.obtain_evaluation_samples(0, 1)
    np.testing.assert_array_equal(path["actions"], 0.0)
    algo.exploration_policy = None
    np.testing.assert_array_equal(SingleTaskSampler(algo, MetaPointEnv()).obtain_samples(0, T)[0]["actions"], 0.0)


def test_evaluation_uses_separate_random_numbers_and_is_logged(tmp_path):
    env = gymnasium.make("Pendulum-v1", disable_env_checker=True)
    algo = Recording(env, DeterministicMLPPolicy(3, 1, ()), None, ReplayBuffer(env, 100), max_path_length=T,
                     min_buffer_size=1, steps_per_epoch=1, discount=0.5, num_eval_paths=4)
    sampler = SingleTaskSampler(algo, env)
    starts = [paths[0]["observations"][0] for paths in (sampler.obtain_samples(0, T),
                                                        sampler.obtain_evaluation_samples(0, 1))]
    assert (starts[0] != starts[1]).any()
    runner, (row,), _ = train(algo, env=env)
    paths = SingleTaskSampler(algo, env).obtain_evaluation_samples(1, 4)
    returns = [path["rewards"].sum() for path in paths]
    assert row["Evaluation-AverageReturn"] == pytest.approx(np.mean(returns)) and row["Evaluation-NumTrajs"] == 4
    assert row["Evaluation-AverageDiscountedReturn"] == pytest.approx(
        np.mean([path["rewards"] @ 0.5 ** np.arange(T) for path in paths]))
    assert runner.total_timesteps_sampled == T  # the evaluation is not counted
    algo.num_eval_paths = 0
    assert not any(key.startswith("Evaluation-") for key in train(algo, env=env)[1][0])


def test_processed_samples():
    paths = paths_with_returns(3.0, 5.0, -1.0, 2.0)
    paths[0]["env_infos"] = {"is_success": np.array([True, False])}
    paths[1]["env_infos"] = {"success": np.array([0.0, np.nan])}
    paths[2]["complete"] = False
    answer = make().process_samples(0, paths)
    assert answer == {"undiscounted_returns": [3.0, 5.0, -1.0, 2.0], "success_history": [1.0, 0.0, 0.0, 0.0],
                      "complete": [True, True, False, True]}


def test_logged_row(tmp_path):
    logger.configure(tmp_path, ["csv"])
    algo = make()
    paths = paths_with_returns(2.0, 4.0)
    paths[0]["env_infos"] = paths[1]["env_infos"] = {"success": np.array([0.0, 1.0])}
    algo.train_once(0, paths)
    algo.log_diagnostics(paths)
    row = logger.dumpkvs()
    assert {"AverageReturn": 3.0, "SuccessRate": 1.0, "BufferSize": 4, "Loss": 50.0}.items() <= row.items()
    assert len(read_rows(tmp_path)) == 1


@pytest.mark.parametrize("name, value", [
    *((name, 0) for name in ("steps_per_epoch", "max_path_length", "n_train_steps", "buffer_batch_size",
                             "min_buffer_size", "rollout_batch_size")),
    ("max_eval_path_length", -1), ("min_buffer_size", 1001), ("num_eval_paths", -1), ("discount", 1.01),
    ("reward_scale", np.inf), ("use_target", 1), ("smooth_return", None),
    ("exploration_policy", GaussianNoisePolicy(SPEC, DeterministicMLPPolicy(2, 2))),  # based on another policy
])
def test_arguments_are_checked(name, value):
    with pytest.raises((TypeError, ValueError), match=f"^{name}: expected .*, got "):
        make(**{name: value})


def test_invalid_buffer_policy_or_path_is_refused():
    with pytest.raises(TypeError, match=re.escape("replay_buffer: expected a ReplayBuffer, got []")):
        Recording(SPEC, DeterministicMLPPolicy(2, 2), None, [])
    with pytest.raises(ValueError, match=r"policy.obs_dim: expected \(2,\)"):
        Recording(SPEC, DeterministicMLPPolicy(3, 2), None, ReplayBuffer(SPEC, 10))
    with pytest.raises(ValueError, match="paths: expected at least one path"):
        make().train_once(0, [])
    with pytest.raises(TypeError, match="abstract"):
        OffPolicyRLAlgorithm(SPEC, DeterministicMLPPolicy(2, 2), None, ReplayBuffer(SPEC, 10))
