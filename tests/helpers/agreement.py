"""One meta-update of ProMP, VPG-MAML and TRPO-MAML in float64 NumPy, from paths to new weights: `agreement.npz`.

    python -m tests.helpers.agreement    # writes tests/data/agreement.npz

The stages are those of the public code of ProMP: advantages, adapted weights, meta-gradient, new weights. Its TRPO step
differs, since it approximates the curvature by a finite difference; here the curvature is exact.

Arrays in the file, float64 (the inputs are rounded to float32):

- `theta` `[D]`, the weights before the update;
- `path_lengths` `[2, M, P]`, and `observations` `[N, O]`, `actions` `[N, A]`, `means` `[N, A]`, `log_stds` `[N, A]` and
  `rewards` `[N]`, the steps of all these paths;
- `advantages` `[N]` and `adapted` `[M, D]`, the weights after adaptation;
- `pro_mp_gradient` and `pro_mp_weights` `[D]`, the meta-gradient and the new weights; the same of `vpg_maml` and
  `trpo_maml`.
"""
from pathlib import Path

import numpy as np

from tests.helpers.numpy_reference import Objective, central_differences, gaussian

FILE = Path(__file__).resolve().parent.parent / "data" / "agreement.npz"

O, A, HIDDEN = 2, 2, 3
SHAPES = [(O, HIDDEN), (HIDDEN,), (HIDDEN, A), (A,), (A,)]
D = sum(int(np.prod(shape)) for shape in SHAPES)
PATH_LENGTHS = np.array([[[9, 12, 5, 12], [12, 12, 12, 12], [3, 10, 11, 12]],
                         [[12, 6, 8, 12], [12, 12, 12, 12], [7, 12, 9, 4]]])
M = PATH_LENGTHS.shape[1]
DISCOUNT, REG_COEFF, INNER_LR = 0.99, 1e-5, 0.1
LEARNING_RATE, NUM_STEPS = 1e-3, 5
CLIP_EPS, KL_COEFF = 0.2, 0.01
MAX_KL, BACKTRACK_RATIO = 0.01, 0.8
CG_ITERS = 6  # more iterations amplify the rounding errors of float32: the condition of the curvature is 2e5


def float32(values):
    return np.asarray(values).astype("f").astype(float)


# Paths


def draw_paths(rng, theta, lengths, goal):
    """Draws the paths of a task: the action moves the agent, and the reward is the negative distance to the goal."""
    paths = []
    for length in lengths:
        state, steps = rng.normal(size=O), []
        for _ in range(length):
            state = float32(state)
            mean, log_std = map(float32, gaussian(theta, SHAPES, state[None]))
            action = float32(mean[0] + np.exp(log_std) * rng.normal(size=A))
            steps.append((state, action, mean[0], log_std, float32(-np.linalg.norm(state - goal))))
            state = state + 0.3 * action
        paths.append(dict(zip(("observations", "actions", "means", "log_stds", "rewards"), map(np.array, zip(*steps)))))
    return paths


def split_paths(arrays):
    """Returns the paths of a loaded file as nested lists, `[2][M][P]` dicts."""
    keys = ("observations", "actions", "means", "log_stds", "rewards")
    bounds = np.cumsum(arrays["path_lengths"].ravel())[:-1]
    paths = [dict(zip(keys, parts)) for parts in zip(*(np.split(arrays[key], bounds) for key in keys))]
    num_paths = arrays["path_lengths"].shape[2]
    tasks = [paths[start:start + num_paths] for start in range(0, len(paths), num_paths)]
    return [tasks[:M], tasks[M:]]


# Advantages


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
    arrays = {key: np.concatenate([path[key] for path in paths]) for key in paths[0]}
    return {"observations": arrays["observations"], "actions": arrays["actions"],
            "agent_infos": {"mean": arrays["means"], "log_std": arrays["log_stds"]},
            "advantages": estimate_advantages(paths), "path_lengths": [len(path["rewards"]) for path in paths]}


# Meta-updates


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


def make():
    """Computes all arrays of the file."""
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
    objective = Objective(SHAPES, [first, last], step_size=INNER_LR)
    losses = {"pro_mp": objective.pro_mp(CLIP_EPS, KL_COEFF), "vpg_maml": objective.policy_gradient("log_likelihood"),
              "trpo_maml": objective.policy_gradient("likelihood_ratio")}
    for samples in (*first, *last):
        samples["adj_avg_rewards"] = np.zeros(1)  # of E-MAML's term, whose coefficient is zero
    results = {}
    for name, loss in losses.items():
        results[f"{name}_gradient"] = central_differences(loss, theta)
        results[f"{name}_weights"] = (
            take_trust_region_step(loss, objective.mean_kl, theta) if name == "trpo_maml"
            else take_adam_steps(lambda x: central_differences(loss, x), theta))  # noqa: B023
    paths = [path for step in (before, after) for task in step for path in task]
    return {"theta": theta, "path_lengths": PATH_LENGTHS, "adapted": np.array(adapted),
            "advantages": np.concatenate([samples["advantages"] for samples in (*first, *last)]),
            **{key: np.concatenate([path[key] for path in paths]) for key in paths[0]}, **results}


if __name__ == "__main__":
    np.savez_compressed(FILE, **make())
    print(f"{FILE}: {FILE.stat().st_size / 1000:.0f} kB")
