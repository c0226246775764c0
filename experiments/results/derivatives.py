"""Compares estimated derivatives of the value (orders 1 to 3) with exact derivatives.

The command is `python -m experiments.reproduce derivatives`. The setup follows the demonstration released by the
authors of Loaded DiCE (arXiv:1909.10549): a random Markov decision process with 5 states and 4 actions, a softmax
policy with random logits, and paths of 50 steps. The reward of a state is 10 (5 + normal), the discount factor is 0.95,
and transitions lead to random states with random probabilities. Values are exact. The derivatives of orders 2 and 3 are
derivatives of the first component of the preceding order.

Paths end after 50 steps, and the value of the last state replaces further rewards. The estimates are derivatives of
the library's losses: DiCE with rewards, Loaded DiCE with advantages, and the likelihood ratio of ProMP, which ignores
the effect of earlier actions on a state.
"""
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from meta_policy_search.ops import losses
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.utils import discount_cumsum, draw_index

STATES, ACTIONS, STEPS, DISCOUNT = 5, 4, 50, 0.95
PATHS = 4096
ORDERS = (1, 2, 3)


class Process(NamedTuple):
    """A random Markov decision process with a random policy."""

    transitions: np.ndarray  # [STATES, ACTIONS, STATES]
    rewards: np.ndarray  # [STATES]
    logits: np.ndarray  # [STATES, ACTIONS], logits of the policy


def draw_process(rng: np.random.Generator) -> Process:
    """Samples a process and a policy."""
    weights = rng.uniform(size=(STATES, ACTIONS, STATES))
    possible = rng.uniform(size=weights.shape) < rng.uniform(size=(STATES, ACTIONS, 1))
    possible[np.arange(STATES)[:, None], np.arange(ACTIONS), rng.integers(STATES, size=(STATES, ACTIONS))] = True
    weights *= possible
    return Process(weights / weights.sum(axis=-1, keepdims=True), 10.0 * (5.0 + rng.normal(size=STATES)),
                   rng.normal(size=(STATES, ACTIONS)))


class Paths(NamedTuple):
    """Paths of a process: states (including the last state) and actions."""

    states: np.ndarray  # int [PATHS, STEPS + 1]
    actions: np.ndarray  # int [PATHS, STEPS]


def sample_paths(process: Process, rng: np.random.Generator) -> Paths:
    """Samples paths with uniformly distributed first states."""
    probabilities = np.exp(process.logits)
    states, actions = np.empty((PATHS, STEPS + 1), int), np.empty((PATHS, STEPS), int)
    states[:, 0] = rng.integers(STATES, size=PATHS)
    for t in range(STEPS):
        actions[:, t] = draw_index(probabilities[states[:, t]], rng.uniform(size=PATHS))
        states[:, t + 1] = draw_index(process.transitions[states[:, t], actions[:, t]], rng.uniform(size=PATHS))
    return Paths(states, actions)


def advantages_of(rewards: np.ndarray, values: np.ndarray, gae_lambda: float) -> np.ndarray:
    """Computes generalized advantage estimates, discounted from the start of the path.

    Args:
        rewards: `[paths, STEPS]`.
        values: values of all states including the last state, `[paths, STEPS + 1]`.
        gae_lambda: 1 sums all later rewards; 0 uses the next reward and the value of the next state.

    Returns:
        `[paths, STEPS]`.
    """
    errors = rewards + DISCOUNT * values[:, 1:] - values[:, :-1]
    return discount_cumsum(errors.T, DISCOUNT * gae_lambda).T * DISCOUNT ** np.arange(STEPS)


def true_value(process: Process, logits: tf.Tensor) -> tf.Tensor:
    """Builds the values of all states, `[STATES]`."""
    transitions = tf.einsum("sa,sat->st", tf.nn.softmax(logits), process.transitions)
    return tf.linalg.solve(np.eye(STATES) - DISCOUNT * transitions, process.rewards[:, None])[:, 0]


def estimates(process: Process, paths: Paths, values: np.ndarray, logits: tf.Tensor) -> dict[str, tf.Tensor]:
    """Builds the value estimate of each method, averaged over first states; only its derivatives are meaningful."""
    starts = tf.constant(np.repeat(np.arange(0, paths.actions.size, STEPS), STEPS)[None])
    flat = paths.states[:, :-1].ravel() * ACTIONS + paths.actions.ravel()
    log_prob = tf.gather(tf.reshape(tf.nn.log_softmax(logits), [-1]), flat)[None]
    weights = tf.fill(starts.shape, np.float64(1.0 / len(paths.actions)))  # sums over steps, means over paths
    rewards, values = process.rewards[paths.states[:, :-1]], values[paths.states]
    discounted = rewards * DISCOUNT ** np.arange(STEPS)
    discounted[:, -1] += DISCOUNT ** STEPS * values[:, -1]
    all_after, one_after = (tf.constant(advantages_of(rewards, values, gae_lambda).reshape(1, -1))
                            for gae_lambda in (1.0, 0.0))
    built = {
        "dice": losses.dice_loss(log_prob, tf.constant(discounted.reshape(1, -1)), weights, starts),
        "low_variance": losses.likelihood_ratio_loss(log_prob, log_prob, all_after, weights),
        "loaded": losses.loaded_dice_loss(log_prob, all_after, weights, starts),
        "loaded_lambda_0": losses.loaded_dice_loss(log_prob, one_after, weights, starts),
    }
    return {name: -output[0] for name, output in built.items()}


def derivatives_of(value: tf.Tensor, logits: tf.Tensor) -> list[tf.Tensor]:
    """Builds the derivatives with respect to the logits; each order differentiates the first component of the last."""
    built: list[Any] = []
    for _ in ORDERS:
        built += tf.gradients(value, logits)
        value = built[-1][0, 0]
    return built


def measure(seed: int, methods: Sequence[str]) -> Iterator[tuple[str, dict[int, float]]]:
    """Yields `(method, values)`; `values` maps an order to the correlation of estimated and exact derivatives.

    Args:
        seed: seed of process, policy and paths.
        methods: names of the methods.
    """
    rng = np.random.default_rng(seed)
    process = draw_process(rng)
    paths = sample_paths(process, rng)
    with tf.Graph().as_default(), tf.Session() as sess:
        logits = tf.constant(process.logits)
        values = true_value(process, logits)
        truth = sess.run(derivatives_of(tf.reduce_mean(values), logits))
        built = estimates(process, paths, sess.run(values), logits)
        estimated = sess.run({name: derivatives_of(built[name], logits) for name in methods})
    for name, by_order in estimated.items():
        yield name, {order: float(np.corrcoef(np.ravel(found), np.ravel(true))[0, 1])
                     for order, found, true in zip(ORDERS, by_order, truth, strict=True)}
