"""Reference policies for RL^2 (arXiv:1611.02779, Tables 1 and 2), vectorized over tasks.

The Bayesian policies use the task distributions of `MetaBernoulliBanditEnv` and `MetaTabularMDPEnv` as their priors.
"""
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from meta_policy_search.utils.utils import draw_index

HORIZON = 10  # steps per episode of an MDP, same as in the paper
UCB_WIDTH = 0.2  # coefficient of the confidence width; with this value, UCB1 is close to the published returns
_NUM_CHARGES = 201  # resolution of Gittins indices: 0.005


class Pulls(NamedTuple):
    """What a policy observes of `M` bandits with `k` arms."""

    successes: np.ndarray  # int [M, k]
    failures: np.ndarray  # int [M, k]
    left: int  # number of remaining pulls


Scores = Callable[[Pulls, np.random.Generator], np.ndarray]
"""A policy: function that returns scores of the arms `[M, k]`. The arm with the highest score is pulled."""


def random(pulls: Pulls, rng: np.random.Generator) -> np.ndarray:
    """Scores arms at random."""
    return rng.random(pulls.successes.shape)


def thompson(pulls: Pulls, rng: np.random.Generator) -> np.ndarray:
    """Scores each arm by a sample from its posterior (Thompson, 1933)."""
    return rng.beta(1 + pulls.successes, 1 + pulls.failures)


def ucb1(pulls: Pulls, rng: np.random.Generator) -> np.ndarray:
    """Scores each arm by the sum of its posterior mean and a confidence width (UCB1; Auer et al., 2002).

    The uniform prior counts as two pulls of each arm. The score is therefore also defined for arms without pulls, and
    the policy does not need to pull every arm once before it compares scores.
    """
    count = 2 + pulls.successes + pulls.failures
    before = count.sum(axis=1, keepdims=True)
    return (1 + pulls.successes) / count + UCB_WIDTH * np.sqrt(2 * np.log(before) / count)


def gittins(num_pulls: int) -> Scores:
    """Returns a policy that scores each arm by its Gittins index for the remaining pulls (Gittins, 1979).

    Suppose that each pull of an arm costs a fixed charge, and that the player may stop at any time. The index is the
    largest charge at which it is still worthwhile to pull the arm at least once. With a finite number of pulls, the
    policy only approximates the optimal policy.
    """
    charges = np.linspace(0.0, 1.0, _NUM_CHARGES)
    size = num_pulls + 1
    successes, failures = np.indices((size, size))
    mean = ((1 + successes) / (2 + successes + failures))[..., None]
    worth = np.zeros((size + 1, size + 1, _NUM_CHARGES))  # value of further pulls, by successes, failures and charge
    indices = np.zeros((num_pulls + 1, size, size), np.float32)
    for left in range(1, num_pulls + 1):
        pulling = mean * (1 + worth[1:, :-1]) + (1 - mean) * worth[:-1, 1:] - charges
        indices[left] = charges[np.maximum((pulling > 0).sum(axis=-1) - 1, 0)]
        worth[:-1, :-1] = np.maximum(pulling, 0.0)
    return lambda pulls, rng: indices[pulls.left, pulls.successes, pulls.failures]


def bandit_returns(scores: Scores, probabilities: np.ndarray, num_pulls: int, rng: np.random.Generator) -> np.ndarray:
    """Returns the total reward in each bandit `[M]`; ties between arms are broken at random.

    Args:
        scores: the policy.
        probabilities: tasks of `MetaBernoulliBanditEnv`, `[M, k]`.
        num_pulls: number of pulls per bandit.
        rng: generator for policy and rewards.
    """
    successes, failures = np.zeros(probabilities.shape, int), np.zeros(probabilities.shape, int)
    rows = np.arange(len(probabilities))
    for pull in range(num_pulls):
        of_arms = scores(Pulls(successes, failures, num_pulls - pull), rng)
        is_best = of_arms == of_arms.max(axis=1, keepdims=True)
        arms = np.argmax(is_best * rng.random(of_arms.shape), axis=1)
        pays = rng.random(len(rows)) < probabilities[rows, arms]
        successes[rows, arms] += pays
        failures[rows, arms] += ~pays
    return successes.sum(axis=1).astype(float)


def mdp_returns(policy: str, tasks: list[dict[str, Any]], num_episodes: int, rng: np.random.Generator) -> np.ndarray:
    """Returns the total reward in each MDP `[M]`, over `num_episodes` episodes of 10 steps.

    Args:
        policy: `"random"` or `"psrl"`. PSRL is posterior sampling (Strens, 2000; Osband et al., 2013): before each
            episode, it samples an MDP from the posterior, and then acts optimally for this MDP.
        tasks: tasks of `MetaTabularMDPEnv`.
        num_episodes: number of episodes per MDP.
        rng: generator for policy, transitions and rewards.
    """
    transitions, means = (np.stack([task[key] for task in tasks]) for key in ("transitions", "reward_means"))
    num_tasks, num_states, num_actions = means.shape
    counts, sums, total = np.zeros(transitions.shape), np.zeros(means.shape), np.zeros(num_tasks)
    rows = np.arange(num_tasks)
    for _ in range(num_episodes):
        plan = rng.integers(num_actions, size=(HORIZON, num_tasks, num_states))
        if policy == "psrl":
            gammas = rng.standard_gamma(1.0 + counts)
            visits = 1.0 + counts.sum(axis=-1)  # the prior counts as one visit with a reward of 1
            plan = _optimal_plan(gammas / gammas.sum(axis=-1, keepdims=True),
                                 rng.normal((1.0 + sums) / visits, 1.0 / np.sqrt(visits)))
        states = np.zeros(num_tasks, int)
        for step in range(HORIZON):
            actions = plan[step, rows, states]
            rewards = means[rows, states, actions] + rng.standard_normal(num_tasks)
            after = draw_index(transitions[rows, states, actions], rng.random(num_tasks))
            counts[rows, states, actions, after] += 1
            sums[rows, states, actions] += rewards
            total += rewards
            states = after
    return total


def _optimal_plan(transitions: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Returns the optimal actions, int `[T, M, S]`, for transitions `[M, S, A, S]` and mean rewards `[M, S, A]`."""
    values, plan = np.zeros(means.shape[:2]), []
    for _ in range(HORIZON):
        of_actions = means + np.einsum("msan,mn->msa", transitions, values)
        plan.append(of_actions.argmax(axis=-1))
        values = of_actions.max(axis=-1)
    return np.stack(plan[::-1])


def measure(seed: int, methods: Sequence[str], num_tasks: int = 1000) -> Iterator[tuple[str, dict[int, float]]]:
    """Yields `(policy, values)`; `values` maps `n` to the mean total reward.

    `n` is 10 or 100: the number of pulls of a bandit with 5 arms, or the number of episodes of an MDP.

    Args:
        seed: seed of tasks and policies.
        methods: names of the policies to yield. All policies are measured, because they share a random generator.
        num_tasks: number of tasks.
    """
    from meta_policy_search.envs import MetaBernoulliBanditEnv, MetaTabularMDPEnv

    measured: dict[str, dict[int, float]] = {}
    for n in (10, 100):
        rng = np.random.default_rng((seed, n))
        probabilities = np.array(MetaBernoulliBanditEnv(5).sample_tasks(num_tasks, rng))
        policies = {"random": random, "gittins": gittins(n), "thompson": thompson, "ucb1": ucb1}
        for name, scores in policies.items():
            measured.setdefault(name, {})[n] = float(bandit_returns(scores, probabilities, n, rng).mean())
        tasks = MetaTabularMDPEnv().sample_tasks(num_tasks, rng)
        for name, policy in (("random_mdp", "random"), ("psrl", "psrl")):
            measured.setdefault(name, {})[n] = float(mdp_returns(policy, tasks, n, rng).mean())
    yield from ((name, measured[name]) for name in methods)
