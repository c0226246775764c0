"""Tests NumPy policies and action values, whose parameters are one flat vector."""
import pickle

import numpy as np
import pytest

from meta_policy_search.actors.parameters import flatten_params
from meta_policy_search.np.policies import CategoricalMLPPolicy, DeterministicMLPPolicy, GaussianMLPPolicy
from meta_policy_search.np.q_functions import MLPQFunction
from meta_policy_search.utils.utils import set_seed

O, A, B = 3, 2, 5
POLICIES = {
    "gaussian": lambda: GaussianMLPPolicy(O, A, (4,)),
    "fixed_std": lambda: GaussianMLPPolicy(O, A, (), learn_std=False, init_std=0.5),
    "categorical": lambda: CategoricalMLPPolicy(O, A, (4,)),
    "deterministic": lambda: DeterministicMLPPolicy(O, A, (4, 3), "relu", "tanh"),
    "greedy": lambda: DeterministicMLPPolicy(O, A, (), is_discrete=True),
}
SIZES = {"gaussian": 4 * 3 + 4 + 2 * 4 + 2 + 2, "fixed_std": 2 * 3 + 2, "categorical": 26, "deterministic": 39,
         "greedy": 8}


@pytest.fixture(params=POLICIES)
def name(request):
    return request.param


@pytest.fixture
def policy(name):
    return POLICIES[name]()


@pytest.fixture
def observations():
    return np.random.default_rng(0).normal(size=(B, O))


def test_parameters_can_be_read_and_set_as_a_vector(name, policy):
    flat = policy.get_flat_params()
    assert flat.shape == (SIZES[name],) and flat.dtype == np.float32
    policy.set_flat_params(np.arange(len(flat)))
    np.testing.assert_array_equal(policy.get_flat_params(), np.arange(len(flat), dtype=np.float32))
    np.testing.assert_array_equal(flatten_params(policy.get_param_values()), np.arange(len(flat)))
    policy.get_flat_params()[:] = 7.0  # a copy
    assert policy.get_flat_params()[1] == 1.0


def test_parameters_are_saved_as_arrays_by_name(name, policy, tmp_path):
    flat = policy.get_flat_params()
    policy.save_npz(tmp_path / "policy.npz")
    policy.set_flat_params(np.zeros_like(flat))
    policy.load_npz(tmp_path / "policy.npz")
    np.testing.assert_array_equal(policy.get_flat_params(), flat)
    with pytest.raises(ValueError, match="path: expected the parameters of this policy in .*policy.npz: policy_params"):
        GaussianMLPPolicy(O, A, (9,)).load_npz(tmp_path / "policy.npz")


def test_actors_act_like_the_policy_with_their_parameters(policy, observations):
    # given two candidates
    candidates = np.outer([1.0, -1.0], np.random.default_rng(1).normal(size=len(policy.get_flat_params())))
    given = candidates.copy()
    actors = policy.make_actors(given)
    given[:] = 0.0  # actors hold copies
    noise = np.empty((2, B, actors.noise_dim), np.float32)
    for rows in noise:
        actors.draw_noise(np.random.default_rng(2), rows)
    # when they act together, then each acts like the policy with its parameters
    together, _ = actors.act(np.stack([observations, observations]), noise)
    for candidate, actions in zip(candidates, together, strict=True):
        policy.set_flat_params(candidate)
        policy._rng = np.random.default_rng(2)
        np.testing.assert_array_equal(policy.get_actions(observations)[0], actions)
    assert (together[0] != together[1]).any()


def test_single_action_is_the_first_of_many(policy, observations):
    copy = pickle.loads(pickle.dumps(policy))
    actions, infos = policy.get_actions(observations[:1])
    action, info = copy.get_action(observations[0])
    np.testing.assert_array_equal(action, actions[0])
    assert np.shape(action) == policy.action_shape
    assert {key: value.shape for key, value in info.items()} == {key: value.shape[1:] for key, value in infos.items()}


def test_interpretation_of_the_outputs(observations):
    weights = np.random.default_rng(3).normal(size=(O, A))
    linear = observations @ weights
    flat = np.concatenate([weights.ravel(), [0.5, -0.5]])

    deterministic = DeterministicMLPPolicy(O, A, (), output_nonlinearity="tanh")
    deterministic.set_flat_params(flat)
    np.testing.assert_allclose(deterministic.get_actions(observations)[0], np.tanh(linear + [0.5, -0.5]), rtol=1e-5)

    greedy = DeterministicMLPPolicy(O, A, (), is_discrete=True)
    greedy.set_flat_params(flat)
    np.testing.assert_array_equal(greedy.get_actions(observations)[0], np.argmax(linear + [0.5, -0.5], axis=1))


def test_parameters_and_actions_depend_on_the_seed(name, observations):
    answers = []
    for seed in (5, 5, 6):
        set_seed(seed)
        policy = POLICIES[name]()
        answers.append((policy.get_flat_params(), policy.get_actions(observations)[0]))
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    np.testing.assert_array_equal(answers[0][1], answers[1][1])
    assert (answers[0][0] != answers[2][0]).any()


@pytest.mark.parametrize("build, message", [
    (lambda: GaussianMLPPolicy(0, A), "obs_dim: expected an integer of at least 1, got 0"),
    (lambda: GaussianMLPPolicy(O, A, (4, 0)), r"hidden_sizes\[1\]: expected an integer of at least 1, got 0"),
    (lambda: CategoricalMLPPolicy(O, A, hidden_nonlinearity="gelu"), "hidden_nonlinearity: expected one of .*'tanh'"),
    (lambda: GaussianMLPPolicy(O, A, init_std=0.1, min_std=0.2), "init_std: expected at least min_std=0.2, got 0.1"),
])
def test_arguments_are_checked(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("call, message", [
    (lambda policy: policy.set_flat_params(np.zeros(25)), r"flat_params: expected 28 numbers .*\(25,\)"),
    (lambda policy: policy.set_flat_params(np.zeros((1, 28))), r"flat_params: expected 1 axis, got shape \(1, 28\)"),
    (lambda policy: policy.set_flat_params(np.full(28, np.nan)), "flat_params: expected finite numbers, got nan"),
    (lambda policy: policy.make_actors(np.zeros(28)), r"flat_params: expected 2 axes, got shape \(28,\)"),
    (lambda policy: policy.get_action(np.zeros(O + 1)), r"observation: expected shape \(3,\), got \(4,\)"),
    (lambda policy: policy.get_action(np.full(O, np.inf)), "observation: expected finite numbers"),
])
def test_invalid_call_changes_nothing(call, message):
    policy = GaussianMLPPolicy(O, A, (4,))
    before = policy.get_flat_params()
    with pytest.raises(ValueError, match=message):
        call(policy)
    np.testing.assert_array_equal(policy.get_flat_params(), before)


def test_value_depends_on_observation_and_action():
    qf = MLPQFunction(2, 1, (2,))
    qf.set_flat_params([1, 0, 0, 1, 0, -1,  # from two observations and an action to two units
                        0, 1,
                        10, 1,  # to the value
                        5])
    # units: relu(o0) and relu(o1 - a + 1)
    values = qf.compute_values([[3.0, 2.0], [-1.0, 2.0], [0.0, 0.0]], [[1.0], [1.0], [5.0]])
    np.testing.assert_array_equal(values, [30 + 2 + 5, 2 + 5, 5])
    assert values.dtype == np.float32 and len(qf.get_flat_params()) == 11
