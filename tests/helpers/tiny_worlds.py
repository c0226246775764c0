"""Environments small enough to enumerate all paths and data sets, so that expectations are exact in float64.

The policy is a softmax of a linear function of the observation. Its parameters form one vector: kernel and bias
`[O + 1, n]`, as in a `MetaCategoricalMLPPolicy` without hidden layers. All functions of `theta` are analytic and accept
complex numbers, so that `derivative` is exact up to rounding: `Im f(x + ih) / h` with a tiny `h` (Squire and Trapp,
1998).
"""
import itertools
from typing import NamedTuple

import numpy as np

TINY = 1e-30


class Path(NamedTuple):
    """States, actions and rewards of a path, each `[T]`."""

    states: tuple
    actions: tuple
    rewards: tuple

    def __len__(self):
        return len(self.rewards)


class World(NamedTuple):
    """A deterministic environment with integer states and actions. Every path begins in state 0."""

    next_states: tuple  # [S][n]
    rewards: tuple  # [S][n]
    ends: tuple  # [S][n], whether the action ends the path
    horizon: int  # maximum path length

    @property
    def observations(self):
        """Returns the observations of all states, `[S, O]`."""
        return np.eye(len(self.rewards))

    @property
    def num_actions(self):
        return len(self.rewards[0])

    def paths(self, state=0, steps_left=None):
        """Returns all paths from a state."""
        steps_left = self.horizon if steps_left is None else steps_left
        found = []
        for action in range(self.num_actions):
            is_over = self.ends[state][action] or steps_left == 1
            rests = [Path((), (), ())] if is_over else self.paths(self.next_states[state][action], steps_left - 1)
            found += [Path((state, *rest.states), (action, *rest.actions), (self.rewards[state][action], *rest.rewards))
                      for rest in rests]
        return found


BANDIT = World(next_states=((0, 0),), rewards=((1.0, -0.5),), ends=((True, True),), horizon=1)
# two actions: the first action determines in which state (0 or 1) the second is taken
CROSSROADS = World(((0, 1), (1, 0)), ((0.5, -0.3), (0.2, 1.5)), ((False, False), (False, False)), horizon=2)
# one to three actions: action 1 ends the path in state 0, action 0 ends it in state 1
CLIFF = World(((1, 0), (1, 1)), ((0.5, 0.9), (-0.4, 1.5)), ((False, True), (True, False)), horizon=3)


def initial_theta(world):
    """Returns parameters that float32 represents exactly."""
    size = (world.observations.shape[1] + 1) * world.num_actions
    return np.random.default_rng(0).normal(0.0, 0.6, size).astype("f").astype(float)


def derivative(f, x):
    """Returns the derivatives of `f` with respect to each number in `x`, along the last axis: `[..., D]`."""
    return np.stack([np.imag(f(x + 1j * d)) / TINY for d in TINY * np.eye(len(x))], axis=-1)


def features(world):
    """Returns the observations with a constant one for the bias, `[S, O + 1]`."""
    return np.hstack([world.observations, np.ones((len(world.rewards), 1))])


def log_policy(world, theta):
    """Returns `log pi(a | s)`, `[S, n]`."""
    logits = features(world) @ theta.reshape(-1, world.num_actions)
    return logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))


def scores(world, theta):
    """Returns the gradients of `log pi(a | s)` with respect to theta, `[S, n, D]`."""
    by_logits = np.eye(world.num_actions) - np.exp(log_policy(world, theta))[:, None, :]
    return np.einsum("sf,sab->safb", features(world), by_logits).reshape(*by_logits.shape[:2], -1)


def along(path, table):
    """Returns the entries of a table `[S, n, ...]` for each step of a path, `[T, ...]`."""
    return table[list(path.states), list(path.actions)]


def probability(world, theta, paths):
    """Returns the probability of sampling this sequence of paths."""
    table = log_policy(world, theta)
    return np.exp(sum(np.sum(along(path, table)) for path in paths))


def expectation(world, theta, f):
    """Returns the mean of `f(path)` over the paths that the policy samples."""
    return sum(probability(world, theta, [path]) * f(path) for path in world.paths())


def datasets(world, num_paths):
    """Returns all sequences of `num_paths` paths."""
    return list(itertools.product(world.paths(), repeat=num_paths))


def rewards_to_come(path, discount=1.0):
    """Returns `sum_{k >= t} discount^(k - t) r_k`, `[T]`."""
    to_come = [0.0]
    for reward in reversed(path.rewards):
        to_come.insert(0, reward + discount * to_come[0])
    return np.array(to_come[:-1])


def mean_reward(world, theta):
    """Returns a path's expected reward sum divided by the maximum path length: the objective of the losses."""
    return expectation(world, theta, lambda path: np.sum(path.rewards)) / world.horizon


def policy_gradient(world, theta):
    """Returns the gradient of `mean_reward`: the expectation of return times score."""
    score = scores(world, theta)
    return expectation(world, theta, lambda path: np.sum(path.rewards) * along(path, score).sum(axis=0)) / world.horizon


class HessianParts(NamedTuple):
    """Terms of the Hessian of `mean_reward`, each `[D, D]`; the Hessian is their sum (arXiv:1810.06784, appendix)."""

    outer: np.ndarray  # E sum_t score_t score_t^T Q_t
    curvature: np.ndarray  # E sum_t (Hessian of log pi_t) Q_t
    later: np.ndarray  # E sum_t score_t (gradient of Q_t)^T, plus its transpose


def action_values(world, theta, steps_left):
    """Returns `Q(s, a)`, `[S, n]`: expected sum of the action's reward and all later rewards."""
    rewards, going_on = np.array(world.rewards), ~np.array(world.ends)
    if steps_left == 1:
        return rewards
    values = np.sum(np.exp(log_policy(world, theta)) * action_values(world, theta, steps_left - 1), axis=1)
    return rewards + going_on * values[np.array(world.next_states)]


def hessian_parts(world, theta):
    score, curvature = scores(world, theta), derivative(lambda x: scores(world, x), theta)
    steps_left = range(world.horizon, 0, -1)
    values = [action_values(world, theta, left) for left in steps_left]
    by_values = [derivative(lambda x: action_values(world, x, left), theta) for left in steps_left]  # noqa: B023

    def steps(path):
        return zip(path.states, path.actions, values, by_values)

    parts = HessianParts(
        expectation(world, theta, lambda path: sum(
            np.outer(score[s, a], score[s, a]) * q[s, a] for s, a, q, _ in steps(path))),
        expectation(world, theta, lambda path: sum(curvature[s, a] * q[s, a] for s, a, q, _ in steps(path))),
        expectation(world, theta, lambda path: sum(
            np.outer(score[s, a], by_q[s, a]) + np.outer(by_q[s, a], score[s, a]) for s, a, _, by_q in steps(path))),
    )
    return HessianParts(*(part / world.horizon for part in parts))


class Adaptation(NamedTuple):
    """Settings of the adaptation steps: number of steps and paths, path length and loss."""

    num_steps: int
    num_paths: int
    inner_lr: float
    inner_type: str = "log_likelihood"
    normalized: bool = False  # whether advantages are standardized per data set

    def advantages(self, paths):
        """Returns the advantages of each path's steps, `[T]`."""
        to_come = [rewards_to_come(path) for path in paths]
        if not self.normalized:
            return to_come
        together = np.concatenate(to_come)
        return [(values - together.mean()) / (together.std() + 1e-8) for values in to_come]

    def inner_gradient(self, world, theta, anchor, paths):
        """Returns the gradient at `theta` of the loss of a data set sampled at `anchor`, where DiCE's boxes are one."""
        score, ratios = scores(world, theta), np.exp(log_policy(world, theta) - log_policy(world, anchor))
        total = 0.0
        for path, advantages in zip(paths, self.advantages(paths)):
            score_t, ratio_t = along(path, score), along(path, ratios)
            if self.inner_type == "log_likelihood":
                total += advantages @ score_t
            elif self.inner_type == "likelihood_ratio":
                total += (advantages * ratio_t) @ score_t
            elif self.inner_type == "taypo":
                by_ratio, before = ratio_t[:, None] * score_t, np.cumsum(ratio_t - 1) - (ratio_t - 1)
                by_before = np.cumsum(by_ratio, axis=0) - by_ratio
                total += (advantages * (1 + before)) @ by_ratio + (advantages * (ratio_t - 1)) @ by_before
            else:  # the box is a product of ratios; its gradient is the box times the sum of the scores
                by_box = np.cumprod(ratio_t)[:, None] * np.cumsum(score_t, axis=0)
                by_box_before = np.vstack([np.zeros_like(by_box[:1]), by_box[:-1]])
                total += {"dice": advantages @ (by_box - by_box_before),
                          "dice of rewards": path.rewards @ by_box}[self.inner_type]
        over_paths = self.inner_type in ("dice", "dice of rewards", "taypo")
        return -total / (len(paths) * world.horizon if over_paths else sum(map(len, paths)))

    def adapt(self, world, theta, anchor, paths):
        return theta - self.inner_lr * self.inner_gradient(world, theta, anchor, paths)


def sampled_objective(world, adaptation, theta, anchor, score):
    """Returns the expected `mean_reward` of the adapted policy over all inner data sets, as a meta-gradient treats it.

    Its derivative with respect to `theta` at the anchor is the negated expected meta-gradient. A meta-gradient treats
    all terms that depend on the anchor as constants: the sampling parameters, at which ratios and boxes are one.

    Args:
        world: the environment.
        adaptation: settings of the adaptation steps.
        theta: parameters before adaptation.
        anchor: the sampling parameters, and the parameters that the same data adapt them to.
        score: whether the probability of the data sets depends on `theta`, as in the score term.
    """
    if adaptation.num_steps == 0:
        return mean_reward(world, theta)
    rest, total = adaptation._replace(num_steps=adaptation.num_steps - 1), 0.0
    for paths in datasets(world, adaptation.num_paths):
        adapted = [adaptation.adapt(world, start, anchor, paths) for start in (theta, anchor)]
        total += probability(world, theta if score else anchor, paths) * sampled_objective(world, rest, *adapted, score)
    return total


def adapted_return(world, adaptation, theta):
    """Returns the exact expected return of the adapted policy; nothing is constant."""
    return sampled_objective(world, adaptation, theta, theta, score=True)
