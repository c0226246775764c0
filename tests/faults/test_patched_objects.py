"""Objects whose methods are replaced before they are passed to a sampler, an algorithm or a processor."""
import contextlib
import sys
from types import SimpleNamespace
from unittest import mock

import cloudpickle
import numpy as np
import pytest

from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import MetaPointEnvCorner, normalize
from meta_policy_search.meta_algos import ProMP
from meta_policy_search.np import policies as np_policies
from meta_policy_search.policies import GaussianMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.samplers.single_task_sampler import SingleTaskSampler
from meta_policy_search.utils.utils import set_seed
from tests.helpers.sampling import flat_paths

cloudpickle.register_pickle_by_value(sys.modules[__name__])

M, P, T = 2, 2, 3


def make_policy(cls=MetaGaussianMLPPolicy):
    return cls(M, 2, 2, hidden_sizes=(4,))


def make_env():
    """Returns an environment in a wrapper, which changes neither actions nor rewards."""
    return normalize(MetaPointEnvCorner("dense"), normalization_scale=0.2)


def make_sampler(env, **arguments):
    set_seed(1)
    return MetaSampler(env, make_policy(), P, M, T, **arguments)


def rewards_of(sampler):
    return np.array([path["rewards"] for path in flat_paths(sampler.obtain_samples())])


def doubled(step):
    """Returns a `step` that doubles the rewards of another one."""

    def doubling(*arguments):
        observation, reward, *rest = step(*arguments)
        return (observation, 2 * reward, *rest)

    return doubling


@contextlib.contextmanager
def patch_object(env):
    env.step = doubled(env.step)
    yield
    del env.step


@contextlib.contextmanager
def patch_inner(env):
    with patch_object(env.wrapped_env):
        yield


@contextlib.contextmanager
def patch_class(env):
    with mock.patch.object(MetaPointEnvCorner, "step", doubled(MetaPointEnvCorner.step)):
        yield


@contextlib.contextmanager
def patch_wrapper_class(env):
    with mock.patch.object(type(env), "step", doubled(type(env).step)):
        yield


@contextlib.contextmanager
def patch_helper(env):
    """Replaces what both the vectorized form and `step` of a point environment call."""
    rewards = MetaPointEnvCorner._rewards
    with mock.patch.object(MetaPointEnvCorner, "_rewards", lambda self, *moves: 2 * rewards(self, *moves)):
        yield


PATCHES = [patch_object, patch_inner, patch_class, patch_wrapper_class, patch_helper]


@pytest.mark.parametrize("patch", PATCHES)
def test_patched_environment_uses_the_patch(patch):
    with make_sampler(make_env()) as sampler:
        expected = 2 * rewards_of(sampler)
    env = make_env()
    with patch(env), make_sampler(env) as sampler:
        np.testing.assert_array_equal(rewards_of(sampler), expected)


def test_patched_set_task_and_reset_are_used():
    env = MetaPointEnvCorner("dense")
    original_reset, original_set_task = env.reset, env.set_task
    env.reset = lambda **arguments: original_reset(seed=3)
    env.set_task = lambda task: original_set_task(-np.asarray(task))
    with make_sampler(env) as sampler:
        sampler.update_tasks([(2.0, 2.0)] * M)
        paths = flat_paths(sampler.obtain_samples())
    for path in paths:
        np.testing.assert_array_equal(path["observations"][0], paths[0]["observations"][0])
        distances = np.linalg.norm(path["observations"][1:] - (-2.0, -2.0), axis=1)
        np.testing.assert_allclose(path["rewards"][:-1], -distances)


def test_single_task_sampler_uses_the_patch():
    env = MetaPointEnvCorner("dense")
    algo = SimpleNamespace(policy=np_policies.GaussianMLPPolicy(2, 2, (4,)), max_path_length=T)
    expected = SingleTaskSampler(algo, env).obtain_samples(0, T)[0]["rewards"]
    with patch_object(env):
        np.testing.assert_array_equal(SingleTaskSampler(algo, env).obtain_samples(0, T)[0]["rewards"], 2 * expected)


# Policies


class Delegating:
    """Passes everything on to a policy but how it acts."""

    def __init__(self, policy):
        self._policy = policy

    def __getattr__(self, name):
        return getattr(self._policy, name)

    def get_actions(self, observations):
        actions, infos = self._policy.get_actions(observations)
        return [0.0 * each for each in actions], infos


def test_policy_wrapper_samples_through_the_wrapper():
    with MetaSampler(make_env(), Delegating(make_policy()), P, M, T) as sampler:
        assert all((path["actions"] == 0.0).all() for path in flat_paths(sampler.obtain_samples()))


# Baselines and hooks


@pytest.mark.parametrize("name", ["fit", "predict"])
def test_replaced_baseline_methods_are_called(name):
    baseline = LinearFeatureBaseline()
    processor = MetaSampleProcessor(baseline)
    with make_sampler(make_env()) as sampler:
        paths = sampler.obtain_samples()
    processor.process_samples(paths)
    with mock.patch.object(baseline, name, wraps=getattr(baseline, name)) as method:
        processor.process_samples(paths)
    assert method.call_count == (M if name == "fit" else M * P)


@pytest.mark.parametrize(("base", "method", "instead"), [
    (MetaSampleProcessor, "_log_path_stats", "process_samples"),
    (ProMP, "make_vars", "meta_objective"),
    (ProMP, "_extract_input_dict_meta_op", "meta_input_values"),
    (GaussianMLPPolicy, "_build_output", "distribution_info_sym"),
    (MetaGaussianMLPPolicy, "_get_post_update_actions", "get_actions"),
    (MetaSampler, "_handle_info_dicts", "obtain_samples"),
])
def test_uncalled_hooks_of_older_code_are_refused(base, method, instead):
    hooks = {method: lambda self, *args: None}
    mixin = type("Mixin", (), hooks)
    for bases, own in (((base,), hooks), ((mixin, base), {})):
        with pytest.raises(TypeError, match=f"Mine.{method}: .* never calls this .*; override {instead} instead"):
            type("Mine", bases, own)
