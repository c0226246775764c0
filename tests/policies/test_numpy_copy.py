"""The NumPy copy that samplers act with, against the graph that the documented methods act with."""
import copy

import numpy as np
import pytest

from meta_policy_search.actors.nonlinearities import NONLINEARITIES
from meta_policy_search.policies import GaussianMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.tf_compat import tf

M, B, O, A = 3, 6, 4, 2


def with_random_task_params(policy, seed=0):
    rng = np.random.default_rng(seed)
    policy.load_params(rng.normal(size=(M, len(policy.get_flat_params()))))
    return policy


def noise_of_next_get_actions(policy, shape):
    return copy.deepcopy(policy._rng).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("output_nonlinearity", [None, "tanh"])
@pytest.mark.parametrize("hidden_nonlinearity", [None, *sorted(NONLINEARITIES)])
def test_it_agrees_with_get_actions_given_the_same_noise(hidden_nonlinearity, output_nonlinearity):
    policy = with_random_task_params(MetaGaussianMLPPolicy(
        M, O, A, hidden_sizes=(5, 4), hidden_nonlinearity=hidden_nonlinearity, output_nonlinearity=output_nonlinearity
    ))
    observations = np.random.default_rng(1).normal(size=(M, B, O))
    noise = noise_of_next_get_actions(policy, (M, B, A))
    expected, expected_infos = policy.get_actions(observations)
    actions, infos = policy.make_actor().act(observations, noise)
    assert actions.dtype == infos["mean"].dtype == infos["log_std"].dtype == np.float32
    assert actions.shape == infos["mean"].shape == infos["log_std"].shape == (M, B, A)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(actions, np.stack(expected), rtol=0, atol=1e-6 * scale)
    for key in ("mean", "log_std"):
        expected_info = [[info[key] for info in task_infos] for task_infos in expected_infos]
        np.testing.assert_allclose(infos[key], expected_info, rtol=0, atol=1e-6 * scale)


def test_a_plain_policy_has_a_copy_of_one_task():
    policy = GaussianMLPPolicy(O, A, hidden_sizes=())
    observations = np.random.default_rng(1).normal(size=(B, O))
    noise = noise_of_next_get_actions(policy, (B, A))
    expected, _ = policy.get_actions(observations)
    actions, _ = policy.make_actor().act(observations[None], noise[None])
    np.testing.assert_allclose(actions[0], expected, atol=1e-6)


@pytest.mark.parametrize("learn_std", [True, False])
def test_the_std_is_the_policys(learn_std):
    policy = MetaGaussianMLPPolicy(M, O, A, hidden_sizes=(), learn_std=learn_std, init_std=0.3)
    _, infos = policy.make_actor().act(np.zeros((M, B, O)), np.zeros((M, B, A), "f"))
    np.testing.assert_allclose(np.exp(infos["log_std"]), np.full((M, B, A), 0.3), rtol=1e-6)


def test_noise_of_zero_gives_the_mean():
    policy = with_random_task_params(MetaGaussianMLPPolicy(M, O, A, hidden_sizes=(5,)))
    actions, infos = policy.make_actor().act(np.ones((M, B, O)), np.zeros((M, B, A), "f"))
    np.testing.assert_array_equal(actions, infos["mean"])


def test_the_copy_keeps_the_parameters_of_its_moment():
    policy = with_random_task_params(MetaGaussianMLPPolicy(M, O, A, hidden_sizes=(5,)))
    observations, noise = np.ones((M, B, O)), np.zeros((M, B, A), "f")
    copied = policy.make_actor()
    before, _ = copied.act(observations, noise)
    with_random_task_params(policy, seed=1)
    np.testing.assert_array_equal(copied.act(observations, noise)[0], before)
    assert (policy.make_actor().act(observations, noise)[0] != before).any()


def test_each_tasks_actions_are_the_same_whatever_the_other_tasks():
    policy = with_random_task_params(MetaGaussianMLPPolicy(M, O, A, hidden_sizes=(64, 64)))
    rng = np.random.default_rng(0)
    observations, noise = rng.normal(size=(M, B, O)), rng.normal(size=(M, B, A)).astype("f")
    together, _ = policy.make_actor().act(observations, noise)
    other = observations.copy()
    other[1:] += 1.0
    np.testing.assert_array_equal(policy.make_actor().act(other, noise)[0][0], together[0])


def test_the_copy_for_some_tasks_acts_as_the_whole_does_in_these():
    policy = with_random_task_params(MetaGaussianMLPPolicy(M, O, A, hidden_sizes=(64, 64)))
    rng = np.random.default_rng(0)
    observations, noise = rng.normal(size=(M, B, O)), rng.normal(size=(M, B, A)).astype("f")
    copied = policy.make_actor()
    actions, infos = copied.act(observations, noise)
    part_actions, part_infos = copied.for_tasks(1, M).act(observations[1:], noise[1:])
    np.testing.assert_array_equal(part_actions, actions[1:])
    for key, values in infos.items():
        np.testing.assert_array_equal(part_infos[key], values[1:])


@pytest.mark.parametrize("argument", ["hidden_nonlinearity", "output_nonlinearity"])
def test_there_is_none_for_other_nonlinearities(argument):
    policy = MetaGaussianMLPPolicy(M, O, A, hidden_sizes=(5,), **{argument: tf.nn.leaky_relu})
    assert policy.make_actor() is None
    assert policy.get_actions(np.zeros((M, B, O)))[0][0].shape == (B, A)
