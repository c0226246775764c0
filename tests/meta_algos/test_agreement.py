"""Every stage of a meta-update, from given paths and weights, agrees with float64 NumPy (`tests/helpers/agreement.py`).

Tolerances are at least ten times the error of float32 arithmetic, which differs between processors.
"""
import numpy as np
import pytest

from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.meta_algos import TRPOMAML, VPGMAML, ProMP
from meta_policy_search.optimizers import ConjugateGradientOptimizer
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor
from tests.helpers import agreement
from tests.helpers.agreement import HIDDEN, INNER_LR, LEARNING_RATE, NUM_STEPS, A, M, O
from tests.helpers.small_world import flat_task_params, relative_error


@pytest.fixture(scope="module")
def expected():
    with np.load(agreement.FILE) as file:
        return dict(file)


@pytest.fixture(scope="module")
def samples(expected):
    """The processed samples of both steps."""
    processor = MetaSampleProcessor(LinearFeatureBaseline(agreement.REG_COEFF), agreement.DISCOUNT, normalize_adv=True)
    return [processor.process_samples(dict(enumerate(
        [[as_path(arrays) for arrays in paths] for paths in tasks]))) for tasks in agreement.split_paths(expected)]


def as_path(arrays):
    infos = {"mean": arrays["means"], "log_std": arrays["log_stds"]}
    return {"observations": arrays["observations"], "actions": arrays["actions"], "rewards": arrays["rewards"],
            "env_infos": {}, "agent_infos": infos}


def test_advantages(expected, samples):
    advantages = np.concatenate([task["advantages"] for step in samples for task in step])
    np.testing.assert_allclose(advantages, expected["advantages"], rtol=0, atol=1e-9)


def update_once(algo, samples):
    """ProMP takes all steps of Adam in one update."""
    algo.optimize_policy(samples)


def update_several_times(algo, samples):
    for _ in range(NUM_STEPS):
        algo.optimize_policy(samples)


ADAM = {"learning_rate": LEARNING_RATE}
CASES = {
    "pro_mp": (ProMP, {**ADAM, "num_ppo_steps": NUM_STEPS, "clip_eps": agreement.CLIP_EPS,
                       "init_inner_kl_penalty": agreement.KL_COEFF}, update_once, 1e-6),
    "vpg_maml": (VPGMAML, ADAM, update_several_times, 1e-6),
    "trpo_maml": (TRPOMAML, {"step_size": agreement.MAX_KL, "optimizer": ConjugateGradientOptimizer(
        agreement.CG_ITERS, backtrack_ratio=agreement.BACKTRACK_RATIO, hvp_approach="exact")}, update_once, 5e-5),
}


@pytest.mark.parametrize("name", CASES)
def test_adapted_weights_meta_gradient_and_new_weights(name, expected, samples):
    algo_cls, arguments, update, tolerance = CASES[name]
    policy = MetaGaussianMLPPolicy(M, O, A, hidden_sizes=(HIDDEN,))
    algo = algo_cls(policy, inner_lr=INNER_LR, meta_batch_size=M, **arguments)
    policy.set_flat_params(expected["theta"])
    algo.adapt(samples[0])
    np.testing.assert_allclose(flat_task_params(policy), expected["adapted"], rtol=0, atol=1e-6)
    policy.switch_to_pre_update()
    gradient = algo.optimizer.gradient(algo.meta_input_values(samples))
    assert relative_error(gradient, expected[f"{name}_gradient"]) < 1e-5
    update(algo, samples)
    np.testing.assert_allclose(policy.get_flat_params(), expected[f"{name}_weights"], rtol=0, atol=tolerance)


@pytest.mark.thorough
def test_the_file_is_what_the_reference_computes(expected):
    for key, values in agreement.make().items():
        np.testing.assert_allclose(values, expected[key], rtol=1e-6, atol=1e-9, err_msg=key)
