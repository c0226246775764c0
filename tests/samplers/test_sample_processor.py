"""Tests SampleProcessor and MetaSampleProcessor: returns, advantages, stacking, log, invalid input."""
import functools
import re

import numpy as np
import pytest
import threadpoolctl

from meta_policy_search.baselines import GaussianMLPBaseline, LinearFeatureBaseline, LinearTimeBaseline, ZeroBaseline
from meta_policy_search.envs.trial_env import EPISODE
from meta_policy_search.samplers import DiceMetaSampleProcessor, DiceSampleProcessor
from meta_policy_search.samplers.base import SampleProcessor, Sampler
from meta_policy_search.samplers.meta_sample_processor import MetaSampleProcessor, TrialSampleProcessor
from meta_policy_search.utils import seeding
from tests.helpers.paths import make_paths, reward_path
from tests.helpers.runs import assert_same
from tests.helpers.sampling import Ending, P, T, sampler_of

DICE = [DiceSampleProcessor, DiceMetaSampleProcessor]


class FixedBaseline:
    """Predicts the `baseline` entry of a path."""

    def fit(self, paths):
        pass

    def predict(self, path):
        return path["baseline"]


def slow_gae(rewards, values, discount, gae_lambda):
    """`A_t = sum_k (discount lambda)^k delta_{t+k}`, `delta_t = r_t + discount V_{t+1} - V_t`, V = 0 after the end."""
    steps = len(rewards)
    advantages = np.zeros(steps)
    for t in range(steps):
        for k in range(steps - t):
            after = values[t + k + 1] if t + k + 1 < steps else 0.0
            delta = rewards[t + k] + discount * after - values[t + k]
            advantages[t] += (discount * gae_lambda) ** k * delta
    return advantages


def slow_returns(rewards, discount):
    return np.array([sum(discount ** k * r for k, r in enumerate(rewards[t:])) for t in range(len(rewards))])


@pytest.mark.parametrize("lengths", [(6, 9, 4), (5, 5), (1,), (1, 8)])
@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("gae_lambda", [0.0, 0.95, 1.0])
def test_advantages_equal_a_slow_loop(lengths, discount, gae_lambda):
    paths = make_paths(lengths)
    samples = SampleProcessor(FixedBaseline(), discount, gae_lambda).process_samples(paths)
    advantages = np.concatenate([slow_gae(p["rewards"], p["baseline"], discount, gae_lambda) for p in paths])
    returns = np.concatenate([slow_returns(p["rewards"], discount) for p in paths])
    np.testing.assert_allclose(samples["advantages"], advantages, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(samples["returns"], returns, rtol=1e-12, atol=1e-12)


def test_baseline_is_fitted_before_it_predicts():
    paths = make_paths()
    processor = SampleProcessor(LinearFeatureBaseline(), discount=0.9, gae_lambda=0.95)
    samples = processor.process_samples(paths)
    baseline = LinearFeatureBaseline()
    baseline.fit([{"observations": p["observations"], "returns": slow_returns(p["rewards"], 0.9)} for p in paths])
    expected = np.concatenate([slow_gae(p["rewards"], baseline.predict(p), 0.9, 0.95) for p in paths])
    np.testing.assert_allclose(samples["advantages"], expected, rtol=1e-9, atol=1e-9)
    assert processor.baseline.get_param_values() is not None


def test_normalize_adv_and_positive_adv():
    paths = make_paths()

    def advantages(**kwargs):
        return SampleProcessor(ZeroBaseline(), **kwargs).process_samples(paths)["advantages"]

    raw, normalized, positive = advantages(), advantages(normalize_adv=True), advantages(positive_adv=True)
    both = advantages(normalize_adv=True, positive_adv=True)
    np.testing.assert_allclose(normalized, (raw - raw.mean()) / raw.std(), rtol=1e-6)
    assert abs(normalized.mean()) < 1e-12 and normalized.std() == pytest.approx(1.0, abs=1e-7)
    np.testing.assert_allclose(positive, raw - raw.min(), atol=2e-8)
    np.testing.assert_allclose(both, normalized - normalized.min(), atol=2e-8)
    assert 0.0 < positive.min() < 1e-6 and 0.0 < both.min() < 1e-6
    # paths keep the advantages before normalization
    np.testing.assert_array_equal(np.concatenate([path["advantages"] for path in paths]), raw)


def test_samples_are_concatenated_paths():
    paths = make_paths((6, 9, 4))
    samples = SampleProcessor(LinearFeatureBaseline()).process_samples(paths)
    assert set(samples) == {"observations", "actions", "rewards", "returns", "advantages", "env_infos", "agent_infos",
                            "path_lengths"}
    np.testing.assert_array_equal(samples["path_lengths"], [6, 9, 4])
    for key in ("observations", "actions", "rewards", "returns"):
        np.testing.assert_array_equal(samples[key], np.concatenate([path[key] for path in paths]))
    for infos, keys in (("env_infos", {"forward", "image"}), ("agent_infos", {"mean", "log_std"})):
        assert set(samples[infos]) == keys
        for key in keys:
            np.testing.assert_array_equal(samples[infos][key], np.concatenate([path[infos][key] for path in paths]))
    assert samples["observations"].shape == (19, 3) and samples["advantages"].shape == (19,)


@pytest.mark.parametrize("given, expected", [(np.float32, np.float32), (np.float64, np.float64), (int, np.float64)])
def test_float_types_are_kept_and_integers_become_float64(given, expected):
    path = dict(reward_path([1.0, 2.0]), observations=np.ones((2, 1), dtype=given), rewards=np.ones(2, dtype=given))
    samples = SampleProcessor(ZeroBaseline()).process_samples([path])
    assert samples["observations"].dtype == expected and samples["rewards"].dtype == expected
    assert samples["advantages"].dtype == np.float64


def test_lists_are_accepted_and_infos_are_optional():
    path = {"observations": [[1.0], [2.0]], "actions": [[0.0], [0.0]], "rewards": [1.0, 2.0]}
    samples = SampleProcessor(LinearTimeBaseline()).process_samples([path])
    np.testing.assert_array_equal(samples["observations"], [[1.0], [2.0]])
    assert samples["env_infos"] == {} and samples["agent_infos"] == {}


def test_env_infos_that_only_some_paths_have_are_left_out():
    paths = make_paths((3, 3))
    paths[1]["env_infos"]["fell"] = np.ones(3)
    assert set(SampleProcessor(ZeroBaseline()).process_samples(paths)["env_infos"]) == {"forward", "image"}
    paths[0]["env_infos"] = {"fell": np.zeros(3)}
    samples = SampleProcessor(ZeroBaseline()).process_samples(paths)
    np.testing.assert_array_equal(samples["env_infos"]["fell"], [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("cls, meta_cls, further", [
    (SampleProcessor, MetaSampleProcessor, {}),
    (DiceSampleProcessor, DiceMetaSampleProcessor, {"max_path_length": 10, "return_baseline": LinearFeatureBaseline()}),
])
def test_meta_processor_processes_each_task_separately(cls, meta_cls, further):
    meta_paths = {0: make_paths((6, 9), seed=0), 1: make_paths((4, 4, 5), seed=1)}
    arguments = dict(baseline=LinearTimeBaseline(), discount=0.9, gae_lambda=0.95, normalize_adv=True,
                     positive_adv=True, **further)
    meta_samples = meta_cls(**arguments).process_samples(meta_paths)
    assert isinstance(meta_samples, list) and len(meta_samples) == 2
    for task, samples in enumerate(meta_samples):
        alone = cls(**arguments).process_samples(meta_paths[task])
        assert set(samples) == set(alone) | {"adj_avg_rewards"} and "advantages" in alone
        assert_same({key: samples[key] for key in alone}, alone)


def test_adj_avg_rewards_are_standardized_over_all_tasks():
    # given rewards 0, 2 in one task and 4 (twice), 5 in the other: mean 3, variance (9 + 1 + 1 + 1 + 4) / 5 = 3.2
    meta_paths = {0: [reward_path([0.0, 2.0])], 1: [reward_path([4.0]), reward_path([4.0, 5.0])]}
    first, second = MetaSampleProcessor(ZeroBaseline()).process_samples(meta_paths)
    np.testing.assert_allclose(first["adj_avg_rewards"], np.array([-3.0, -1.0]) / np.sqrt(3.2), rtol=1e-7)
    np.testing.assert_allclose(second["adj_avg_rewards"], np.array([1.0, 1.0, 2.0]) / np.sqrt(3.2), rtol=1e-7)
    # padding has no part in mean and standard deviation, and is zero
    padded = DiceMetaSampleProcessor(ZeroBaseline(), 3).process_samples(meta_paths)[1]["adj_avg_rewards"]
    np.testing.assert_allclose(padded, np.array([[1.0, 0.0, 0.0], [1.0, 2.0, 0.0]]) / np.sqrt(3.2), rtol=1e-7)


MAKE_META = [MetaSampleProcessor, functools.partial(DiceMetaSampleProcessor, max_path_length=7)]
ALL_KEYS = {"AverageReturn", "AverageDiscountedReturn", "NumTrajs", "AveragePathLength", "StdReturn", "MaxReturn",
            "MinReturn"}


@pytest.mark.parametrize("log, keys", [
    (False, set()), ("reward", {"AverageReturn"}), ("all", ALL_KEYS), (True, ALL_KEYS),
])
@pytest.mark.parametrize("make", [SampleProcessor, functools.partial(DiceSampleProcessor, max_path_length=9)])
def test_log_levels_and_prefix(logged, make, log, keys):
    processor = make(ZeroBaseline())
    processor.process_samples(make_paths(), log=log)
    assert set(logged) == keys
    logged.clear()
    processor.process_samples(make_paths(), log=log, log_prefix="Step_1-")
    assert set(logged) == {"Step_1-" + key for key in keys}


@pytest.mark.parametrize("make", MAKE_META)
def test_logged_statistics_are_over_the_paths_of_all_tasks(logged, make):
    meta_paths = {0: [reward_path([1.0, 2.0]), reward_path([4.0])], 1: [reward_path([0.0, 0.0, 8.0])]}
    make(ZeroBaseline(), discount=0.5).process_samples(meta_paths, log="all", log_prefix="Step_0-")
    assert logged == {
        "Step_0-AverageReturn": 5.0,  # 3, 4, 8
        "Step_0-AverageDiscountedReturn": pytest.approx(8.0 / 3.0),  # 1 + 2/2, 4, 8/4
        "Step_0-NumTrajs": 3,
        "Step_0-AveragePathLength": 2.0,  # 2, 1, 3
        "Step_0-StdReturn": pytest.approx(np.sqrt(14.0 / 3.0)),  # variance (4 + 1 + 9) / 3
        "Step_0-MaxReturn": 8.0,
        "Step_0-MinReturn": 3.0,
    }


@pytest.mark.parametrize("make", MAKE_META)
def test_path_succeeds_if_any_step_succeeds(logged, make):
    """If three of six paths of two tasks report success in some step, the rate is 3 / 6; one path reports nothing."""
    steps = {0: [[0, 0], [1, 0], [0, 1]], 1: [[1, 1], [0, 0]]}
    meta_paths = {task: [{**reward_path([0.0, 0.0]), "env_infos": {"success": np.array(values)}} for values in paths]
                  for task, paths in steps.items()}
    meta_paths[1].append(reward_path([1.0]))
    processor = make(ZeroBaseline())
    processor.process_samples(meta_paths, log="all", log_prefix="Step_0-")
    assert logged["Step_0-SuccessRate"] == 0.5
    assert set(logged) == {f"Step_0-{key}" for key in ALL_KEYS | {"SuccessRate"}}
    # paths without reports have not succeeded yet, also after a restored state
    other = SampleProcessor(ZeroBaseline())
    other.set_state(processor.get_state())
    other.process_samples([reward_path([1.0])], log=True)
    assert logged["SuccessRate"] == 0.0


def broken(path, key, value):
    paths = make_paths((4, 5, 6))
    if value is None:
        del paths[path][key]
    else:
        paths[path][key] = value
    return paths


def spoiled(path, step, key, value):
    paths = make_paths((4, 5, 6))
    paths[path][key][step] = value
    return paths


BAD_PATHS = [
    ([], ValueError, "paths: expected at least one path, got an empty list"),
    (broken(1, "actions", None), ValueError, "path 1: expected a key 'actions', got only ['agent_infos'"),
    (broken(1, "rewards", np.zeros((5, 1))), ValueError,
     "path 1: rewards: expected shape [T] with T of at least 1, got (5, 1)"),
    (broken(1, "observations", np.zeros((4, 3))), ValueError,
     "path 1: observations: expected 5 steps, the number of rewards, got shape (4, 3)"),
    (broken(1, "observations", np.zeros((5, 2))), ValueError,
     "path 1: observations: expected shape (3,) after the step axis, as in path 0, got shape (5, 2)"),
    (broken(2, "agent_infos", {"mean": np.zeros((6, 2))}), ValueError,
     "path 2: agent_infos: expected the same keys in all paths, got ['mean'], but ['log_std', 'mean'] in path 0"),
    (broken(0, "actions", np.array([["left", "up"]] * 4)), TypeError,
     "actions: expected real numbers, got an array of dtype <U"),
    (spoiled(0, 3, "rewards", np.nan), ValueError, "path 0, step 3: rewards: expected finite numbers, got nan"),
    (spoiled(2, 5, "observations", np.nan), ValueError,
     "path 2, step 5: observations: expected finite numbers, got [nan"),
    (spoiled(1, 2, "baseline", np.nan), ValueError,
     "path 1, step 2: baseline.predict: expected finite numbers, got nan"),
    (broken(1, "rewards", np.full(5, 1e308)), ValueError,
     "path 1, step 0: returns: expected finite numbers, got inf"),
    ([reward_path([0.0, 0.0], [0.0, 0.0]), reward_path([1.7e308, 0.0], [-1.7e308, 0.0])], ValueError,
     "path 1, step 0: advantages: expected finite numbers, got inf"),
]


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("paths, error, message", BAD_PATHS)
def test_process_samples_names_the_invalid_entry(paths, error, message):
    with pytest.raises(error, match="^" + re.escape(message)):
        SampleProcessor(FixedBaseline()).process_samples(paths)
    with pytest.raises(error, match="^task 7, " + re.escape(message)):
        MetaSampleProcessor(FixedBaseline()).process_samples({3: make_paths(), 7: paths})


@pytest.mark.parametrize("paths, error, message", [
    ({}, ValueError, "paths_meta_batch: expected the paths of at least one task, got an empty dict"),
    ([make_paths()], TypeError, "paths_meta_batch: expected a dict from task index to a list of paths, got list"),
])
def test_meta_processor_requires_a_dict_of_tasks(paths, error, message):
    with pytest.raises(error, match=message):
        MetaSampleProcessor(ZeroBaseline()).process_samples(paths)


@pytest.mark.parametrize("log", ["rewards", None, 1])
def test_unknown_log_level_is_refused(log):
    with pytest.raises(ValueError, match="log: expected one of False, True, 'reward', 'all'"):
        SampleProcessor(ZeroBaseline()).process_samples(make_paths(), log=log)


@pytest.mark.parametrize("make", [SampleProcessor, MetaSampleProcessor,
                                  *(functools.partial(cls, max_path_length=3) for cls in DICE)])
@pytest.mark.parametrize("arguments, error, message", [
    (dict(discount=1.01), ValueError, "discount: expected a number in"),
    (dict(gae_lambda=np.nan), ValueError, "gae_lambda: expected a number in"),
    (dict(normalize_adv=1), TypeError, "normalize_adv: expected True or False"),
    (dict(baseline=None), TypeError, "baseline: expected .*, or an object with the methods fit and predict"),
])
def test_arguments_are_checked(make, arguments, error, message):
    with pytest.raises(error, match="^" + message):
        make(**{"baseline": ZeroBaseline(), **arguments})


@pytest.mark.parametrize("cls", DICE)
def test_arguments_of_dice_are_checked(cls):
    with pytest.raises(ValueError, match="^max_path_length: expected an integer of at least 1, got 0"):
        cls(ZeroBaseline(), 0)
    with pytest.raises(TypeError, match="^return_baseline: expected .*, or an object with the methods fit and predict"):
        cls(ZeroBaseline(), 3, return_baseline=0)


class StubEnv:
    def reset(self):
        """Never called."""

    def step(self, action):
        """Never called."""


@pytest.mark.parametrize("arguments, error, message", [
    (dict(env=object()), TypeError, "env: expected an environment with the methods reset and step"),
    (dict(batch_size=0), ValueError, "batch_size: expected an integer of at least 1, got 0"),
    (dict(max_path_length=2.5), TypeError, "max_path_length: expected an integer of at least 1, got 2.5"),
])
def test_sampler_checks_its_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        Sampler(**{"env": StubEnv(), "policy": None, "batch_size": 1, "max_path_length": 1, **arguments})


def test_samples_do_not_depend_on_the_number_of_threads_of_matrix_operations():
    """Given 200 features, whose normal equations several threads would factorize with other rounding errors."""
    rng = np.random.default_rng(0)
    paths = [{"observations": rng.normal(size=(300, 98)), "actions": rng.normal(size=(300, 2)),
              "rewards": rng.normal(size=300), "env_infos": {}, "agent_infos": {}} for _ in range(2)]

    def advantages(threads):
        with threadpoolctl.threadpool_limits(threads, user_api="blas"):
            return SampleProcessor(LinearFeatureBaseline()).process_samples(paths)["advantages"]

    np.testing.assert_array_equal(advantages(4), advantages(1))


@pytest.mark.parametrize("make_processor", [
    SampleProcessor, lambda baseline: DiceSampleProcessor(baseline, 100),
    lambda baseline: DiceSampleProcessor("LinearTimeBaseline", 100, return_baseline=baseline)])
def test_trained_baselines_do_not_depend_on_the_number_of_threads_of_matrix_operations(make_processor):
    rng = np.random.default_rng(0)
    paths = [{"observations": rng.normal(size=(100, 17)),
              **dict.fromkeys(("returns", "discounted_rewards"), rng.normal(size=100))} for _ in range(20)]
    weights = []
    for threads in (1, 2):
        with threadpoolctl.threadpool_limits(threads, user_api="blas"), seeding.evaluation_seed(1):
            baseline = GaussianMLPBaseline()
            make_processor(baseline).train_baseline(paths)
        weights.append(baseline.get_param_values()["params"])
    assert_same(*weights)


def test_the_last_episode_of_each_trial_is_counted(logged):
    def trial(*episodes):
        numbers = np.repeat(np.arange(len(episodes)), episodes)
        return {"observations": np.zeros((len(numbers), 2)), "actions": np.zeros((len(numbers), 2)),
                "rewards": np.ones(len(numbers)), "env_infos": {EPISODE: numbers}, "agent_infos": {}}

    TrialSampleProcessor("ZeroBaseline").process_samples({0: [trial(3, 2)], 1: [trial(1, 2, 6)]}, log=True)
    assert logged["FirstEpisodeReturn"] == 2.0 and logged["LastEpisodeReturn"] == 4.0


def test_discrete_actions_are_unchanged():
    paths = sampler_of(Ending()).obtain_samples()
    actions = [np.concatenate([path["actions"] for path in task_paths]) for task_paths in paths.values()]
    for samples, expected in zip(MetaSampleProcessor(LinearFeatureBaseline()).process_samples(paths), actions):
        np.testing.assert_array_equal(samples["actions"], expected)
        assert samples["actions"].dtype == np.int64
    dice = DiceMetaSampleProcessor(LinearTimeBaseline(), T, return_baseline=LinearFeatureBaseline())
    for samples, expected in zip(dice.process_samples(paths), actions):
        assert samples["actions"].shape == (P, T) and samples["actions"].dtype == np.int64
        np.testing.assert_array_equal(samples["actions"][samples["mask"] > 0], expected)
        assert not samples["actions"][samples["mask"] == 0].any()
