"""Tests DiceSampleProcessor and DiceMetaSampleProcessor: padding, adjusted rewards, advantages."""
import itertools
import re

import numpy as np
import pytest

from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline, ZeroBaseline
from meta_policy_search.samplers import DiceMetaSampleProcessor, DiceSampleProcessor
from meta_policy_search.samplers.base import SampleProcessor
from tests.helpers.paths import TimeTable, make_paths, reward_path


def test_paths_are_padded_with_zeros_to_max_path_length():
    # given paths of 6, 9 and 4 steps
    paths = make_paths((6, 9, 4))
    # when they are padded to 10
    samples = DiceSampleProcessor(LinearTimeBaseline(), 10).process_samples(paths)
    # then every array is [P, T, ...], zero after the end of its path, and the mask marks the steps that were taken
    assert set(samples) == {"mask", "observations", "actions", "rewards", "adjusted_rewards", "env_infos",
                            "agent_infos", "path_lengths", "adjusted_rewards_after_end"}
    np.testing.assert_array_equal(samples["path_lengths"], [6, 9, 4])
    np.testing.assert_array_equal(samples["mask"].sum(axis=1), [6, 9, 4])
    assert samples["mask"].shape == samples["rewards"].shape == samples["adjusted_rewards"].shape == (3, 10)
    assert samples["observations"].shape == (3, 10, 3) and samples["actions"].shape == (3, 10, 2)
    assert samples["env_infos"]["image"].shape == (3, 10, 2, 2)
    assert samples["adjusted_rewards_after_end"].shape == (3,)
    for index, (path, length) in enumerate(zip(paths, (6, 9, 4), strict=True)):
        pairs = [(samples[key], path[key]) for key in ("observations", "actions", "rewards")]
        pairs += [(samples["env_infos"][key], path["env_infos"][key]) for key in ("forward", "image")]
        pairs += [(samples["agent_infos"]["mean"], path["agent_infos"]["mean"]), (samples["mask"], np.ones(length))]
        for padded, original in pairs:
            np.testing.assert_array_equal(padded[index, :length], original)
            assert not padded[index, length:].any()
        assert not samples["adjusted_rewards"][index, length:].any()


def test_adjusted_rewards_by_hand():
    # given rewards, a discount of 1/2 and the baseline 1, 0.25, 0.125, ...; the third step is the last that was reached
    baseline = TimeTable([1.0, 0.25, 0.125, 100.0])
    paths = [reward_path([3.0, 2.0, 8.0]), reward_path([4.0])]
    processor = DiceSampleProcessor(baseline, 4, discount=0.5, normalize_adv=False)
    # when the samples are processed
    samples = processor.process_samples(paths)
    # then the baseline was fitted to discount^t r_t, and its predictions are subtracted
    np.testing.assert_array_equal(baseline.targets[0], [3.0, 1.0, 2.0])
    np.testing.assert_array_equal(baseline.targets[1], [4.0])
    np.testing.assert_array_equal(samples["adjusted_rewards"], [[2.0, 0.75, 1.875, 0.0], [3.0, 0.0, 0.0, 0.0]])
    # and 0.25 + 0.125 are subtracted after the end of the second path, but not 100, because no path reached that step
    np.testing.assert_array_equal(samples["adjusted_rewards_after_end"], [0.0, -0.375])


def test_normalization_includes_missing_steps():
    # given adjusted rewards 1, 2, 6 and 0 for the missing step of the second path (mean 9/4, variance 83/16)
    paths = [reward_path([1.0, 2.0]), reward_path([6.0])]

    def adjusted(**kwargs):
        samples = DiceSampleProcessor(ZeroBaseline(), 5, discount=1.0, **kwargs).process_samples(paths)
        return samples["adjusted_rewards"][:, :2], samples["adjusted_rewards_after_end"]

    mean, std = 9.0 / 4.0, np.sqrt(83.0) / 4.0
    # by default: normalized
    values, after = adjusted()
    np.testing.assert_allclose(values, [[(1.0 - mean) / std, (2.0 - mean) / std], [(6.0 - mean) / std, 0.0]], rtol=1e-7)
    np.testing.assert_allclose(after, [0.0, -mean / std], rtol=1e-7)
    # without normalization
    values, after = adjusted(normalize_adv=False)
    np.testing.assert_array_equal(values, [[1.0, 2.0], [6.0, 0.0]])
    np.testing.assert_array_equal(after, [0.0, 0.0])
    # shifted so that the minimum, 1, becomes slightly positive
    values, after = adjusted(normalize_adv=False, positive_adv=True)
    np.testing.assert_allclose(values, [[0.0, 1.0], [5.0, 0.0]], atol=2e-8)
    assert values[0, 0] > 0.0
    np.testing.assert_allclose(after, [0.0, -1.0], atol=2e-8)
    # normalized and shifted
    values, after = adjusted(positive_adv=True)
    np.testing.assert_allclose(values, np.array([[0.0, 1.0], [5.0, 0.0]]) / std, atol=2e-8)
    np.testing.assert_allclose(after, [0.0, -1.0 / std], atol=2e-8)


def test_constant_rewards_until_early_ends_have_moderate_adjusted_rewards():
    """The baseline predicts the rewards of all steps, so only those after an end differ from it."""
    paths = [reward_path([1.0] * length) for length in [20] * 10 + [21] * 10]
    for baseline in (ZeroBaseline(), LinearTimeBaseline()):
        samples = DiceSampleProcessor(baseline, 100, discount=1.0).process_samples(paths)
        assert np.abs(samples["adjusted_rewards_after_end"]).max() < 10.0


@pytest.mark.parametrize("normalize_adv, positive_adv", list(itertools.product([False, True], repeat=2)))
def test_expected_gradient_is_exact_for_paths_that_end_early(normalize_adv, positive_adv):
    """The expected DiCE gradient is the gradient of the expected return in an enumerated problem."""
    # given: action 1 (probability p = sigmoid(theta)) ends the path, action 0 continues; at most 3 steps; a reward for
    # every action and step, and a baseline of time alone
    theta, discount = 0.3, 0.9
    p = 1.0 / (1.0 + np.exp(-theta))
    reward = {0: [1.0, -2.0, 0.5], 1: [3.0, 0.7, 2.0]}
    all_actions = [[1], [0, 1], [0, 0, 1], [0, 0, 0]]
    probability = [np.prod([p if a else 1.0 - p for a in actions]) for actions in all_actions]
    score = [np.cumsum([a - p for a in actions]) for actions in all_actions]  # sum of d log pi / d theta up to t
    returns = [sum(discount ** t * reward[a][t] for t, a in enumerate(actions)) for actions in all_actions]
    exact = sum(pr * sc[-1] * ret for pr, sc, ret in zip(probability, score, returns, strict=True))
    # when each possible path is processed once
    paths = [reward_path([reward[a][t] for t, a in enumerate(actions)]) for actions in all_actions]
    processor = DiceSampleProcessor(TimeTable([0.4, -1.3, 2.2]), 3, discount, normalize_adv=normalize_adv,
                                    positive_adv=positive_adv)
    samples = processor.process_samples(paths)
    # then the gradient of sum_t box_t adjusted_t + box adjusted_after_end, in expectation, is the exact one (over the
    # standard deviation, where that was divided by) ...
    in_path = np.array([sc @ row[:len(sc)] for sc, row in zip(score, samples["adjusted_rewards"], strict=True)])
    after = np.array([sc[-1] for sc in score]) * samples["adjusted_rewards_after_end"]
    padded = [np.pad(path["rewards"], (0, 3 - len(path["rewards"]))) for path in paths]
    adjusted = discount ** np.arange(3) * padded - [0.4, -1.3, 2.2]
    scale = adjusted.std() + 1e-8 if normalize_adv else 1.0
    assert probability @ (in_path + after) == pytest.approx(exact / scale, rel=1e-12)
    # ... and it differs without the term after the end
    assert probability @ in_path != pytest.approx(exact / scale, rel=1e-2)


@pytest.mark.parametrize("gae_lambda", [0.0, 0.95, 1.0])
@pytest.mark.parametrize("normalize_adv, positive_adv", [(False, False), (True, False), (True, True)])
def test_advantages_equal_those_of_the_sample_processor(gae_lambda, normalize_adv, positive_adv):
    paths = make_paths()
    arguments = dict(discount=0.9, gae_lambda=gae_lambda, normalize_adv=normalize_adv, positive_adv=positive_adv)
    processor = DiceSampleProcessor(LinearTimeBaseline(), 10, return_baseline=LinearFeatureBaseline(), **arguments)
    samples = processor.process_samples(paths)
    flat = SampleProcessor(LinearFeatureBaseline(), **arguments).process_samples(make_paths())["advantages"]
    mask = samples["mask"] == 1.0
    np.testing.assert_array_equal(samples["advantages"][mask], flat)
    assert samples["advantages"].shape == (3, 10) and not samples["advantages"][~mask].any()


def test_longer_paths_are_refused():
    paths, message = make_paths((4, 11, 3)), "path 1: expected at most max_path_length=10 steps, got 11"
    with pytest.raises(ValueError, match=f"^{message}"):
        DiceSampleProcessor(LinearTimeBaseline(), 10).process_samples(paths)
    with pytest.raises(ValueError, match=f"^task 2, {message}"):
        DiceMetaSampleProcessor(LinearTimeBaseline(), 10).process_samples({2: paths})


@pytest.mark.parametrize("values, message", [
    ([0.0, np.nan, 0.0], "path 0, step 1: baseline.predict: expected finite numbers, got nan"),
    (["a", "b"], "path 0: baseline.predict: expected an array of real numbers, got "),
    ([0.0], "path 0: baseline.predict: expected an array of shape (2,)"),
])
def test_predictions_are_checked(values, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        DiceSampleProcessor(TimeTable(values), 3).process_samples([reward_path([1.0, 2.0])])


def test_baselines_with_only_the_documented_methods_are_not_trained():
    class Zero:
        def fit(self, paths, target_key="returns"):
            pass

        def predict(self, path):
            return np.zeros(len(path["rewards"]))

    processor = DiceSampleProcessor(Zero(), 10, return_baseline=Zero())
    processor.process_samples(make_paths((6, 9)))
    processor.train_baseline(make_paths((6, 9)))
