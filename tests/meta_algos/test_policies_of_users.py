"""Tests custom policies: the methods that algorithms require, and errors if they are missing."""
import numpy as np
import pytest

from meta_policy_search.baselines import ZeroBaseline
from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
from meta_policy_search.meta_algos import TRPOMAML, VPGMAML, ProMP
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.policies import Distribution, MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger

M, P, T = 2, 3, 4


class Laplace:
    """`p(a) = exp(-|a - mean| / b) / (2 b)`, `b = exp(log_std)`; has only the methods for VPG-MAML and sampling."""

    dim, action_shape, dist_info_specs = 2, (2,), (("mean", (2,)), ("log_std", (2,)))

    def log_likelihood_sym(self, x_var, info):
        scale = tf.exp(info["log_std"])
        return -tf.reduce_sum(tf.abs(x_var - info["mean"]) / scale + info["log_std"] + np.log(2.0), -1)

    def sample(self, info, rng):
        return rng.laplace(info["mean"], np.exp(info["log_std"])).astype("f")


class LaplaceSubclass(Laplace, Distribution):
    """The same distribution as a subclass of the package's `Distribution`, which requires more methods."""

    dim, action_shape = 2, (2,)

    def kl_sym(self, *args):
        raise NotImplementedError

    log_likelihood = kl = entropy_sym = entropy = kl_sym


class LaplacePolicy(MetaGaussianMLPPolicy):
    """A policy with a non-Gaussian distribution."""

    own = Laplace()

    @property
    def distribution(self):
        return self.own


class LaplaceSubclassPolicy(LaplacePolicy):
    own = LaplaceSubclass()


class WithoutDensity(LaplacePolicy):
    class OnlySamples:
        dim, action_shape, dist_info_specs = 2, (2,), (("mean", (2,)),)

    own = OnlySamples()


class WithoutStd(MetaGaussianMLPPolicy):
    """Omits a parameter of its distribution."""

    def distribution_info_sym(self, obs_var, params=None):
        return {"mean": super().distribution_info_sym(obs_var, params)["mean"]}


class WithoutStdInfo(MetaGaussianMLPPolicy):
    """Omits the standard deviation from its agent infos."""

    def get_actions(self, observations):
        actions, infos = super().get_actions(observations)
        return actions, [[{"mean": info["mean"]} for info in task_infos] for task_infos in infos]


def make(policy_cls):
    return policy_cls(M, 2, 2, hidden_sizes=())


def trainer_of(algo):
    env = MetaPointEnvCorner("dense")
    sampler, processor = MetaSampler(env, algo.policy, P, M, T), MetaSampleProcessor(ZeroBaseline(), normalize_adv=True)
    return Trainer(algo, env, sampler, processor, algo.policy, n_itr=1)


@pytest.mark.parametrize("policy_cls", [LaplacePolicy, LaplaceSubclassPolicy])
@pytest.mark.parametrize("algo_cls", [ProMP, TRPOMAML])
def test_missing_divergence_error_names_algorithms_that_do_not_need_it(algo_cls, policy_cls):
    name = type(policy_cls.own).__name__
    with pytest.raises(TypeError, match=f"^policy: expected a distribution with kl_sym for {algo_cls.__name__}, got "
                                        f"{name} without it; VPGMAML and DICEMAML do not need kl_sym$"):
        algo_cls(make(policy_cls), meta_batch_size=M)


@pytest.mark.parametrize("policy_cls", [LaplacePolicy, LaplaceSubclassPolicy])
@pytest.mark.parametrize("exploration", [False, True])
@pytest.mark.thorough(but="True-LaplaceSubclassPolicy")
def test_algorithm_that_only_needs_densities_trains(policy_cls, exploration):
    algo = VPGMAML(make(policy_cls), inner_lr=0.1, meta_batch_size=M, exploration=exploration)
    before, adaptations = algo.policy.get_param_values(), []
    original = algo.adapt
    algo.adapt = lambda samples: original(samples) or adaptations.append((samples, algo.policy.policies_params_vals))
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


@pytest.mark.parametrize("algo_cls", [ProMP, TRPOMAML, VPGMAML])
def test_distribution_without_densities_is_refused(algo_cls):
    with pytest.raises(AttributeError, match="'OnlySamples' object has no attribute 'log_likelihood_sym'"):
        algo_cls(make(WithoutDensity), meta_batch_size=M)


def test_error_in_a_custom_distribution_is_not_reported_as_a_missing_method(monkeypatch):
    def kl_sym(old, new):
        raise AttributeError("my mistake")

    monkeypatch.setattr(Laplace, "kl_sym", staticmethod(kl_sym), raising=False)
    with pytest.raises(AttributeError, match="my mistake"):
        ProMP(make(LaplacePolicy), meta_batch_size=M)


def test_policy_that_omits_part_of_its_distribution_is_refused():
    with pytest.raises(KeyError, match="log_std"):
        VPGMAML(make(WithoutStd), meta_batch_size=M)


def test_missing_entries_of_agent_infos_are_named_if_required():
    trainer = trainer_of(VPGMAML(make(WithoutStdInfo), meta_batch_size=M))
    before = trainer.policy.get_flat_params()
    with pytest.raises(ValueError, match="^adaptation: task 0: expected samples with an entry 'agent_infos/log_std'"):
        trainer.train()
    np.testing.assert_array_equal(trainer.policy.get_flat_params(), before)
    assert not {"Step_0-AveragePolicyStd", "Step_0-AveragePolicyEntropy"} & set(logger.getkvs())


def test_non_finite_adaptation_step_is_refused():
    algo = VPGMAML(make(MetaGaussianMLPPolicy), inner_lr=1e3, meta_batch_size=M)
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
