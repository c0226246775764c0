"""Compares meta-objectives and meta-gradients of policies with discrete actions with a NumPy reference."""
import numpy as np
import pytest

from meta_policy_search.meta_algos import DICEMAML, TRPOMAML, VPG_DICEMAML, VPGMAML, ProMP
from meta_policy_search.policies import MetaCategoricalMLPPolicy
from tests.helpers import numpy_reference
from tests.helpers.gradients import INNER_LR, assert_equals_reference, case
from tests.helpers.numpy_reference import per_path, split
from tests.helpers.small_world import M, O, T, draw_data, set_theta

pytestmark = pytest.mark.gradients

N = 3  # actions

CASES = [
    case(ProMP, 1),
    case(ProMP, 2, trainable=True, marks=pytest.mark.thorough),
    case(TRPOMAML, 2, "likelihood_ratio", exploration=True, marks=pytest.mark.thorough),
    case(VPGMAML, 1, "log_likelihood", exploration=True, trainable=True, marks=pytest.mark.thorough),
    case(VPGMAML, 2, "dice", marks=pytest.mark.thorough),
    case(DICEMAML, 2, marks=pytest.mark.thorough),
    case(VPG_DICEMAML, 1),
]


def log_softmax(logits):
    """Also accepts complex numbers, whose small imaginary parts give derivatives."""
    logits = logits - logits.real.max(axis=1, keepdims=True)
    return logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))


def all_log_probs(theta, shapes, observations):
    kernel_0, bias_0, kernel_1, bias_1 = split(theta, shapes)
    return log_softmax(np.tanh(observations @ kernel_0 + bias_0) @ kernel_1 + bias_1)


def chosen(log_probs, actions):
    return log_probs[np.arange(len(actions)), actions]


@pytest.fixture(autouse=True)
def categorical_reference(monkeypatch):
    """Replaces the Gaussian densities of the reference by categorical probabilities."""

    def kl_from_old(theta, shapes, samples):
        old, new = samples["agent_infos"]["log_prob"], all_log_probs(theta, shapes, samples["observations"])
        return np.mean(np.sum(np.exp(old) * (old - new), axis=1))

    monkeypatch.setattr(numpy_reference, "log_prob", lambda theta, shapes, samples: chosen(
        all_log_probs(theta, shapes, samples["observations"]), samples["actions"]))
    monkeypatch.setattr(numpy_reference, "old_log_prob", lambda samples: chosen(
        samples["agent_infos"]["log_prob"], samples["actions"]))
    monkeypatch.setattr(numpy_reference, "kl_from_old", kl_from_old)


def discrete(data, seed=0):
    """Returns samples with integer actions, from policies with moderate likelihood ratios to other policies."""
    rng = np.random.default_rng(seed)
    for samples in (task for step in data for task in step):
        log_prob = log_softmax(0.5 * rng.normal(size=(len(samples["advantages"]), N))).astype("f").astype(float)
        samples["actions"] = rng.integers(N, size=len(log_prob))
        samples["agent_infos"] = {"log_prob": log_prob}
    return data


@pytest.mark.parametrize("algo_cls, arguments", CASES)
def test_objective_and_meta_gradient(algo_cls, arguments):
    # given samples of policies that differ from those at theta, so that ratios differ from one
    policy = MetaCategoricalMLPPolicy(M, O, N, hidden_sizes=(3,))
    algo = algo_cls(policy=policy, inner_lr=INNER_LR, meta_batch_size=M, **arguments)
    assert_equals_reference(algo, discrete(draw_data(algo.num_inner_grad_steps)), set_theta(policy))


def test_samples_have_paths_of_several_steps_and_every_action():
    # otherwise the cases above would cover less
    (samples, *_), _ = discrete(draw_data())
    assert max(map(len, per_path(samples["actions"], samples))) > 1 and max(samples["path_lengths"]) < T
    assert set(np.concatenate([task["actions"] for task in discrete(draw_data())[0]])) == set(range(N))
