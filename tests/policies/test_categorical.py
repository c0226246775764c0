"""Compares the categorical distribution with scipy, and its graph methods with its NumPy methods."""
import numpy as np
import pytest
import scipy.special
import scipy.stats

from meta_policy_search.policies import Categorical, Distribution
from meta_policy_search.tf_compat import tf

N = 4
CATEGORICAL = Categorical(N)


def info(seed, *leading, dtype=np.float64):
    logits = 2.0 * np.random.default_rng(seed).normal(size=(*leading, N))
    return {"log_prob": scipy.special.log_softmax(logits, axis=-1).astype(dtype)}


def run(tensors):
    with tf.Session() as session:
        return session.run(tensors)


def test_distribution_lists_its_parameters():
    assert isinstance(CATEGORICAL, Distribution) and CATEGORICAL.dim == N
    assert CATEGORICAL.action_shape == ()
    assert CATEGORICAL.dist_info_specs == (("log_prob", (N,)),)
    assert CATEGORICAL.dist_info_keys == ("log_prob",)


@pytest.mark.parametrize("dim, error", [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError)])
def test_size_is_validated(dim, error):
    with pytest.raises(error, match="dim"):
        Categorical(dim)


def test_log_likelihood_is_the_entry_of_the_action():
    dist, xs = info(0, 6), np.array([0, 3, 1, 1, 2, 0])
    expected = [scipy.stats.multinomial.logpmf(np.eye(N)[x], 1, np.exp(row)) for x, row in zip(xs, dist["log_prob"])]
    np.testing.assert_allclose(CATEGORICAL.log_likelihood(xs, dist), expected, rtol=1e-10)


def test_entropy_and_kl_equal_scipy_and_kl_is_directed():
    old, new = info(1, 5), info(2, 5)
    p, q = np.exp(old["log_prob"]), np.exp(new["log_prob"])
    np.testing.assert_allclose(CATEGORICAL.entropy(old), scipy.stats.entropy(p, axis=1), rtol=1e-10)
    np.testing.assert_allclose(CATEGORICAL.kl(old, new), scipy.stats.entropy(p, q, axis=1), rtol=1e-10)
    assert (CATEGORICAL.kl(old, new) > 0).all()
    assert not np.allclose(CATEGORICAL.kl(new, old), CATEGORICAL.kl(old, new))
    np.testing.assert_array_equal(CATEGORICAL.kl(old, old), np.zeros(5))


@pytest.mark.parametrize("leading", [(5,), (3, 4)])
@pytest.mark.parametrize("dtype", [np.int64, np.float32])  # algorithms feed actions as float32
def test_graph_and_numpy_agree(leading, dtype):
    old, new = info(4, *leading), info(5, *leading)
    xs = np.random.default_rng(8).integers(N, size=leading)
    fed = xs.astype(dtype)
    kl, log_likelihood, ratio, entropy = run([
        CATEGORICAL.kl_sym(old, new), CATEGORICAL.log_likelihood_sym(fed, new),
        CATEGORICAL.likelihood_ratio_sym(fed, old, new), CATEGORICAL.entropy_sym(new),
    ])
    np.testing.assert_allclose(kl, CATEGORICAL.kl(old, new), rtol=1e-10)
    np.testing.assert_allclose(log_likelihood, CATEGORICAL.log_likelihood(xs, new), rtol=1e-10)
    expected_ratio = np.exp(CATEGORICAL.log_likelihood(xs, new) - CATEGORICAL.log_likelihood(xs, old))
    np.testing.assert_allclose(ratio, expected_ratio, rtol=1e-10)
    np.testing.assert_allclose(entropy, CATEGORICAL.entropy(new), rtol=1e-10)
    assert kl.shape == log_likelihood.shape == ratio.shape == entropy.shape == leading


def test_leading_axes_broadcast():
    old, new = info(4, 3, 4), info(5, 3, 1)
    xs = np.random.default_rng(8).integers(N, size=(3, 4))
    kl, log_likelihood = run([CATEGORICAL.kl_sym(old, new), CATEGORICAL.log_likelihood_sym(xs, new)])
    np.testing.assert_allclose(kl, CATEGORICAL.kl(old, new), rtol=1e-10)
    np.testing.assert_allclose(log_likelihood, CATEGORICAL.log_likelihood(xs, new), rtol=1e-10)
    assert kl.shape == log_likelihood.shape == (3, 4)


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
    assert CATEGORICAL.kl({"log_prob": old}, {"log_prob": new}) == values[0]
    assert CATEGORICAL.entropy({"log_prob": new}) == values[1]


def test_samples_have_the_given_probabilities_and_use_the_generator():
    dist = {"log_prob": np.log(np.broadcast_to([0.1, 0.6, 0.05, 0.25], (20000, N)))}
    samples = CATEGORICAL.sample(dist, np.random.default_rng(0))
    assert samples.dtype == np.int64 and samples.shape == (20000,)
    assert scipy.stats.chisquare(np.bincount(samples), [2000, 12000, 1000, 5000]).pvalue > 0.001
    np.testing.assert_array_equal(samples, CATEGORICAL.sample(dist, np.random.default_rng(0)))
    assert CATEGORICAL.sample(info(0, 2, 3, dtype=np.float32), np.random.default_rng(0)).shape == (2, 3)
