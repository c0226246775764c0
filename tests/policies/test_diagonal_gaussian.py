"""Compares the diagonal Gaussian distribution with scipy, and its graph methods with its NumPy methods."""
import numpy as np
import pytest
import scipy.stats

from meta_policy_search.policies import DiagonalGaussian, Distribution
from meta_policy_search.tf_compat import tf

GAUSSIAN = DiagonalGaussian(2)


def info(seed, *leading):
    rng = np.random.default_rng(seed)
    return {"mean": rng.normal(size=(*leading, 2)), "log_std": rng.uniform(-1.0, 0.5, (*leading, 2))}


def test_distribution_lists_its_parameters():
    assert isinstance(GAUSSIAN, Distribution) and GAUSSIAN.dim == 2
    assert GAUSSIAN.dist_info_specs == (("mean", (2,)), ("log_std", (2,)))
    assert GAUSSIAN.dist_info_keys == ("mean", "log_std")


@pytest.mark.parametrize("dim, error", [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError)])
def test_size_is_validated(dim, error):
    with pytest.raises(error, match="dim"):
        DiagonalGaussian(dim)


def test_log_likelihood_equals_scipy():
    dist, xs = info(0, 5), np.random.default_rng(9).normal(size=(5, 2))
    expected = [scipy.stats.multivariate_normal(m, np.diag(np.exp(2 * s))).logpdf(x)
                for x, m, s in zip(xs, dist["mean"], dist["log_std"])]
    np.testing.assert_allclose(GAUSSIAN.log_likelihood(xs, dist), expected, rtol=1e-10)


def test_entropy_equals_scipy():
    dist = info(1, 5)
    expected = [scipy.stats.multivariate_normal(m, np.diag(np.exp(2 * s))).entropy()
                for m, s in zip(dist["mean"], dist["log_std"])]
    np.testing.assert_allclose(GAUSSIAN.entropy(dist), expected, rtol=1e-10)


def test_kl_equals_the_closed_form_and_is_directed():
    old, new = info(2, 5), info(3, 5)
    std_old, std_new = np.exp(old["log_std"]), np.exp(new["log_std"])
    # sum_i log(s_new / s_old) + (s_old^2 + (m_old - m_new)^2) / (2 s_new^2) - 1/2
    expected = np.sum(
        np.log(std_new / std_old) + (std_old**2 + (old["mean"] - new["mean"]) ** 2) / (2 * std_new**2) - 0.5, axis=1
    )
    np.testing.assert_allclose(GAUSSIAN.kl(old, new), expected, rtol=1e-10)
    assert (GAUSSIAN.kl(old, new) > 0).all()
    assert not np.allclose(GAUSSIAN.kl(new, old), expected)
    np.testing.assert_array_equal(GAUSSIAN.kl(old, old), np.zeros(5))


@pytest.mark.parametrize("leading, log_std_leading", [((5,), (5,)), ((5,), (1,)), ((3, 4), (3, 1))])
def test_graph_and_numpy_agree_and_broadcast(leading, log_std_leading):
    old = {"mean": info(4, *leading)["mean"], "log_std": info(4, *log_std_leading)["log_std"]}
    new = {"mean": info(5, *leading)["mean"], "log_std": info(5, *log_std_leading)["log_std"]}
    xs = np.random.default_rng(8).normal(size=(*leading, 2))
    with tf.Session() as session:
        kl, log_likelihood, ratio = session.run([
            GAUSSIAN.kl_sym(old, new), GAUSSIAN.log_likelihood_sym(xs, new), GAUSSIAN.likelihood_ratio_sym(xs, old, new)
        ])
        entropy = session.run(GAUSSIAN.entropy_sym({"log_std": tf.constant(new["log_std"])}))
    np.testing.assert_allclose(kl, GAUSSIAN.kl(old, new), rtol=1e-10)
    np.testing.assert_allclose(log_likelihood, GAUSSIAN.log_likelihood(xs, new), rtol=1e-10)
    expected_ratio = np.exp(GAUSSIAN.log_likelihood(xs, new) - GAUSSIAN.log_likelihood(xs, old))
    np.testing.assert_allclose(ratio, expected_ratio, rtol=1e-10)
    np.testing.assert_allclose(entropy, GAUSSIAN.entropy(new), rtol=1e-10)
    assert kl.shape == log_likelihood.shape == ratio.shape == leading


def test_samples_have_mean_and_std_and_use_the_generator():
    dist = {"mean": np.broadcast_to([1.0, -2.0], (20000, 2)), "log_std": np.log([[0.5, 2.0]])}
    samples = GAUSSIAN.sample(dist, np.random.default_rng(0))
    np.testing.assert_allclose(samples.mean(axis=0), [1.0, -2.0], atol=0.06)
    np.testing.assert_allclose(samples.std(axis=0), [0.5, 2.0], rtol=0.03)
    np.testing.assert_array_equal(samples, GAUSSIAN.sample(dist, np.random.default_rng(0)))
    assert scipy.stats.kstest(samples[:, 1], "norm", args=(-2.0, 2.0)).pvalue > 0.001


def test_samples_have_the_type_of_the_mean():
    dist = {"mean": np.zeros((3, 2), np.float32), "log_std": np.zeros((1, 2), np.float32)}
    assert GAUSSIAN.sample(dist, np.random.default_rng(0)).dtype == np.float32
