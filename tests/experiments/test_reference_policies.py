"""Reference policies for bandits and tabular MDPs against the numbers of arXiv:1611.02779, Tables 1 and 2."""
import numpy as np
import pytest

from experiments.results import reference_policies
from meta_policy_search.envs import MetaBernoulliBanditEnv, MetaTabularMDPEnv

# by pulls and arms
BANDITS = {
    (10, 5): {"random": 5.0, "gittins": 6.6, "thompson": 5.7, "ucb1": 6.7},
    (10, 50): {"random": 5.1, "gittins": 6.5, "thompson": 5.2, "ucb1": 6.6},
    (100, 5): {"random": 49.9, "gittins": 78.3, "thompson": 74.7, "ucb1": 78.0},
    (100, 10): {"random": 49.9, "gittins": 82.8, "thompson": 76.7, "ucb1": 82.4},
}
MDPS = {10: {"random": 100.1, "psrl": 138.1}, 25: {"random": 250.2, "psrl": 408.8}, 100: {"psrl": 1939.5}}


def bandit_return(name, num_pulls, num_arms, num_tasks):
    rng = np.random.default_rng((num_pulls, num_arms))
    probabilities = np.array(MetaBernoulliBanditEnv(num_arms).sample_tasks(num_tasks, rng))
    scores = getattr(reference_policies, name)
    scores = scores(num_pulls) if name == "gittins" else scores
    return reference_policies.bandit_returns(scores, probabilities, num_pulls, rng).mean()


def mdp_return(name, num_episodes, num_tasks):
    rng = np.random.default_rng(num_episodes)
    return reference_policies.mdp_returns(name, MetaTabularMDPEnv().sample_tasks(num_tasks, rng), num_episodes,
                                          rng).mean()


@pytest.mark.parametrize("name, published", BANDITS[10, 5].items())
def test_bandits_with_10_pulls(name, published):
    assert bandit_return(name, 10, 5, 1000) == pytest.approx(published, abs=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("setting", BANDITS, ids=str)
def test_bandits(setting):
    for name, published in BANDITS[setting].items():  # published by 1,000 trials, to 0.1
        assert bandit_return(name, *setting, 4000) == pytest.approx(published, rel=0.015, abs=0.3), name


@pytest.mark.parametrize("name, published", MDPS[10].items())
def test_mdps_with_10_episodes(name, published):
    assert mdp_return(name, 10, 300) == pytest.approx(published, rel=0.07)


@pytest.mark.slow
@pytest.mark.parametrize("num_episodes", MDPS)
def test_mdps(num_episodes):
    for name, published in MDPS[num_episodes].items():
        assert mdp_return(name, num_episodes, 2000) == pytest.approx(published, rel=0.04), name


def test_a_gittins_index_by_hand():
    """Given one pull, then the index is the mean. Given two, it is the charge c with p - c + p (p' - c) = 0."""
    scores = reference_policies.gittins(2)
    one, two = (np.zeros((1, 1), int), np.zeros((1, 1), int)), (np.ones((1, 1), int), np.zeros((1, 1), int))
    index = {(name, left): scores(reference_policies.Pulls(*counts, left), None).item()
             for name, counts in (("new", one), ("paid", two)) for left in (1, 2)}
    assert index["new", 1] == pytest.approx(1 / 2, abs=0.006)
    assert index["paid", 1] == pytest.approx(2 / 3, abs=0.006)
    assert index["new", 2] == pytest.approx((1 / 2 + 1 / 2 * 2 / 3) / (1 + 1 / 2), abs=0.006)
