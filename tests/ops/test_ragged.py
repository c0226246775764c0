"""Tests padding: its values and weights, and equal results of graph and NumPy functions."""
import numpy as np
import pytest

from meta_policy_search.ops import losses
from meta_policy_search.samplers.stacking import path_starts, stack_tasks, task_mask
from meta_policy_search.tf_compat import tf


def run(tensors, feed=None):
    with tf.Session() as session:
        return session.run(tensors, feed)


def test_short_tasks_are_padded_with_their_first_sample():
    arrays = [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])]
    stacked = stack_tasks(arrays)
    assert stacked.dtype == np.float32
    np.testing.assert_array_equal(stacked, [[[1, 2], [1, 2], [1, 2]], [[3, 4], [5, 6], [7, 8]]])


def test_mask_is_one_on_samples():
    mask = task_mask([1, 3, 2])
    assert mask.dtype == np.float32
    np.testing.assert_array_equal(mask, [[1, 0, 0], [1, 1, 1], [1, 1, 0]])


def test_weights_sum_to_one_and_are_zero_on_padding_and_in_empty_tasks():
    weights = run(losses.sample_weights(tf.constant([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0] * 4])))
    np.testing.assert_array_equal(weights, [[1, 0, 0, 0], [0.25] * 4, [0] * 4])


def test_path_starts():
    np.testing.assert_array_equal(path_starts([2, 1, 3]), [0, 0, 2, 3, 3, 3])


@pytest.mark.parametrize("longest", [3, 5])
def test_path_weights_count_paths_and_steps(longest):
    starts = stack_tasks([path_starts([2, 1, 3]), path_starts([2])], np.int32)
    weights = run(losses.path_weights(tf.constant(task_mask([6, 2])), tf.constant(starts), longest))
    np.testing.assert_allclose(weights, [[1 / (3 * longest)] * 6, [1 / longest] * 2 + [0] * 4], rtol=1e-6)
