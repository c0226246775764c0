"""Compares the vectorized actors of policies with their graph, and tests actors based on `get_actions`."""
import copy
import types

import numpy as np
import pytest

from meta_policy_search.actors import Actor, actor_from_policy
from meta_policy_search.actors.from_policy import PolicyActor, vectorized_actor
from meta_policy_search.np import policies
from meta_policy_search.ops.networks import NONLINEARITIES
from meta_policy_search.policies import GaussianMLPPolicy, MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.fast_paths import replaces

M, B, O, A = 3, 6, 4, 2


def with_random_task_params(policy, seed=0):
    rng = np.random.default_rng(seed)
    policy.load_params(rng.normal(size=(M, len(policy.get_flat_params()))))
    return policy


@pytest.mark.parametrize("output_nonlinearity", [None, "tanh"])
@pytest.mark.parametrize("hidden_nonlinearity", [None, *NONLINEARITIES])
@pytest.mark.parametrize("cls", [MetaGaussianMLPPolicy, MetaCategoricalMLPPolicy])
def test_actor_agrees_with_get_actions_for_equal_noise(cls, hidden_nonlinearity, output_nonlinearity):
    policy = with_random_task_params(cls(M, O, A, hidden_sizes=(5, 4), hidden_nonlinearity=hidden_nonlinearity,
                                         output_nonlinearity=output_nonlinearity))
    observations, actor = np.random.default_rng(1).normal(size=(M, B, O)), actor_from_policy(policy)
    noise = np.empty((M, B, actor.noise_dim), np.float32)
    actor.draw_noise(copy.deepcopy(policy._rng), noise)
    expected, expected_infos = policy.get_actions(observations)
    actions, infos = actor.act(observations, noise)
    assert actions.dtype == expected[0].dtype and {value.dtype for value in infos.values()} == {np.dtype("f")}
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(actions, np.stack(expected), rtol=0, atol=1e-6 * scale)
    for key, value in infos.items():
        np.testing.assert_allclose(value, [[info[key] for info in task] for task in expected_infos], rtol=1e-5,
                                   atol=1e-6 * scale)
    # an actor for some of the tasks acts like the actor for all, also if the other tasks differ
    part_actions, part_infos = actor.for_tasks(1, M).act(observations[1:], noise[1:])
    np.testing.assert_array_equal(part_actions, actions[1:])
    for key, value in infos.items():
        np.testing.assert_array_equal(part_infos[key], value[1:])


def test_actor_of_a_single_task_policy_has_one_task():
    policy, observations = GaussianMLPPolicy(O, A, hidden_sizes=()), np.random.default_rng(1).normal(size=(B, O))
    actions, infos = actor_from_policy(policy).act(observations[None], np.zeros((1, B, A), "f"))
    np.testing.assert_array_equal(actions, infos["mean"])  # without noise
    np.testing.assert_allclose(actions[0], policy.get_actions(observations)[1]["mean"], atol=1e-6)


def test_actor_keeps_the_parameters_at_its_creation():
    policy = with_random_task_params(MetaGaussianMLPPolicy(M, O, A, hidden_sizes=(5,)))
    observations, noise = np.ones((M, B, O)), np.zeros((M, B, A), "f")
    actor = actor_from_policy(policy)
    before, _ = actor.act(observations, noise)
    with_random_task_params(policy, seed=1)
    np.testing.assert_array_equal(actor.act(observations, noise)[0], before)
    assert (actor_from_policy(policy).act(observations, noise)[0] != before).any()


@pytest.mark.parametrize("argument", ["hidden_nonlinearity", "output_nonlinearity"])
def test_other_nonlinearities_have_no_actor(argument):
    policy = MetaGaussianMLPPolicy(M, O, A, hidden_sizes=(5,), **{argument: tf.nn.leaky_relu})
    assert policy.make_actor() is None
    assert isinstance(actor_from_policy(policy), PolicyActor)
    assert actor_from_policy(policy).act(np.zeros((M, B, O)), None)[0].shape == (M, B, A)


def test_policy_without_vectorized_actor_acts_in_one_task():
    policy = types.SimpleNamespace(get_actions=lambda each: (each[:, :A], {"twice": 2.0 * each}))
    observations, actor = np.random.default_rng(1).normal(size=(1, B, O)), actor_from_policy(policy)
    assert isinstance(actor, PolicyActor) and not actor.can_divide and actor.noise_dim == 0
    actions, infos = actor.act(observations, np.empty((1, B, 0), "f"))
    np.testing.assert_array_equal(actions, observations[..., :A])
    np.testing.assert_array_equal(infos["twice"], 2.0 * observations)


def test_each_task_policy_acts_in_its_task():
    own = [policies.GaussianMLPPolicy(O, A, ()) for _ in range(M)]
    observations, noise = np.random.default_rng(1).normal(size=(M, B, O)), np.zeros((M, B, A), "f")
    actor = actor_from_policy(own)
    assert actor.can_divide and actor.noise_dim == A
    actions, infos = actor.act(observations, noise)
    for m, policy in enumerate(own):
        alone, _ = actor_from_policy(policy).act(observations[m, None], noise[m, None])
        np.testing.assert_array_equal(actions[m], alone[0])
    part_actions, part_infos = actor.for_tasks(1, M).act(observations[1:], noise[1:])
    np.testing.assert_array_equal(part_actions, actions[1:])
    np.testing.assert_array_equal(part_infos["mean"], infos["mean"][1:])


def test_indivisible_actor_keeps_all_tasks_together():
    actor = actor_from_policy([policies.DeterministicMLPPolicy(O, A), types.SimpleNamespace()])
    assert not actor.can_divide


class Constant(Actor):
    """The minimal actor."""

    def act(self, observations, noise):
        return np.zeros((*observations.shape[:2], A)), {}


def test_default_actor_draws_no_noise_and_acts_for_all_tasks_together():
    actor, rng = Constant(), np.random.default_rng(0)
    actor.draw_noise(rng, np.empty((B, actor.noise_dim), np.float32))
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state
    assert not actor.can_divide
    with pytest.raises(TypeError, match="Constant acts for all tasks together"):
        actor.for_tasks(0, 1)


class Wrong:
    """A policy whose vectorized methods do not return actors."""

    meta_batch_size = M

    @replaces()
    def make_actor(self):
        return 3

    @replaces()
    def make_actors(self, flat_params):
        return flat_params


def test_returned_actors_are_checked():
    with pytest.raises(TypeError, match="^policy.make_actor: expected an actors.Actor or None, got 3$"):
        actor_from_policy(Wrong())
    with pytest.raises(TypeError, match=r"^policy.make_actors: expected an actors.Actor or None, got array\(\[\[0."):
        vectorized_actor(Wrong(), "make_actors", np.zeros((1, 2)))


def test_vectorized_method_declares_the_methods_it_replaces():
    policy = type("Mine", (), {"meta_batch_size": M, "make_actor": lambda self: Constant()})()
    with pytest.raises(TypeError, match=r"^Mine.make_actor: expected a method decorated with @replaces"):
        actor_from_policy(policy)
