"""Tests sample processors with discrete actions; `samplers/test_meta_sampler.py` tests their sampling."""
import numpy as np

from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.samplers import DiceMetaSampleProcessor, MetaSampleProcessor
from tests.helpers.sampling import Ending, sampler_of

P, T = 4, 6


def test_processors_keep_actions_unchanged():
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
