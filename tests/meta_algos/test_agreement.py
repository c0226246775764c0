"""One meta-update of ProMP, VPG-MAML and TRPO-MAML from paths to new weights agrees with float64 NumPy.

The stages are those of the public code of ProMP: advantages, adapted weights, meta-gradient, new weights. Its TRPO step
differs, since it approximates the curvature by a finite difference; here the curvature is exact. Tolerances are at
least ten times the error of float32 arithmetic, which differs between processors.
"""
from types import SimpleNamespace

import numpy as np
import pytest

from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.meta_algos import TRPOMAML, VPGMAML, ProMP
from meta_policy_search.optimizers import ConjugateGradientOptimizer
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor
from tests.helpers.numpy_reference import Objective, central_differences, gaussian
from tests.helpers.small_world import flat_task_params, relative_error

pytestmark = pytest.mark.thorough

O, A, HIDDEN = 2, 2, 3
SHAPES = [(O, HIDDEN), (HIDDEN,), (HIDDEN, A), (A,), (A,)]
D = sum(int(np.prod(shape)) for shape in SHAPES)
PATH_LENGTHS = [[[9, 12, 5, 12], [12, 12, 12, 12], [3, 10, 11, 12]], [[12, 6, 8, 12], [12, 12, 12, 12], [7, 12, 9, 4]]]
M = 3
DISCOUNT, REG_COEFF, INNER_LR = 0.99, 1e-5, 0.1
LEARNING_RATE, NUM_STEPS = 1e-3, 5
CLIP_EPS, KL_COEFF = 0.2, 0.01
MAX_KL, BACKTRACK_RATIO = 0.01, 0.8
CG_ITERS = 6  # more iterations amplify the rounding errors of float32: the condition of the curvature is 2e5


def float32(values):
    return np.asarray(values).astype("f").astype(float)


def draw_paths(rng, theta, lengths, goal):
    """Draws the paths of a task: the action moves the agent, and the reward is the negative distance to the goal."""
    paths = []
    for length in lengths:
        state, steps = rng.normal(size=O), []
        for _ in range(length):
            state = float32(state)
            mean, log_std = map(float32, gaussian(theta, SHAPES, state[None]))
            action = float32(mean[0] + np.exp(log_std) * rng.normal(size=A))
            steps.append((state, action, float32(-np.linalg.norm(state - goal)), mean[0], log_std))
            state = state + 0.3 * action
        observations, actions, rewards, means, log_stds = map(np.array, zip(*steps))
        paths.append({"observations": observations, "actions": actions, "rewards": rewards, "env_infos": {},
                      "agent_infos": {"mean": means, "log_std": log_stds}})
    return paths


# Advantages -------------------------------------------------------------------------------------------------------


def returns_of(rewards):
    return np.array([sum(DISCOUNT**k * reward for k, reward in enumerate(rewards[t:])) for t in range(len(rewards))])


def features_of(path):
    states, times = path["observations"], np.arange(len(path["rewards"]))[:, None] / 100.0
    return np.hstack([states, states**2, times, times**2, times**3, np.ones_like(times)])


def estimate_advantages(paths):
    """Returns minus a ridge regression on polynomial features, normalized over the task."""
    features = np.concatenate([features_of(path) for path in paths])
    returns = np.concatenate([returns_of(path["rewards"]) for path in paths])
    coefficients = np.linalg.solve(features.T @ features + REG_COEFF * np.eye(features.shape[1]), features.T @ returns)
    advantages = []
    for path in paths:
        values = np.append(features_of(path) @ coefficients, 0.0)
        errors = path["rewards"] + DISCOUNT * values[1:] - values[:-1]
        advantages.append(returns_of(errors))
    advantages = np.concatenate(advantages)
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def as_samples(paths):
    """Samples of a task, as `tests.helpers.numpy_reference` takes them."""
    infos = {key: np.concatenate([path["agent_infos"][key] for path in paths]) for key in ("mean", "log_std")}
    return {**{key: np.concatenate([path[key] for path in paths]) for key in ("observations", "actions")},
            "agent_infos": infos, "advantages": estimate_advantages(paths), "adj_avg_rewards": np.zeros(1),
            "path_lengths": [len(path["rewards"]) for path in paths]}


# Meta-updates -----------------------------------------------------------------------------------------------------


def take_adam_steps(gradient, theta):
    """Adam (arXiv:1412.6980) with the usual constants, in the form of TensorFlow."""
    mean, square = np.zeros(D), np.zeros(D)
    for t in range(1, NUM_STEPS + 1):
        g = gradient(theta)
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        theta = theta - LEARNING_RATE * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * mean / (np.sqrt(square) + 1e-8)
    return theta


def solve_by_conjugate_gradients(matrix, b):
    x, residual, direction = np.zeros(D), b, b
    for _ in range(CG_ITERS):
        if residual @ residual <= 1e-10 * (b @ b):
            break
        alpha = (residual @ residual) / (direction @ matrix @ direction)
        x, last, residual = x + alpha * direction, residual, residual - alpha * matrix @ direction
        direction = residual + (residual @ residual) / (last @ last) * direction
    return x


def take_trust_region_step(loss, mean_kl, theta):
    """The natural-gradient step, shortened until the loss is lower and the divergence within its bound."""
    hessian = central_differences(lambda x: central_differences(mean_kl, x, h=1e-3), theta, h=1e-3)
    direction = solve_by_conjugate_gradients(hessian, central_differences(loss, theta))
    step = direction * np.sqrt(2 * MAX_KL / (direction @ hessian @ direction))
    for trial in range(15):
        after = theta - BACKTRACK_RATIO**trial * step
        divergence = mean_kl(after)
        assert abs(divergence - MAX_KL) > 0.02 * MAX_KL, "too close to the bound for a comparison: change the seed"
        if loss(after) < loss(theta) and divergence <= MAX_KL:
            return after
    raise AssertionError("the line search failed: change the seed")


@pytest.fixture(scope="module")
def expected():
    """Weights before the update, paths and samples of both steps, adapted weights, and the losses of the algorithms."""
    rng = np.random.default_rng(2)
    theta = float32(0.3 * rng.normal(size=D))
    goals = rng.normal(size=(M, O))
    before = [draw_paths(rng, theta, lengths, goal) for lengths, goal in zip(PATH_LENGTHS[0], goals)]
    first = [as_samples(paths) for paths in before]
    # the objective needs samples of the adapted policies, which it computes from those of the first step alone
    inner = Objective(SHAPES, [first, first], step_size=INNER_LR)
    adapted = [inner.chain(theta, task)[-1] for task in range(M)]
    after = [draw_paths(rng, *task) for task in zip(adapted, PATH_LENGTHS[1], goals)]
    last = [as_samples(paths) for paths in after]
    return SimpleNamespace(theta=theta, paths=[before, after], samples=[first, last], adapted=adapted,
                           objective=Objective(SHAPES, [first, last], step_size=INNER_LR))


@pytest.fixture(scope="module")
def samples(expected):
    """The processed samples of both steps."""
    processor = MetaSampleProcessor(LinearFeatureBaseline(REG_COEFF), DISCOUNT, normalize_adv=True)
    return [processor.process_samples(dict(enumerate(tasks))) for tasks in expected.paths]


def test_advantages(expected, samples):
    for actual, wanted in zip(sum(samples, []), sum(expected.samples, [])):
        np.testing.assert_allclose(actual["advantages"], wanted["advantages"], rtol=0, atol=1e-9)


ADAM = {"learning_rate": LEARNING_RATE}
CASES = [
    (ProMP, {**ADAM, "num_ppo_steps": NUM_STEPS, "clip_eps": CLIP_EPS, "init_inner_kl_penalty": KL_COEFF}, 1, 1e-6),
    (VPGMAML, ADAM, NUM_STEPS, 1e-6),
    (TRPOMAML, {"step_size": MAX_KL, "optimizer": ConjugateGradientOptimizer(
        CG_ITERS, backtrack_ratio=BACKTRACK_RATIO, hvp_approach="exact")}, 1, 5e-5),
]


@pytest.mark.parametrize("algo_cls, arguments, num_updates, tolerance", CASES)
def test_adapted_weights_meta_gradient_and_new_weights(algo_cls, arguments, num_updates, tolerance, expected, samples):
    policy, objective = MetaGaussianMLPPolicy(M, O, A, hidden_sizes=(HIDDEN,)), expected.objective
    loss = {ProMP: objective.pro_mp(CLIP_EPS, KL_COEFF), VPGMAML: objective.policy_gradient("log_likelihood"),
            TRPOMAML: objective.policy_gradient("likelihood_ratio")}[algo_cls]
    algo = algo_cls(policy, inner_lr=INNER_LR, meta_batch_size=M, **arguments)
    policy.set_flat_params(expected.theta)
    algo.adapt(samples[0])
    np.testing.assert_allclose(flat_task_params(policy), expected.adapted, rtol=0, atol=1e-6)
    policy.switch_to_pre_update()
    gradient = algo.optimizer.gradient(algo.meta_input_values(samples))
    assert relative_error(gradient, central_differences(loss, expected.theta)) < 1e-5
    for _ in range(num_updates):
        algo.optimize_policy(samples)
    weights = (take_trust_region_step(loss, objective.mean_kl, expected.theta) if algo_cls is TRPOMAML
               else take_adam_steps(lambda x: central_differences(loss, x), expected.theta))
    np.testing.assert_allclose(policy.get_flat_params(), weights, rtol=0, atol=tolerance)
