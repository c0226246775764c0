"""The contents of paths do not depend on which paths are sampled concurrently."""
import numpy as np
import pytest

from meta_policy_search.samplers import MetaSampler
from meta_policy_search.utils.utils import set_seed
from tests.helpers.sampling import EnvWithRareInfos, FixedPolicy


@pytest.mark.parametrize("envs_per_task", [1, 4, 6])
def test_infos_missing_at_some_steps_are_nan_or_none(envs_per_task):
    set_seed(3)
    with MetaSampler(EnvWithRareInfos(), FixedPolicy(), 6, 2, 5, envs_per_task=envs_per_task) as sampler:
        paths = [path for task_paths in sampler.obtain_samples().values() for path in task_paths]
    assert {len(path["rewards"]) for path in paths} == {1, 2, 3, 4, 5}  # chosen so that all cases below occur
    for path in paths:
        t = np.arange(1, len(path["rewards"]) + 1)
        is_last = t == len(t)
        infos = path["env_infos"]
        np.testing.assert_array_equal(infos["t"], t)
        np.testing.assert_array_equal(infos["odd"], np.where(t % 2, t, np.nan))
        np.testing.assert_array_equal(infos["late"], np.where((t > 2)[:, None], [0.0, 1.0], np.nan))
        np.testing.assert_array_equal(infos["success"], np.where(is_last, 1.0, np.nan))
        assert infos["outcome"].tolist() == [None] * (len(t) - 1) + ["done"]
        assert infos["t"].dtype.kind == "i" and infos["success"].dtype == infos["odd"].dtype == np.float64
