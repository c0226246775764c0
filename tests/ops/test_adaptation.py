"""Tests that parameters without influence stay as they are; meta_algos/test_meta_gradients.py compares the rest."""
from collections import OrderedDict

import numpy as np

from meta_policy_search.ops import adaptation
from meta_policy_search.tf_compat import tf
from tests.helpers.small_world import run


def test_parameters_without_influence_are_unchanged():
    params = OrderedDict(w=tf.constant([[1.0], [2.0]]), unused=tf.constant([[3.0], [4.0]]))
    loss = tf.reduce_sum(params["w"] ** 2, axis=1)
    adapted = run(adaptation.gradient_step(params, loss, dict.fromkeys(params, tf.constant(0.1))))
    assert list(adapted) == ["w", "unused"]
    np.testing.assert_allclose(adapted["w"], [[0.8], [1.6]], rtol=1e-6)
    np.testing.assert_array_equal(adapted["unused"], [[3.0], [4.0]])
