"""The measurement of bias and variance of meta-gradients on bandits."""
import itertools
from pathlib import Path

import numpy as np
import pytest

from experiments.results import estimator_laws
from experiments.results.draw import read_groups
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.statistics import mean_interval


def test_the_score_term_makes_the_meta_gradient_unbiased(monkeypatch):
    """Given all data sets of one path of two pulls, then expectations are exact sums."""
    monkeypatch.setattr(estimator_laws, "PULLS", 2)
    mean_rewards, logits = np.array([0.8, 0.3]), np.array([0.2, -0.3])
    policy = np.exp(logits) / np.exp(logits).sum()
    arms = np.array(list(itertools.product((0, 1), repeat=4)))
    arms, rewards = arms[:, :2], arms[:, 2:]
    of_rewards = np.prod(np.where(rewards, mean_rewards[arms], 1.0 - mean_rewards[arms]), axis=1)
    with tf.Graph().as_default(), tf.Session() as sess:
        theta = tf.placeholder(tf.float64, [None, 2])
        centered = tf.constant(rewards - policy @ mean_rewards)
        built = estimator_laws.build(theta, tf.constant(arms), centered, mean_rewards)

        def run(shift):
            moved = logits + [shift, 0.0]
            found = sess.run(built, {theta: np.tile(moved, (len(arms), 1))})
            return found, of_rewards * np.prod((np.exp(moved) / np.exp(moved).sum())[arms], axis=1)

        found, probability = run(0.0)
        up, down = (probability @ found["value"] for found, probability in (run(1e-5), run(-1e-5)))
    assert probability.sum() == pytest.approx(1.0)
    assert probability @ found["e_maml"] == pytest.approx((up - down) / 2e-5, rel=1e-6)
    for name in ("log_likelihood", "likelihood_ratio", "dice"):
        assert probability @ found[name] != pytest.approx((up - down) / 2e-5, rel=1e-3)


def test_the_reference_for_the_bias_subtracts_the_return_of_the_other_data_sets():
    rng = np.random.default_rng(0)
    log_likelihood, value, score = rng.normal(size=(3, 5))
    expected = [log_likelihood[m] + (value[m] - np.delete(value, m).mean()) * score[m] for m in range(5)]
    np.testing.assert_allclose(estimator_laws.unbiased(log_likelihood, value, score), expected)


def test_the_slope_is_that_of_a_power_of_the_number_of_paths():
    rows = [{"seed": str(seed), "paths": str(n), "variance": str(seed * n ** -1.5)} for seed in (1, 2) for n in (8, 64)]
    np.testing.assert_allclose(estimator_laws.slopes(rows), [-1.5, -1.5])


@pytest.mark.thorough
def test_the_command_writes_data_and_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(estimator_laws, "SEEDS", (1, 2))
    measure = estimator_laws.measure
    monkeypatch.setattr(estimator_laws, "measure", lambda seed: measure(seed, paths=(8, 256), replicates=20))
    monkeypatch.setattr(estimator_laws, "PATHS", (8, 256))
    estimator_laws.main(str(tmp_path))
    lines = (tmp_path / "estimator_laws.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == ",".join(estimator_laws.COLUMNS) and len(lines) == 1 + 2 * 2 * len(estimator_laws.ESTIMATORS)
    assert "TayPO-2" in (tmp_path / "estimator_laws.svg").read_text(encoding="utf-8")
    assert "DiCE: slope of the variance -" in capsys.readouterr().out


def test_the_page_states_the_slopes_of_the_data():
    folder = Path(estimator_laws.HERE)
    page = (folder.parent.parent / "docs" / "algorithms" / "estimators.rst").read_text(encoding="utf-8")
    for (name,), rows in read_groups(str(folder / "estimator_laws.csv"), "estimator").items():
        slope, width = mean_interval(estimator_laws.slopes(rows))
        assert f"   * - {estimator_laws.ESTIMATORS[name]}\n     - {slope:+.2f} ± {width:.2f}\n" in page
