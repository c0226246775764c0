"""Compares Gaussian densities, divergences and entropies with scipy and closed forms."""
import numpy as np
import pytest
import scipy.stats

from meta_policy_search.policies import Categorical, DiagonalGaussian
from meta_policy_search.tf_compat import tf


def run(tensors):
    with tf.Session() as session:
        return session.run(tensors)


def gaussians(rng, *leading, size=3):
    """Returns means and log standard deviations `[*leading, size]`, float32."""
    return rng.normal(size=(*leading, size)).astype("f"), rng.uniform(-1.5, 1.0, (*leading, size)).astype("f")


def log_prob_of_gaussian(actions, mean, log_std):
    mean, log_std = tf.convert_to_tensor(mean), tf.convert_to_tensor(log_std)
    return DiagonalGaussian(int(mean.shape[-1])).log_likelihood_sym(actions, {"mean": mean, "log_std": log_std})


def kl_of_gaussians(old_mean, old_log_std, mean, log_std):
    return DiagonalGaussian(int(old_mean.shape[-1])).kl_sym({"mean": old_mean, "log_std": old_log_std},
                                                       {"mean": mean, "log_std": log_std})


def kl_of_multivariate_normals(mean_0, cov_0, mean_1, cov_1):
    """Returns `(tr(S1^-1 S0) + (m1 - m0)' S1^-1 (m1 - m0) - k + ln det S1 - ln det S0) / 2` for full covariances."""
    inverse, gap = np.linalg.inv(cov_1), mean_1 - mean_0
    log_dets = np.linalg.slogdet(cov_1)[1] - np.linalg.slogdet(cov_0)[1]
    return 0.5 * (np.trace(inverse @ cov_0) + gap @ inverse @ gap - len(gap) + log_dets)


def test_log_prob_equals_scipy():
    rng = np.random.default_rng(0)
    (mean, log_std), actions = gaussians(rng, 4, 5), rng.normal(size=(4, 5, 3)).astype("f")
    expected = scipy.stats.norm.logpdf(actions, mean, np.exp(log_std)).sum(axis=-1)
    np.testing.assert_allclose(run(log_prob_of_gaussian(actions, mean, log_std)), expected, rtol=1e-5)


def test_log_prob_broadcasts_the_log_std_over_samples():
    rng = np.random.default_rng(1)
    actions, mean, log_std = rng.normal(size=(4, 5, 3)), rng.normal(size=(4, 5, 3)), rng.normal(size=(4, 1, 3))
    expected = scipy.stats.norm.logpdf(actions, mean, np.exp(log_std)).sum(axis=-1)
    np.testing.assert_allclose(run(log_prob_of_gaussian(actions, mean, log_std)), expected, rtol=1e-10)


def test_score_equals_the_closed_form():
    # d log N / d mean = z / std, d log N / d log std = z^2 - 1
    rng = np.random.default_rng(2)
    actions, mean, log_std = (rng.normal(size=(6, 2)) for _ in range(3))
    mean_var, log_std_var = tf.constant(mean), tf.constant(log_std)
    log_prob = log_prob_of_gaussian(actions, mean_var, log_std_var)
    by_mean, by_log_std = run(tf.gradients(log_prob, [mean_var, log_std_var]))
    z = (actions - mean) / np.exp(log_std)
    np.testing.assert_allclose(by_mean, z / np.exp(log_std), rtol=1e-10)
    np.testing.assert_allclose(by_log_std, z**2 - 1.0, rtol=1e-10)


def test_kl_equals_that_of_multivariate_normals():
    rng = np.random.default_rng(3)
    (old_mean, old_log_std), (mean, log_std) = gaussians(rng, 7), gaussians(rng, 7)
    actual = run(kl_of_gaussians(old_mean, old_log_std, mean, log_std))
    expected = [
        kl_of_multivariate_normals(m0, np.diag(np.exp(2 * s0)), m1, np.diag(np.exp(2 * s1)))
        for m0, s0, m1, s1 in zip(*(a.astype(float) for a in (old_mean, old_log_std, mean, log_std)))
    ]
    np.testing.assert_allclose(actual, expected, rtol=1e-4)
    assert actual.shape == (7,)


def test_kl_of_nearly_equal_gaussians_is_accurate_in_float32():
    # given log stds that differ by d, whose divergence is d^2 per component to leading order
    mean, log_std, d = np.zeros((1, 2), "f"), np.zeros((1, 2), "f"), np.float32(1e-4)
    (kl,) = run(kl_of_gaussians(mean, log_std, mean, log_std + d))
    assert kl == pytest.approx(2 * 1e-8, rel=5e-2)


def test_kl_of_a_gaussian_with_itself_and_its_gradient_are_zero():
    rng = np.random.default_rng(4)
    mean, log_std = (tf.constant(x) for x in gaussians(rng, 5))
    kl = kl_of_gaussians(tf.stop_gradient(mean), tf.stop_gradient(log_std), mean, log_std)
    value, by_mean, by_log_std = run([kl, *tf.gradients(kl, [mean, log_std])])
    assert not value.any() and not by_mean.any() and not by_log_std.any()


def test_entropy_equals_scipy():
    _, log_std = gaussians(np.random.default_rng(5), 4, 5)
    expected = scipy.stats.norm.entropy(scale=np.exp(log_std)).sum(axis=-1)
    actual = run(DiagonalGaussian(3).entropy_sym({"log_std": tf.constant(log_std)}))
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_score_of_a_categorical_distribution_equals_the_closed_form():
    # d log p_a / d logits = one_hot(a) - p
    rng = np.random.default_rng(6)
    logits, actions = tf.constant(rng.normal(size=(6, 4))), rng.integers(4, size=6)
    log_prob = tf.nn.log_softmax(logits)
    of_actions = Categorical(4).log_likelihood_sym(actions, {"log_prob": log_prob})
    score, p = run([tf.gradients(of_actions, logits)[0], tf.exp(log_prob)])
    np.testing.assert_allclose(score, np.eye(4)[actions] - p, atol=1e-12)


def test_curvature_of_the_categorical_kl_is_the_fisher_information():
    # d^2 KL(p_old || p) / d logits^2 = diag(p) - p p' where p = p_old, and the gradient is zero
    values = np.random.default_rng(7).normal(size=4)
    logits = tf.constant(values)
    log_prob = tf.nn.log_softmax(logits)
    kl = Categorical(4).kl_sym({"log_prob": tf.stop_gradient(log_prob)}, {"log_prob": log_prob})
    gradient, hessian, p = run([tf.gradients(kl, logits)[0], tf.hessians(kl, logits)[0], tf.exp(log_prob)])
    np.testing.assert_allclose(gradient, np.zeros(4), atol=1e-12)
    np.testing.assert_allclose(hessian, np.diag(p) - np.outer(p, p), atol=1e-12)


def test_gradient_of_the_categorical_entropy_equals_the_closed_form():
    # d H / d logits_a = -p_a (log p_a + H)
    logits = tf.constant(np.random.default_rng(8).normal(size=4))
    log_prob = tf.nn.log_softmax(logits)
    entropy = Categorical(4).entropy_sym({"log_prob": log_prob})
    gradient, entropy, log_prob = run([tf.gradients(entropy, logits)[0], entropy, log_prob])
    np.testing.assert_allclose(gradient, -np.exp(log_prob) * (log_prob + entropy), atol=1e-12)
    assert entropy == pytest.approx(scipy.stats.entropy(np.exp(log_prob)))
