"""Tests weights, clipping, stopped gradients and shapes of policy-gradient losses, and gradient steps.

Their values and derivatives are those of NumPy in meta_algos/test_meta_gradients.py and test_enumeration.py, padding is
tested in samplers/test_dicts_are_the_data.py.
"""
from collections import OrderedDict

import numpy as np
import pytest

from meta_policy_search.ops import adaptation, losses
from meta_policy_search.tf_compat import tf
from tests.helpers.small_world import run


def test_weights_sum_to_one_and_are_zero_on_padding_and_in_empty_tasks():
    weights = run(losses.sample_weights(tf.constant([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0] * 4])))
    np.testing.assert_array_equal(weights, [[1, 0, 0, 0], [0.25] * 4, [0] * 4])


@pytest.mark.parametrize("ratio, advantage, expected_loss, has_gradient", [
    (1.5, 2.0, -2.4, False),  # higher probability of a good action: clipped to 1.2 * 2
    (1.1, 2.0, -2.2, True),
    (0.5, 2.0, -1.0, True),  # lower probability of a good action: not clipped
    (0.5, -2.0, 1.6, False),
    (1.5, -2.0, 3.0, True),
])
def test_clipping_removes_the_gradient_beyond_the_range(ratio, advantage, expected_loss, has_gradient):
    log_prob = tf.constant([[np.log(ratio)]], tf.float32)
    one = tf.ones([1, 1])
    out = losses.clipped_surrogate(log_prob, tf.zeros([1, 1]), advantage * one, one, clip_eps=0.2)
    loss, gradient = run([out, tf.gradients(out, log_prob)[0]])
    assert loss[0] == pytest.approx(expected_loss, rel=1e-6)
    assert (gradient[0, 0] != 0.0) == has_gradient


def test_no_gradient_flows_through_old_densities_and_advantages():
    log_prob, old_log_prob, advantages, weights = tf.unstack(tf.ones([4, 3, 7]))
    for loss in (
        losses.likelihood_ratio_loss(log_prob, old_log_prob, advantages, weights),
        losses.clipped_surrogate(log_prob, old_log_prob, advantages, weights, 0.2),
        losses.exploration_score(log_prob, old_log_prob, weights),
        losses.log_likelihood_loss(log_prob, advantages, weights),
    ):
        assert tf.gradients(loss, [old_log_prob, advantages]) == [None, None]
        assert tf.gradients(loss, log_prob)[0] is not None


@pytest.mark.parametrize("build, names", [
    (losses.likelihood_ratio_loss, ["log_prob", "old_log_prob", "advantages", "weights"]),
    (losses.log_likelihood_loss, ["log_prob", "advantages", "weights"]),
    (lambda **kw: losses.clipped_surrogate(**kw, clip_eps=0.2), ["log_prob", "old_log_prob", "advantages",
                                                                "weights"]),
    (losses.exploration_score, ["log_prob", "old_log_prob", "weights"]),
    (losses.dice_loss, ["log_prob", "rewards", "weights", "path_starts"]),
    (losses.loaded_dice_loss, ["log_prob", "advantages", "weights", "path_starts"]),
])
@pytest.mark.parametrize("wrong_shape", [(3, 6), (3,), (3, 7, 1)])
def test_wrong_shape_error_names_its_argument_and_both_shapes(build, names, wrong_shape):
    for wrong in names[1:]:
        tensors = {name: tf.zeros(wrong_shape if name == wrong else (3, 7)) for name in names}
        with pytest.raises(ValueError) as error:
            build(**tensors)
        assert str(error.value).startswith(f"{wrong}: ")
        assert str(tf.TensorShape(wrong_shape)) in str(error.value) and "(3, 7)" in str(error.value)


def test_parameters_without_influence_are_unchanged():
    params = OrderedDict(w=tf.constant([[1.0], [2.0]]), unused=tf.constant([[3.0], [4.0]]))
    loss = tf.reduce_sum(params["w"] ** 2, axis=1)
    adapted = run(adaptation.gradient_step(params, loss, dict.fromkeys(params, tf.constant(0.1))))
    assert list(adapted) == ["w", "unused"]
    np.testing.assert_allclose(adapted["w"], [[0.8], [1.6]], rtol=1e-6)
    np.testing.assert_array_equal(adapted["unused"], [[3.0], [4.0]])
