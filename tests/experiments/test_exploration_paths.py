"""Tests the picture of paths before adaptation."""
import numpy as np
import pytest

from experiments.results import exploration_paths, reproduced


@pytest.mark.thorough
def test_paths_are_those_of_the_trained_policies():
    """As the page on papers states, paths of the log-likelihood stay near the start, those of the ratio do not."""
    methods = {method.name: (method, seed) for method, seed in reproduced.trained("exploration_momentum")}
    farthest = {}
    for name in ("log_likelihood", "likelihood_ratio"):
        positions = exploration_paths.positions("exploration_momentum", *methods[name])
        assert positions.shape == (4 * exploration_paths.PATHS, 100, 2)
        farthest[name] = np.linalg.norm(positions, axis=-1).max(axis=1).mean()
    assert farthest["log_likelihood"] < 1.5 < farthest["likelihood_ratio"]
