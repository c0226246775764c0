"""Reference policies on Bernoulli bandits and tabular MDPs (RL^2, arXiv:1611.02779), vectorized over tasks.

The Bayesian policies use the task distributions of `MetaBernoulliBanditEnv` and `MetaTabularMDPEnv` as their priors.
Each function `measure(method, seed, num_tasks)` returns the values of a method by column.
"""
import functools
from collections.abc import Callable

import numpy as np

from experiments.reproduction.entries import read_tests
from meta_policy_search.envs import MetaBernoulliBanditEnv, MetaTabularMDPEnv
from meta_policy_search.utils.checks import check_choice

UCB_WIDTH = 0.2  # coefficient of the confidence width; with this value, UCB1 is close to the published returns
BANDITS = {"n10_k5": (10, 5), "n10_k10": (10, 10), "n10_k50": (10, 50), "n100_k5": (100, 5)}  # pulls, arms
TRIALS = 50  # of a reference policy in each bandit, when it is compared with RL2
EPISODES, HORIZON = (10, 25, 100), 10  # episodes of a trial in an MDP, steps of an episode
_NUM_CHARGES = 201  # resolution of Gittins indices: 0.005

Scores = Callable[[np.ndarray, np.ndarray, int, np.random.Generator], np.ndarray]
"""A policy: `scores(successes, failures, left, rng)` with counts `[M, k]` returns scores of the arms `[M, k]`."""


def random(successes: np.ndarray, failures: np.ndarray, left: int, rng: np.random.Generator) -> np.ndarray:
    """Scores arms at random."""
    return rng.random(successes.shape)


def thompson(successes: np.ndarray, failures: np.ndarray, left: int, rng: np.random.Generator) -> np.ndarray:
    """Scores each arm by a sample from its posterior (Thompson, 1933)."""
    return rng.beta(1 + successes, 1 + failures)


def ucb1(successes: np.ndarray, failures: np.ndarray, left: int, rng: np.random.Generator) -> np.ndarray:
    """Scores each arm by the sum of its posterior mean and a confidence width (UCB1; Auer et al., 2002).

    The uniform prior counts as two pulls of each arm. The score is therefore also defined for arms without pulls.
    """
    count = 2 + successes + failures
    before = count.sum(axis=1, keepdims=True)
    return (1 + successes) / count + UCB_WIDTH * np.sqrt(2 * np.log(before) / count)


@functools.cache
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
    return lambda successes, failures, left, rng: indices[left, successes, failures]


@functools.cache
def bayes_optimum(left: int, new_arms: int, pulled: tuple[tuple[int, int], ...] = ()) -> float:
    """Returns the expected reward of the optimal policy in the remaining pulls.

    Args:
        left: number of remaining pulls.
        new_arms: number of arms without pulls.
        pulled: sorted `(successes, failures)` of the other arms.
    """
    if left == 0:
        return 0.0
    values = []
    for arm in {*pulled, *([(0, 0)] if new_arms else [])}:
        others = list(pulled)
        if arm in others:
            others.remove(arm)
        unused, (wins, losses) = new_arms - (arm == (0, 0)), arm
        won, lost = (bayes_optimum(left - 1, unused, tuple(sorted([*others, after])))
                     for after in ((wins + 1, losses), (wins, losses + 1)))
        mean = (1 + wins) / (2 + wins + losses)
        values.append(mean * (1.0 + won) + (1.0 - mean) * lost)
    return max(values)


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
        of_arms = scores(successes, failures, num_pulls - pull, rng)
        is_best = of_arms == of_arms.max(axis=1, keepdims=True)
        arms = np.argmax(is_best * rng.random(of_arms.shape), axis=1)
        pays = rng.random(len(rows)) < probabilities[rows, arms]
        successes[rows, arms] += pays
        failures[rows, arms] += ~pays
    return successes.sum(axis=1).astype(float)


def of_bandits(method: str, seed: int, num_tasks: int) -> dict[str, float]:
    """Measures a policy on bandits; columns: see `BANDITS`. The optimum is exact and does not depend on the seed."""
    if method == "optimum":
        return {column: bayes_optimum(*BANDITS[column]) for column in BANDITS if BANDITS[column][0] == 10}
    found = {}
    for column, (pulls, arms) in BANDITS.items():
        rng = np.random.default_rng((seed, pulls, arms))
        probabilities = np.array(MetaBernoulliBanditEnv(arms).sample_tasks(num_tasks, rng))
        found[column] = float(bandit_returns(_policy(method, pulls), probabilities, pulls, rng).mean())
    return found


def rl2_minus(method: str, seed: int, num_tasks: int) -> dict[str, np.ndarray]:
    """Subtracts the return of a policy from that of RL2 of a training seed, by test bandit; columns: see `BANDITS`."""
    import meta_policy_search as mps

    found = {}
    for column in ("n10_k5", "n100_k5"):
        evaluator = mps.load_pretrained(f"rl2_bandits/{column}")
        evaluator.rollouts_per_meta_task = 1
        probabilities = np.repeat(evaluator.evaluate(num_tasks).tasks[0], TRIALS, axis=0)
        pulls = BANDITS[column][0]
        returns = bandit_returns(_policy(method, pulls), probabilities, pulls, np.random.default_rng((seed, pulls)))
        trained = read_tests("rl2_bandits")[column]
        rl2 = trained[check_choice("--seeds", seed, trained)]["after_0"]
        found[column] = rl2[:num_tasks] - returns.reshape(num_tasks, TRIALS).mean(axis=1)
    return found


def _policy(method: str, pulls: int) -> Scores:
    return gittins(pulls) if method == "gittins" else {"random": random, "thompson": thompson, "ucb1": ucb1}[method]


def of_mdps(method: str, seed: int, num_tasks: int) -> dict[str, float]:
    """Measures a policy on tabular MDPs; columns: number of episodes of a trial.

    `"optimum"` is the expected return of policies that are optimal for the true MDPs. PSRL (posterior sampling; Osband
    et al., 2013) samples an MDP from its posterior before each episode and acts optimally for the sample.
    `"psrl_mean_0"` assumes that rewards have the prior mean 0, although the true mean is 1.
    """
    rng = np.random.default_rng(seed)
    tasks = MetaTabularMDPEnv().sample_tasks(num_tasks, rng)
    transitions, means = (np.stack([task[key] for task in tasks]) for key in ("transitions", "reward_means"))
    if method == "optimum":
        best = float(plan(transitions, means)[0].mean())
        return {str(episodes): episodes * best for episodes in EPISODES}
    rows, returns = np.arange(num_tasks), []
    prior_mean = 0.0 if method == "psrl_mean_0" else 1.0
    counts, sums = np.ones_like(transitions), np.full_like(means, prior_mean)  # the priors count as one observation
    for _ in range(max(EPISODES)):
        if method == "random":
            policy = rng.integers(means.shape[-1], size=(HORIZON, *means.shape[:-1]))
        else:
            visits = counts.sum(axis=-1) - counts.shape[-1] + 1.0
            gamma = rng.standard_gamma(counts)
            policy = plan(gamma / gamma.sum(axis=-1, keepdims=True), rng.normal(sums / visits, visits ** -0.5))[1]
        states, total = np.zeros(num_tasks, int), np.zeros(num_tasks)
        for actions in policy:
            chosen = (rows, states, actions[rows, states])
            rewards = rng.normal(means[chosen], 1.0)
            states = (transitions[chosen].cumsum(axis=-1) < rng.random((num_tasks, 1))).sum(axis=-1)
            sums[chosen] += rewards
            counts[(*chosen, states)] += 1.0
            total += rewards
        returns.append(total.mean())
    return {str(episodes): float(np.sum(returns[:episodes])) for episodes in EPISODES}


def plan(transitions: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Computes optimal policies of `M` MDPs by dynamic programming.

    Args:
        transitions: probabilities of the next state, `[M, S, A, S]`.
        means: mean rewards, `[M, S, A]`.

    Returns:
        The expected return of an episode `[M]`, which starts in state 0, and the actions `[HORIZON, M, S]`.
    """
    values, policy = np.zeros(means.shape[:2]), []
    for _ in range(HORIZON):
        of_actions = means + np.einsum("msat,mt->msa", transitions, values)
        policy.append(of_actions.argmax(axis=-1))
        values = of_actions.max(axis=-1)
    return values[:, 0], np.array(policy[::-1])
