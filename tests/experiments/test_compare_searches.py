"""Tests the comparison of search algorithms with random search: the cart-pole, and equal numbers of steps."""
import csv

import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from experiments.results import compare_searches
from meta_policy_search.utils import logger


@pytest.mark.parametrize("force, action", [(1.0, 1), (-1.0, 0)])
def test_cart_pole_moves_like_the_gymnasium_environment(force, action):
    """Twenty steps of full force from the same states lead to the same states and end at the same step."""
    ours, theirs = compare_searches.CartPole().make_batched(4), CartPoleEnv()
    states = ours.reset(np.arange(4), [np.random.default_rng(i) for i in range(4)])
    high = np.array([1.2, 1.0, np.radians(6.0), 1.0])
    assert (np.abs(states) <= high).all() and (np.abs(states) > 0.5 * high).any(axis=0).all()
    for env_id, state in enumerate(states):
        theirs.reset()
        theirs.state = state.copy()
        for _ in range(20):
            expected, reward, terminated, _, _ = theirs.step(action)
            answer = ours.step(np.array([[force]]), np.array([env_id]))
            np.testing.assert_allclose(answer.observations[0], expected, rtol=1e-5, atol=1e-6)
            assert (answer.rewards[0], answer.terminated[0]) == (reward, terminated)
            if terminated:
                break
        assert terminated


def test_random_search_takes_at_least_as_many_steps_as_the_others(tmp_path, monkeypatch, capsys):
    """With small settings, the file has one row per algorithm, and random search took the most steps."""
    setting = compare_searches.Setting(compare_searches.CartPole, 20, 2)
    monkeypatch.setattr(compare_searches, "SETTINGS", {"tiny": setting})
    monkeypatch.setattr(compare_searches, "SEEDS", (3,))
    monkeypatch.setattr(compare_searches, "FINAL_PATHS", 3)
    path = tmp_path / "out.csv"
    compare_searches.main(str(path))
    logger.set_level(logger.INFO)
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["setting"], row["seed"], row["algorithm"]) for row in rows] == [
        ("tiny", "3", name) for name in ("CEM", "CMA-ES", "random")]
    cem, cma_es, random = (int(row["timesteps"]) for row in rows)
    assert max(cem, cma_es) <= random < max(cem, cma_es) + 40 * 2 * 20
    assert all(5.0 < float(row["return"]) <= 20.0 for row in rows)
    assert len(capsys.readouterr().out.splitlines()) == 3
