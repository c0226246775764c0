"""Compares the distributions with scipy and closed forms, and their graph methods with their NumPy methods."""
import numpy as np
import pytest
import scipy.special
import scipy.stats

from meta_policy_search.policies import Categorical, DiagonalGaussian, Distribution
from meta_policy_search.tf_compat import tf
from tests.helpers.small_world import run

N = 4
CATEGORICAL, GAUSSIAN = Categorical(N), DiagonalGaussian(2)
BOTH = pytest.mark.parametrize("distribution", [CATEGORICAL, GAUSSIAN], ids=["categorical", "gaussian"])


def draw_info(distribution, seed, *leading):
    """Returns parameters of a distribution, with the given leading axes."""
    rng = np.random.default_rng(seed)
    if distribution is CATEGORICAL:
        return {"log_prob": scipy.special.log_softmax(2.0 * rng.normal(size=(*leading, N)), axis=-1)}
    return {"mean": rng.normal(size=(*leading, 2)), "log_std": rng.uniform(-1.0, 0.5, (*leading, 2))}


def draw_actions(distribution, seed, *leading):
    rng = np.random.default_rng(seed)
    return rng.integers(N, size=leading) if distribution is CATEGORICAL else rng.normal(size=(*leading, 2))


def scipy_distributions(info):
    """Returns one frozen distribution of scipy for each row."""
    if "log_prob" in info:
        return [scipy.stats.rv_discrete(values=(np.arange(N), np.exp(row))) for row in info["log_prob"]]
    return [scipy.stats.multivariate_normal(m, np.diag(np.exp(2 * s))) for m, s in zip(info["mean"], info["log_std"])]


def reference_kl(old, new):
    if "log_prob" in old:
        return scipy.stats.entropy(np.exp(old["log_prob"]), np.exp(new["log_prob"]), axis=1)
    std_old, std_new = np.exp(old["log_std"]), np.exp(new["log_std"])
    # sum_i log(s_new / s_old) + (s_old^2 + (m_old - m_new)^2) / (2 s_new^2) - 1/2
    return np.sum(
        np.log(std_new / std_old) + (std_old**2 + (old["mean"] - new["mean"]) ** 2) / (2 * std_new**2) - 0.5, axis=1)


@pytest.mark.parametrize("distribution, dim, action_shape, specs", [
    (CATEGORICAL, N, (), (("log_prob", (N,)),)), (GAUSSIAN, 2, (2,), (("mean", (2,)), ("log_std", (2,))))])
def test_distribution_lists_its_parameters(distribution, dim, action_shape, specs):
    assert isinstance(distribution, Distribution) and distribution.dim == dim
    assert distribution.action_shape == action_shape and distribution.dist_info_specs == specs


@pytest.mark.parametrize("cls", [Categorical, DiagonalGaussian])
@pytest.mark.parametrize("dim, error", [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError)])
def test_size_is_checked(cls, dim, error):
    with pytest.raises(error, match="dim"):
        cls(dim)


@BOTH
def test_log_likelihood_and_entropy_equal_scipy(distribution):
    info, xs = draw_info(distribution, 0, 6), draw_actions(distribution, 9, 6)
    references = scipy_distributions(info)
    expected = [each.logpmf(x) if distribution is CATEGORICAL else each.logpdf(x) for each, x in zip(references, xs)]
    np.testing.assert_allclose(distribution.log_likelihood(xs, info), expected, rtol=1e-10)
    np.testing.assert_allclose(distribution.entropy(info), [each.entropy() for each in references], rtol=1e-10)


@BOTH
def test_kl_equals_the_closed_form_and_is_directed(distribution):
    old, new = draw_info(distribution, 2, 5), draw_info(distribution, 3, 5)
    np.testing.assert_allclose(distribution.kl(old, new), reference_kl(old, new), rtol=1e-10)
    assert (distribution.kl(old, new) > 0).all()
    assert not np.allclose(distribution.kl(new, old), distribution.kl(old, new))
    np.testing.assert_array_equal(distribution.kl(old, old), np.zeros(5))


@pytest.mark.parametrize("distribution, leading, other_leading, dtype", [
    *((CATEGORICAL, leading, leading, dtype) for leading in ((5,), (3, 4)) for dtype in (np.int64, np.float32)),
    (CATEGORICAL, (3, 4), (3, 1), np.int64),  # algorithms feed actions as float32
    *((GAUSSIAN, leading, other, np.float64) for leading, other in (((5,), (5,)), ((5,), (1,)), ((3, 4), (3, 1)))),
])
def test_graph_and_numpy_agree_and_broadcast(distribution, leading, other_leading, dtype):
    # given parameters of which one has fewer entries: the new log-probabilities, or both log standard deviations
    old, new = draw_info(distribution, 4, *leading), draw_info(distribution, 5, *leading)
    if distribution is CATEGORICAL:
        new = draw_info(distribution, 5, *other_leading)
    else:
        old["log_std"], new["log_std"] = (draw_info(distribution, seed, *other_leading)["log_std"] for seed in (4, 5))
    xs = draw_actions(distribution, 8, *leading)
    fed, tensors = xs.astype(dtype), {key: tf.constant(value) for key, value in new.items()}
    kl, log_likelihood, ratio, entropy = run([
        distribution.kl_sym(old, new), distribution.log_likelihood_sym(fed, new),
        distribution.likelihood_ratio_sym(fed, old, new), distribution.entropy_sym(tensors)])
    np.testing.assert_allclose(kl, distribution.kl(old, new), rtol=1e-10)
    np.testing.assert_allclose(log_likelihood, distribution.log_likelihood(xs, new), rtol=1e-10)
    expected_ratio = np.exp(distribution.log_likelihood(xs, new) - distribution.log_likelihood(xs, old))
    np.testing.assert_allclose(ratio, expected_ratio, rtol=1e-10)
    np.testing.assert_allclose(entropy, distribution.entropy(new), rtol=1e-10)
    assert kl.shape == log_likelihood.shape == ratio.shape == leading


def test_probabilities_near_zero_give_finite_values():
    # given logits so far apart that most probabilities round to zero in float32
    old = tf.nn.log_softmax(tf.constant([[0.0, -200.0, -1e6, -1e30]], tf.float32))
    logits = tf.constant([[-1e6, 0.0, -200.0, 1e4]], tf.float32)
    new = tf.nn.log_softmax(logits)
    # when divergence, entropy and log-likelihoods are computed with their gradients
    outputs = [CATEGORICAL.kl_sym({"log_prob": old}, {"log_prob": new}), CATEGORICAL.entropy_sym({"log_prob": new}),
               *(CATEGORICAL.log_likelihood_sym([x], {"log_prob": new}) for x in range(N))]
    gradients = [tf.gradients(output, logits)[0] for output in outputs]
    second = [tf.gradients(gradient, logits)[0] for gradient in gradients]
    values, gradients, second, old, new = run([outputs, gradients, second, old, new])
    # then they are finite and correct
    assert all(np.isfinite(value).all() for value in (*values, *gradients, *second))
    np.testing.assert_allclose(values[0], [1.01e6], rtol=1e-6)
    np.testing.assert_allclose(values[1], [0.0], atol=1e-30)
    np.testing.assert_allclose(np.ravel(values[2:]), [-1.01e6, -1e4, -10200.0, 0.0])
    np.testing.assert_allclose(gradients[0], [[-1.0, 0.0, 0.0, 1.0]])
    np.testing.assert_allclose(CATEGORICAL.kl({"log_prob": old}, {"log_prob": new}), values[0], rtol=1e-6)  # float32
    np.testing.assert_allclose(CATEGORICAL.entropy({"log_prob": new}), values[1], atol=1e-30)


def test_categorical_samples_have_the_given_probabilities_and_use_the_generator():
    info = {"log_prob": np.log(np.broadcast_to([0.1, 0.6, 0.05, 0.25], (20000, N)))}
    samples = CATEGORICAL.sample(info, np.random.default_rng(0))
    assert samples.dtype == np.int64 and samples.shape == (20000,)
    assert scipy.stats.chisquare(np.bincount(samples), [2000, 12000, 1000, 5000]).pvalue > 0.001
    np.testing.assert_array_equal(samples, CATEGORICAL.sample(info, np.random.default_rng(0)))
    info = {"log_prob": draw_info(CATEGORICAL, 0, 2, 3)["log_prob"].astype(np.float32)}
    assert CATEGORICAL.sample(info, np.random.default_rng(0)).shape == (2, 3)


def test_gaussian_samples_have_mean_and_std_and_use_the_generator():
    info = {"mean": np.broadcast_to([1.0, -2.0], (20000, 2)), "log_std": np.log([[0.5, 2.0]])}
    samples = GAUSSIAN.sample(info, np.random.default_rng(0))
    np.testing.assert_allclose(samples.mean(axis=0), [1.0, -2.0], atol=0.06)
    np.testing.assert_allclose(samples.std(axis=0), [0.5, 2.0], rtol=0.03)
    np.testing.assert_array_equal(samples, GAUSSIAN.sample(info, np.random.default_rng(0)))
    assert scipy.stats.kstest((samples[:, 1] + 2.0) / 2.0, "norm").pvalue > 0.001
    info = {"mean": np.zeros((3, 2), np.float32), "log_std": np.zeros((1, 2), np.float32)}
    assert GAUSSIAN.sample(info, np.random.default_rng(0)).dtype == np.float32  # the type of the mean


def test_kl_of_nearly_equal_gaussians_is_accurate_in_float32():
    # given log stds that differ by d, whose divergence is d^2 per component to leading order
    mean, log_std, d = np.zeros((1, 2), "f"), np.zeros((1, 2), "f"), np.float32(1e-4)
    (kl,) = run(GAUSSIAN.kl_sym({"mean": mean, "log_std": log_std}, {"mean": mean, "log_std": log_std + d}))
    assert kl == pytest.approx(2 * 1e-8, rel=5e-2)


def test_kl_of_a_gaussian_with_itself_and_its_gradient_are_zero():
    info = {key: tf.constant(value.astype("f")) for key, value in draw_info(GAUSSIAN, 4, 5).items()}
    kl = GAUSSIAN.kl_sym({key: tf.stop_gradient(value) for key, value in info.items()}, info)
    assert not any(value.any() for value in run([kl, *tf.gradients(kl, list(info.values()))]))
