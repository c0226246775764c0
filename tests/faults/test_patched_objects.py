"""Objects whose methods are replaced: the replacement is used, or refused with one error."""
import contextlib
import functools
import sys
from types import SimpleNamespace
from unittest import mock

import cloudpickle
import gymnasium
import numpy as np
import pytest

from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import MetaPointEnvCorner, normalize
from meta_policy_search.envs.adapters import GymnasiumMetaEnv
from meta_policy_search.meta_algos import ProMP
from meta_policy_search.np import policies as np_policies
from meta_policy_search.policies import GaussianMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.samplers.errors import EnvWorkerError, PatchedEnvError
from meta_policy_search.samplers.single_task_sampler import SingleTaskSampler
from meta_policy_search.samplers.vectorized_env_executor.local import MetaBatchedEnvExecutor, MetaIterativeEnvExecutor
from meta_policy_search.utils.utils import set_seed
from tests.helpers.sampling import Scripted, assert_same, flat_paths

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
def mock_object(env):
    with mock.patch.object(env.wrapped_env, "step", side_effect=doubled(env.wrapped_env.step)):
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


PATCHES = [patch_object, patch_inner, mock_object, patch_class, patch_wrapper_class, patch_helper]


@pytest.mark.parametrize("patch", PATCHES)
def test_patched_environment_uses_the_patch(patch):
    with make_sampler(make_env()) as sampler:
        expected = 2 * rewards_of(sampler)
    env = make_env()
    with patch(env), make_sampler(env) as sampler:
        np.testing.assert_array_equal(rewards_of(sampler), expected)


@pytest.mark.parametrize("patch", PATCHES)
def test_patch_between_rounds_takes_effect_until_removed(patch):
    """Given a sampler, when a method is replaced and restored, then each round uses the method of its time."""
    env = make_env()
    with make_sampler(env) as sampler:
        expected = [rewards_of(sampler) for _ in range(3)]
    with make_sampler(env) as sampler:
        assert isinstance(sampler.vec_env, MetaBatchedEnvExecutor)
        given = [rewards_of(sampler)]
        with patch(env):
            given.append(rewards_of(sampler) / 2)
            assert isinstance(sampler.vec_env, MetaBatchedEnvExecutor) == (patch is patch_helper)
        given.append(rewards_of(sampler))
        assert isinstance(sampler.vec_env, MetaBatchedEnvExecutor)
    np.testing.assert_array_equal(given, expected)


def test_patch_between_rounds_takes_effect_without_a_vectorized_environment():
    env = Scripted()
    with make_sampler(env) as sampler:
        expected = rewards_of(sampler)
        env.step = doubled(env.step)
        np.testing.assert_array_equal(rewards_of(sampler), 2 * expected)
        assert isinstance(sampler.vec_env, MetaIterativeEnvExecutor)


def test_patched_set_task_and_reset_take_effect():
    env = MetaPointEnvCorner("dense")
    with make_sampler(env) as sampler:
        sampler.obtain_samples()
        original_reset, original_set_task = env.reset, env.set_task
        env.reset = lambda **arguments: original_reset(seed=3)
        env.set_task = lambda task: original_set_task(-np.asarray(task))
        sampler.update_tasks([(2.0, 2.0)] * M)
        paths = flat_paths(sampler.obtain_samples())
    for path in paths:
        np.testing.assert_array_equal(path["observations"][0], paths[0]["observations"][0])
        distances = np.linalg.norm(path["observations"][1:] - (-2.0, -2.0), axis=1)
        np.testing.assert_allclose(path["rewards"][:-1], -distances)


def test_single_task_sampler_uses_the_patch():
    env = MetaPointEnvCorner("dense")
    algo = SimpleNamespace(policy=np_policies.GaussianMLPPolicy(2, 2, (4,)), max_path_length=T)
    sampler = SingleTaskSampler(algo, env)
    expected = sampler.obtain_samples(0, T)[0]["rewards"]
    with patch_object(env):
        np.testing.assert_array_equal(sampler.obtain_samples(0, T)[0]["rewards"], 2 * expected)
    np.testing.assert_array_equal(sampler.obtain_samples(0, T)[0]["rewards"], expected)


# Worker processes


@pytest.mark.parametrize("patch", [patch_inner, patch_class, patch_helper])
def test_worker_processes_refuse_a_patched_environment(patch, parallel=True):
    env = make_env()
    message = r"env: MetaPointEnvCorner.* was replaced, which worker processes .* do not see; override it in a subclass"
    # given a patch before the sampler is made
    with patch(env), pytest.raises(PatchedEnvError, match=message) as caught:
        with make_sampler(env, parallel=parallel) as sampler:
            sampler.obtain_samples()
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, EnvWorkerError) and isinstance(caught.value, TypeError)
    # given one between two rounds
    with make_sampler(env) as sampler:
        expected = [rewards_of(sampler) for _ in range(2)]
    with make_sampler(env, parallel=parallel) as sampler:
        given = [rewards_of(sampler)]
        with patch(env), pytest.raises(PatchedEnvError, match=message):
            sampler.obtain_samples()
        given.append(rewards_of(sampler))
    np.testing.assert_array_equal(given, expected)


class Overriding(MetaPointEnvCorner):
    """Not patched: processes get the class by value, with all of its methods."""

    step = doubled(MetaPointEnvCorner.step)

    @functools.wraps(MetaPointEnvCorner.reset)
    def reset(self, **arguments):
        return super().reset(**arguments)


def test_override_in_a_subclass_is_not_a_patch():
    with make_sampler(Overriding("dense")) as here, make_sampler(Overriding("dense"), parallel=True) as there:
        set_seed(1)
        assert_same(here.obtain_samples(), there.obtain_samples())


class Pushed(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))

    def reset(self, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, False, {}

    def set_task(self, task):
        pass


def test_patch_lost_by_pickling_is_refused():
    """Given an adapter that builds its environment anew in copies, then a patch of that environment is refused."""
    env = GymnasiumMetaEnv(Pushed, lambda rng: None)
    env.wrapped_env.step = doubled(env.wrapped_env.step)
    with pytest.raises(PatchedEnvError, match=r"env: Pushed\(\).step was replaced"):
        make_sampler(env)
    del env.wrapped_env.step
    env.step = doubled(env.step)
    with make_sampler(env) as sampler:
        assert (rewards_of(sampler) == 2.0).all()


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
