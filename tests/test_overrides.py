"""Code of users: subclasses, overridden and replaced methods, custom policies and distributions, hooks of older code.

A vectorized method is used only if the class does not override the methods that it replaces. Methods that were replaced
on an object are refused.
"""
import sys
import types
from unittest import mock

import cloudpickle
import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.actors import actor_from_policy
from meta_policy_search.actors.actor import NetworkActor
from meta_policy_search.actors.from_policy import PolicyActor, vectorized_actor
from meta_policy_search.baselines import LinearFeatureBaseline, ZeroBaseline
from meta_policy_search.envs import MetaPointEnvCorner, normalize
from meta_policy_search.meta_algos import TRPOMAML, VPGMAML, ProMP
from meta_policy_search.np import policies as np_policies
from meta_policy_search.policies import DiagonalGaussian, Distribution, GaussianMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.samplers.single_task_sampler import SingleTaskSampler
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger
from meta_policy_search.utils.fast_paths import replaces
from tests.helpers.sampling import algo_of
from tests.helpers.trainers import build_trainer

cloudpickle.register_pickle_by_value(sys.modules[__name__])

M, P, T = 2, 3, 4


def make(cls=MetaGaussianMLPPolicy, hidden_sizes=(4,)):
    return cls(M, 2, 2, hidden_sizes=hidden_sizes)


def sample_path(policy):
    """Returns the last path of the last task."""
    with MetaSampler(normalize(MetaPointEnvCorner()), policy, P, M, T) as sampler:
        return sampler.obtain_samples()[1][2]


# `fast_path` and `replaces`


def test_declaration_of_an_unknown_method_is_refused_with_the_class():
    with pytest.raises((AttributeError, RuntimeError)):  # before Python 3.12 it is wrapped in a RuntimeError
        class Misspelt:
            @replaces("get_action")
            def make_actor(self):
                return None


# Policies that override acting


ALWAYS_RIGHT = np.tile([10.0, 0.0], (4, 1))


class AlwaysRight(MetaGaussianMLPPolicy):
    """Overrides `get_actions`."""

    def get_actions(self, observations):
        actions, infos = super().get_actions(observations)
        return [np.tile([10.0, 0.0], (len(a), 1)) for a in actions], infos


class Shifted(MetaGaussianMLPPolicy):
    """A Gaussian policy with a mean shifted by 100, like a policy of this package."""

    __module__ = MetaGaussianMLPPolicy.__module__

    def distribution_info_sym(self, obs_var, params=None):
        info = super().distribution_info_sym(obs_var, params)
        return {**info, "mean": info["mean"] + 100.0}


class RightMixin:
    """Overrides `get_actions` from outside the policy hierarchy."""

    def get_actions(self, observations):
        return [np.tile([10.0, 0.0], (len(each), 1)) for each in observations], None


class MixedPolicy(RightMixin, MetaGaussianMLPPolicy):
    pass


class OwnDistribution(MetaGaussianMLPPolicy):
    """Overrides a property."""

    distribution = DiagonalGaussian(2)


class Declaring(AlwaysRight):
    """Declares a vectorized method for its `get_actions`."""

    @replaces("get_actions")
    def make_actor(self):
        return super().make_actor()


class OverridingDeclared(Declaring):
    def get_actions(self, observations):
        return super().get_actions(observations)


@pytest.mark.parametrize("cls", [AlwaysRight, Shifted, MixedPolicy, OwnDistribution, OverridingDeclared])
def test_any_override_disables_both_vectorized_methods(cls):
    policy = make(cls)
    assert isinstance(actor_from_policy(policy), PolicyActor)
    assert vectorized_actor(policy, "make_actors", policy.get_flat_params()[None]) is None


def right(observations):
    return [np.tile([10.0, 0.0], (len(each), 1)) for each in observations], None


def test_patched_method_of_a_class_is_used():
    policy = make()
    assert isinstance(actor_from_policy(policy), NetworkActor)
    with mock.patch.object(MetaGaussianMLPPolicy, "get_actions", lambda self, observations: right(observations)):
        np.testing.assert_array_equal(sample_path(policy)["actions"], ALWAYS_RIGHT)
    for name, kind in (("distribution_info_sym", mock.Mock), ("distribution", mock.PropertyMock)):
        with mock.patch.object(GaussianMLPPolicy, name, new_callable=kind):
            assert isinstance(actor_from_policy(policy), PolicyActor)
    assert isinstance(actor_from_policy(policy), NetworkActor)


def replaced(obj, name, function=lambda *args, **kwargs: None):
    """Replaces a method on an object; returns the object."""
    setattr(obj, name, function)
    return obj


@pytest.mark.parametrize("name", ["get_actions", "distribution_info_sym"])
def test_method_replaced_on_a_policy_is_refused(name):
    """The policy would sample with one network and learn with another."""
    policy = make()
    sampler = MetaSampler(MetaPointEnvCorner(), policy, P, M, T)
    replaced(policy, name)
    message = f"^policy: {name} was replaced on the object: use a subclass or a wrapper$"
    for use in (sampler.obtain_samples, lambda: ProMP(policy, meta_batch_size=M), lambda: actor_from_policy(policy)):
        with pytest.raises(TypeError, match=message):
            use()


@pytest.mark.thorough(but="<lambda>-env: set_task")
@pytest.mark.parametrize("enter, message", [
    (lambda: MetaSampler(replaced(MetaPointEnvCorner(), "step"), make(), P, M, T), "env: step"),
    (lambda: MetaSampler(normalize(replaced(MetaPointEnvCorner(), "set_task")), make(), P, M, T), "env: set_task"),
    (lambda: MetaSampler(replaced(normalize(MetaPointEnvCorner()), "reset"), make(), P, M, T), "env: reset"),
    (lambda: SingleTaskSampler(algo_of(np_policies.GaussianMLPPolicy(2, 2, (4,)), T), replaced(
        MetaPointEnvCorner(), "step")), "env: step"),
    (lambda: MetaSampleProcessor(replaced(LinearFeatureBaseline(), "predict")), "baseline: predict"),
    (lambda: MetaSampleProcessor(replaced(MeanReturn(), "fit")), "baseline: fit"),
    (lambda: build_trainer(processor=replaced(MetaSampleProcessor(ZeroBaseline()), "process_samples")),
     "sample_processor: process_samples"),
    (lambda: build_trainer(sampler_cls=lambda *args: replaced(MetaSampler(*args), "obtain_samples")),
     "sampler: obtain_samples"),
    (lambda: build_trainer(replaced(VPGMAML(make(), meta_batch_size=M), "adapt"), (M, P, T)), "algo: adapt"),
    (lambda: sample_path(policy_with_replaced_sample()), "policy.distribution: sample"),
])
def test_method_replaced_on_another_part_is_refused(enter, message):
    with pytest.raises(TypeError, match=f"^{message} was replaced on the object: use a subclass or a wrapper$"):
        enter()


class MeanReturn:
    """A baseline that derives from no class of this package."""

    def fit(self, paths):
        pass

    def predict(self, path):
        return np.ones(len(path["rewards"]))


def policy_with_replaced_sample():
    policy = make()
    replaced(policy.distribution, "sample")
    return policy


def test_accepted_attributes_with_the_name_of_a_method():
    """A method bound to the object itself replaces nothing; a class without the method has nothing to replace."""
    env = MetaPointEnvCorner()
    env.step = env.step
    with MetaSampler(normalize(env), make(), P, M, T) as sampler:
        assert len(sampler.obtain_samples()) == M
    policy = types.SimpleNamespace(get_actions=right)
    np.testing.assert_array_equal(sample_path(policy)["actions"], ALWAYS_RIGHT)


class NumpyRight(np_policies.GaussianMLPPolicy):
    """A NumPy policy that overrides `get_actions`."""

    def get_actions(self, observations):
        actions, infos = super().get_actions(observations)
        return np.tile([10.0, 0.0], (len(actions), 1)), infos


def test_overridden_get_actions_of_a_numpy_policy_is_used():
    policy = NumpyRight(2, 2, (4,))
    actions, infos = actor_from_policy(policy).act(np.zeros((1, 4, 2)), np.zeros((1, 4, 0), "f"))
    np.testing.assert_array_equal(actions[0], ALWAYS_RIGHT)
    assert set(infos) == {"mean", "log_std"}
    assert vectorized_actor(policy, "make_actors", policy.get_flat_params()[None]) is None


class Returns:
    """A custom policy that returns a fixed result."""

    meta_batch_size, obs_dim, action_dim = 2, 2, 2

    def __init__(self, actions, infos):
        self.answer = actions, infos

    def get_actions(self, observations):
        return self.answer


ACTIONS, INFOS = [np.zeros((3, 2))] * 2, [[{"a": 1}] * 3] * 2


@pytest.mark.parametrize("actions, infos, message", [
    (ACTIONS[:1], INFOS, r"actions of 2 tasks, each of shape \(3, 2\), got the shapes \[\(3, 2\)\]"),
    ([np.zeros((3, 1))] * 2, INFOS, r"actions of 2 tasks, each of shape \(3, 2\), got the shapes \[\(3, 1\), \(3, 1\)"),
    (ACTIONS, INFOS[:1], r"agent infos of 2 tasks, each a list of 3 dicts, got \[\[{'a': 1}"),
])
def test_result_of_get_actions_is_checked(actions, infos, message):
    with MetaSampler(MetaPointEnvCorner(), Returns(ACTIONS, INFOS), 3, 2, 4) as sampler:
        assert sampler.obtain_samples()[1][2]["agent_infos"]["a"].tolist() == [1] * 4
        sampler.policy.answer = actions, infos
        with pytest.raises(ValueError, match=f"^policy.get_actions: expected .*{message}"):
            sampler.obtain_samples()


class StandingStill:
    """Forwards everything to a policy except how it acts."""

    def __init__(self, policy):
        self.wrapped = policy

    def __getattr__(self, name):
        return getattr(self.wrapped, name)

    def get_actions(self, observations):
        actions, infos = self.wrapped.get_actions(observations)
        return [0.0 * each for each in actions], infos


def test_policy_wrapper_samples_through_the_wrapper():
    assert (sample_path(StandingStill(make()))["actions"] == 0.0).all()


# Sample processors, baselines, and hooks of older code


@pytest.mark.parametrize(("base", "method", "instead"), [
    (MetaSampleProcessor, "_log_path_stats", "process_samples"),
    (VPGMAML, "build_inner_loss", "inner_loss"),
    (MetaGaussianMLPPolicy, "_get_pre_update_actions", "get_actions"),
    (ProMP, "make_vars", "meta_objective"),
    (MetaPointEnvCorner, "reward", "step"),
    (mps.Trainer, "log_diagnostics", "perform_itr"),
])
def test_uncalled_hooks_of_older_code_are_refused(base, method, instead):
    hooks = {method: lambda self, *args: None}
    mixin = type("Mixin", (), hooks)
    for bases, own in (((base,), hooks), ((mixin, base), {})):
        with pytest.raises(TypeError, match=f"Mine.{method}: .* never calls this .*; override {instead} instead"):
            type("Mine", bases, own)


# Subclasses with additional arguments


class BoundedPolicy(MetaGaussianMLPPolicy):
    """A policy whose mean is bounded."""

    def __init__(self, meta_batch_size, obs_dim, action_dim, bound=1.0, **kwargs):
        self.bound = bound
        super().__init__(meta_batch_size, obs_dim, action_dim, **kwargs)

    def distribution_info_sym(self, obs_var, params=None):
        info = super().distribution_info_sym(obs_var, params)
        return {**info, "mean": self.bound * tf.tanh(info["mean"] / self.bound)}


def test_policy_for_another_number_of_tasks_shares_parameters_and_can_be_pickled():
    policy = BoundedPolicy(M, 2, 2, bound=0.5, hidden_sizes=(4,))
    adapted = np.ones((M, len(policy.get_flat_params())))
    policy.load_params(adapted)
    other = policy.with_meta_batch_size(5)
    assert type(other) is BoundedPolicy and (other.meta_batch_size, policy.meta_batch_size) == (5, M)
    other.set_flat_params(np.full(adapted.shape[1], 2.0))
    np.testing.assert_array_equal(policy.get_flat_params(), 2.0)  # one set of variables
    np.testing.assert_array_equal(other.policies_params_vals[4]["mean_network/output/bias"], 2.0)
    np.testing.assert_array_equal(policy.policies_params_vals[0]["mean_network/output/bias"], 1.0)
    copied = other.clone()
    assert copied.meta_batch_size == 5 and copied.bound == 0.5
    assert repr(other) == "BoundedPolicy(meta_batch_size=5, obs_dim=2, action_dim=2, bound=0.5)"


# Distributions of users


class Laplace(Distribution):
    """`p(a) = exp(-|a - mean| / b) / (2 b)`, `b = exp(log_std)`; has only the methods for VPG-MAML and sampling."""

    dist_info_specs = (("mean", (2,)), ("log_std", (2,)))

    def log_likelihood_sym(self, x_var, info):
        scale = tf.exp(info["log_std"])
        return -tf.reduce_sum(tf.abs(x_var - info["mean"]) / scale + info["log_std"] + np.log(2.0), -1)

    def sample(self, info, rng=None):
        return rng.laplace(info["mean"], np.exp(info["log_std"])).astype("f")


class LaplacePolicy(MetaGaussianMLPPolicy):
    """A policy with a non-Gaussian distribution."""

    own = Laplace(2)

    @property
    def distribution(self):
        return self.own


class WithoutStdInfo(MetaGaussianMLPPolicy):
    """Omits the standard deviation from its agent infos."""

    def get_actions(self, observations):
        actions, infos = super().get_actions(observations)
        return actions, [[{"mean": info["mean"]} for info in task_infos] for task_infos in infos]


def trainer_of(algo):
    return build_trainer(algo, (M, P, T), processor=MetaSampleProcessor(ZeroBaseline(), normalize_adv=True))


@pytest.mark.parametrize("algo_cls", [ProMP, TRPOMAML])
def test_missing_divergence_error_names_algorithms_that_do_not_need_it(algo_cls):
    with pytest.raises(TypeError, match=f"^policy: expected a distribution with kl_sym for {algo_cls.__name__}, got "
                                        f"Laplace without it; VPGMAML and DICEMAML do not need kl_sym$"):
        algo_cls(make(LaplacePolicy, ()), meta_batch_size=M)


@pytest.mark.thorough(but="False")
@pytest.mark.parametrize("exploration", [False, True])
def test_algorithm_that_only_needs_densities_trains(exploration):
    class Recording(VPGMAML):
        def adapt(self, samples):
            super().adapt(samples)
            adaptations.append((samples, self.policy.policies_params_vals))

    algo = Recording(make(LaplacePolicy, ()), inner_lr=0.1, meta_batch_size=M, exploration=exploration)
    before, adaptations = algo.policy.get_param_values(), []
    row = trainer_of(algo).train_itr()
    assert not {"Step_0-AveragePolicyEntropy", "Step_0-AdaptationKL"} & set(row)  # requires other methods
    # the adaptation step follows the gradient of the density: d log p / d mean = sign(a - mean) / b
    ((all_samples, adapted),) = adaptations
    for samples, params in zip(all_samples, adapted):
        infos = samples["agent_infos"]
        score = np.sign(samples["actions"] - infos["mean"]) / np.exp(infos["log_std"])
        step = 0.1 * np.mean(score * samples["advantages"][:, None], axis=0)
        bias = "mean_network/output/bias"
        np.testing.assert_allclose(params[bias] - before[bias], step, atol=1e-6)
        assert np.abs(step).max() > 1e-3
    # and the meta-update changes all parameters
    after = algo.policy.get_param_values()
    assert all((after[name] != before[name]).all() for name in before)


def test_missing_entries_of_agent_infos_are_named_if_required():
    trainer = trainer_of(VPGMAML(make(WithoutStdInfo, ()), meta_batch_size=M))
    before = trainer.policy.get_flat_params()
    with pytest.raises(ValueError, match="^adaptation: task 0: expected samples with an entry 'agent_infos/log_std'"):
        trainer.train()
    np.testing.assert_array_equal(trainer.policy.get_flat_params(), before)
    assert not {"Step_0-AveragePolicyStd", "Step_0-AveragePolicyEntropy"} & set(logger.getkvs())


def test_non_finite_adaptation_step_is_refused():
    algo = VPGMAML(make(MetaGaussianMLPPolicy, ()), inner_lr=1e3, meta_batch_size=M)
    trainer = trainer_of(algo)
    samples = trainer.sample_processor.process_samples(trainer.sampler.obtain_samples())
    before = algo.policy.policies_params_vals
    samples[1]["advantages"][2] = 1e38
    with pytest.raises(FloatingPointError, match="^adaptation: mean_network/output/kernel of task 1 would not be "
                                                 "finite; the step was rejected and the policy is unchanged"):
        algo.adapt(samples)
    for params, kept in zip(algo.policy.policies_params_vals, before):
        for name in kept:
            np.testing.assert_array_equal(params[name], kept[name])
