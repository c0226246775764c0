"""Tests DDPG: updates compared with NumPy, saved state, and learning."""
import pickle

import numpy as np
import pytest

from meta_policy_search import DDPG, EnvSpec, GaussianNoisePolicy, LocalRunner, MetaPointEnv, ReplayBuffer, normalize
from meta_policy_search.np.policies import CategoricalMLPPolicy, DeterministicMLPPolicy
from meta_policy_search.np.q_functions import MLPQFunction
from meta_policy_search.utils.gym_import import gym

O, A, B, T = 2, 2, 16, 5
DISCOUNT, TAU, LEARNING_RATE = 0.9, 0.25, 1e-3


def make_env():
    env = normalize(MetaPointEnv(), normalization_scale=1.0)
    env.set_task([0.3, -0.4])
    return env


def make(env=None, hidden_sizes=(4,), size=1000, **arguments):
    spec = EnvSpec.of(make_env() if env is None else env)
    policy = DeterministicMLPPolicy(spec.obs_dim, spec.action_dim, hidden_sizes, "tanh", "tanh")
    arguments = {"max_path_length": T, "min_buffer_size": 1, "steps_per_epoch": 2, "n_train_steps": 3,
                 "exploration_policy": GaussianNoisePolicy(spec, policy, sigma=0.3), **arguments}
    return DDPG(spec, policy, MLPQFunction(spec.obs_dim, spec.action_dim, hidden_sizes, "tanh"),
                ReplayBuffer(spec, size), **arguments)


def make_batch(**changes):
    rng = np.random.default_rng(0)
    return {"observations": rng.normal(size=(B, O)), "actions": rng.uniform(-1, 1, (B, A)),
            "rewards": rng.normal(size=B), "next_observations": rng.normal(size=(B, O)),
            "terminals": np.arange(B) % 3 == 0, **changes}


def clone(network):
    return pickle.loads(pickle.dumps(network))


def bellman_targets(batch, policy, qf):
    next_values = qf.compute_values(batch["next_observations"], policy.get_actions(batch["next_observations"])[0])
    return batch["rewards"] + DISCOUNT * np.where(batch["terminals"], 0.0, next_values)


def gradient(function, network, eps=3e-3):
    """Returns central differences of `function()` with respect to the network's parameters."""
    start, slopes = network.get_flat_params(), []
    for i in range(len(start)):
        values = []
        for sign in (1, -1):
            moved = start.copy()
            moved[i] += sign * eps
            network.set_flat_params(moved)
            values.append(function())
        slopes.append((values[0] - values[1]) / (2 * eps))
    network.set_flat_params(start)
    return np.array(slopes)


def assert_first_step_of_adam(before, after, slopes):
    """Checks the first step of Adam: each entry moves by the learning rate, against the gradient."""
    step = (after - before) / LEARNING_RATE
    clear = np.abs(slopes) > 3e-3
    assert clear.sum() > len(step) / 2
    np.testing.assert_allclose(step[clear], -np.sign(slopes[clear]), atol=0.02)


@pytest.mark.parametrize("use_target", [True, False])
def test_update_descends_both_losses(use_target):
    algo = make(discount=DISCOUNT, use_target=use_target, target_update_tau=TAU, policy_lr=LEARNING_RATE,
                qf_lr=LEARNING_RATE)
    policy, qf, batch = clone(algo.policy), clone(algo.qf), make_batch()
    targets = bellman_targets(batch, policy, qf)  # no gradient flows here

    def qf_loss():
        return np.mean((qf.compute_values(batch["observations"], batch["actions"]) - targets) ** 2)

    def policy_loss():
        return -np.mean(algo.qf.compute_values(batch["observations"], policy.get_actions(batch["observations"])[0]))

    figures = algo.optimize_policy([batch])
    assert figures["QFunctionLoss"] == pytest.approx(qf_loss(), rel=1e-4)
    assert figures["AverageTargetQ"] == pytest.approx(targets.mean(), rel=1e-4)
    assert figures["AverageQ"] == pytest.approx(
        qf.compute_values(batch["observations"], batch["actions"]).mean(), rel=1e-4)
    assert figures["PolicyLoss"] == pytest.approx(policy_loss(), rel=1e-4)  # with the updated values
    assert_first_step_of_adam(qf.get_flat_params(), algo.qf.get_flat_params(), gradient(qf_loss, qf))
    assert_first_step_of_adam(policy.get_flat_params(), algo.policy.get_flat_params(), gradient(policy_loss, policy))


def test_parameters_that_were_set_are_the_ones_that_learn():
    algo = make(policy_lr=LEARNING_RATE, qf_lr=LEARNING_RATE)
    for network in (algo.policy, algo.qf):
        network.set_flat_params(network.get_flat_params() + 1.0)
    expected = algo.policy.get_flat_params(), algo.qf.get_flat_params()
    algo.optimize_policy([make_batch()])
    for network, before in zip((algo.policy, algo.qf), expected, strict=True):
        assert 0.0 < np.abs(network.get_flat_params() - before).max() < 2 * LEARNING_RATE


def targets_of(algo):
    """Returns the flat parameters of the target networks."""
    values = algo._variables.read()
    return [np.concatenate([values[variable.op.name].ravel() for variable in variables.values()])
            for variables in algo._graph["targets"].values()]


def test_targets_follow_slowly():
    algo = make(target_update_tau=TAU, policy_lr=0.1, qf_lr=0.1)
    expected = [algo.policy.get_flat_params(), algo.qf.get_flat_params()]
    for _ in range(3):
        algo.optimize_policy([make_batch()])
        networks = [algo.policy.get_flat_params(), algo.qf.get_flat_params()]
        expected = [TAU * new + (1 - TAU) * old for new, old in zip(networks, expected, strict=True)]
        for ours, theirs in zip(targets_of(algo), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("use_target", [True, False])
def test_use_target_selects_the_networks_for_the_target_values(use_target):
    algo = make(discount=DISCOUNT, use_target=use_target, target_update_tau=1e-6, policy_lr=0.1, qf_lr=0.1)
    first = clone(algo.policy), clone(algo.qf)
    algo.optimize_policy([make_batch()] * 3)
    now = clone(algo.policy), clone(algo.qf)
    figures = algo.optimize_policy([make_batch()])
    expected = bellman_targets(make_batch(), *(first if use_target else now)).mean()
    other = bellman_targets(make_batch(), *(now if use_target else first)).mean()
    assert figures["AverageTargetQ"] == pytest.approx(expected, rel=1e-3)
    assert abs(expected - other) > 0.01


def test_diverging_update_raises_and_keeps_policy_and_values():
    algo = make()
    before, other = (algo.policy.get_flat_params(), algo.qf.get_flat_params()), pickle.loads(pickle.dumps(algo))
    with pytest.raises(FloatingPointError, match="QFunctionLoss is .*learning has diverged"):
        algo.optimize_policy([make_batch(rewards=np.full(B, 1e30))])
    np.testing.assert_array_equal(algo.policy.get_flat_params(), before[0])
    np.testing.assert_array_equal(algo.qf.get_flat_params(), before[1])
    assert algo.optimize_policy([make_batch()]) == other.optimize_policy([make_batch()])
    with pytest.raises(FloatingPointError, match="the updated .* is not finite"):
        make(policy_lr=1e39).optimize_policy([make_batch()])


def test_unpickled_algorithm_continues_like_the_original():
    algo = make()
    algo.optimize_policy([make_batch()])
    other = pickle.loads(pickle.dumps(algo))
    assert other.exploration_policy.policy is other.policy
    for _ in range(2):
        assert other.optimize_policy([make_batch()] * 2) == algo.optimize_policy([make_batch()] * 2)
    np.testing.assert_array_equal(other.policy.get_flat_params(), algo.policy.get_flat_params())
    np.testing.assert_array_equal(other.qf.get_flat_params(), algo.qf.get_flat_params())
    for ours, theirs in zip(targets_of(other), targets_of(algo), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_init_opt_resets_the_algorithm():
    algo = make()
    start = algo.policy.get_flat_params(), algo.qf.get_flat_params()
    ends = []
    for _ in range(2):
        algo.policy.set_flat_params(start[0])
        algo.qf.set_flat_params(start[1])
        algo.init_opt()
        algo.optimize_policy([make_batch()] * 3)
        ends.append(algo.policy.get_flat_params())
    np.testing.assert_array_equal(ends[0], ends[1])


def make_with(**parts):
    spec = EnvSpec.of(make_env())
    policy = parts.get("policy", DeterministicMLPPolicy(O, A))
    explorer = GaussianNoisePolicy(spec, policy) if isinstance(policy, DeterministicMLPPolicy) else object()
    return DDPG(parts.get("spec", spec), policy, parts.get("qf", MLPQFunction(O, A)), ReplayBuffer(spec, 100000),
                exploration_policy=explorer)


DISCRETE = EnvSpec(gym.spaces.Box(-1.0, 1.0, (O,)), gym.spaces.Discrete(A))


@pytest.mark.parametrize("build, error, message", [
    (lambda: make(exploration_policy=None), ValueError, "exploration_policy: expected an ExplorationPolicy, .* None"),
    (lambda: make(target_update_tau=0.0), ValueError, r"target_update_tau: expected a number in \(0, 1\], got 0.0"),
    (lambda: make(qf_lr=0.0), ValueError, "qf_lr: expected a finite number above 0, got 0.0"),
    (lambda: make_with(qf=MLPQFunction(O, A + 1)), ValueError, "qf: expected .* of size 2, .* got 2 and 3"),
    (lambda: make_with(policy=CategoricalMLPPolicy(O, A), spec=DISCRETE), TypeError, "policy: expected a Determin"),
])
def test_arguments_are_checked(build, error, message):
    with pytest.raises(error, match=message):
        build()


@pytest.mark.thorough
def test_policy_learns_to_reach_a_goal():
    """The policy reaches a goal four steps away; the initial policy does not move."""
    env = make_env()
    algo = make(env, (32,), size=5000, max_path_length=20, min_buffer_size=200, steps_per_epoch=10, n_train_steps=200,
                policy_lr=1e-3, discount=DISCOUNT)
    runner = LocalRunner()
    runner.setup(algo, env)
    before = runner.sampler.obtain_evaluation_samples(0, 1)[0]["rewards"].sum()
    runner.train(3, 80)
    after = runner.sampler.obtain_evaluation_samples(0, 1)[0]["rewards"].sum()
    assert before == -10.0 and after > -5.0, (before, after)
