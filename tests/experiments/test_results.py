"""The numbers on the page "Results" equal its data."""
import csv
import re
from pathlib import Path

import numpy as np
import pytest

from experiments.results import draw
from meta_policy_search.utils.statistics import half_width_of_mean, mean_interval

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "results.rst").read_text(encoding="utf-8")
ROWS = [re.split(r"\n     - ?", row.strip()) for row in re.split(r"\n   \* - ", PAGE)]
LAST = 20  # iterations over which gains are averaged


def assert_printed(text, expected):
    """Compares numbers on the page with expected numbers, to the printed digits."""
    said = re.findall(r"-?\d+(?:\.\d+)?", text)
    assert len(said) == len(expected), text
    for number, value in zip(said, expected, strict=True):
        assert abs(float(number) - value) <= 0.501 * 10.0 ** -len(number.partition(".")[2]), (number, value)


def rows_about(name):
    found = [row for row in ROWS if len(row) == 5 and row[4].startswith(f"``{name}``")]
    assert found, name
    return found


@pytest.mark.parametrize("name", [name for name in draw.RUNS if "pole" not in name and "pendulum" not in name])
def test_gains(name):
    runs = list(draw.read_runs(name).values())
    for what, _, gains, over_seeds, _ in rows_about(name):
        count = re.search(r"(\d+) iterations", what)
        rows = slice(None, int(count[1]) if count else None)
        means = [run["AdaptationGain"][rows][-LAST:].mean() for run in runs]
        widths = [half_width_of_mean(run["AdaptationGainCI95"][rows][-LAST:]) for run in runs]
        assert_printed(gains, np.stack((means, widths), axis=1).ravel())
        if len(runs) > 1:
            assert_printed(over_seeds, mean_interval(np.array(means)))


@pytest.mark.parametrize("name, what", [
    ("pro_mp_half_cheetah_rand_direc_horizon_200_evaluation", ["half cheetah forward or backward, ProMP, seed 1"]),
    ("trpo_maml_navigation_evaluation", ["2D navigation, TRPO-MAML, seed 1", "seed 2", "seed 3"])])
def test_evaluations(name, what):
    with open(ROOT / "experiments" / "results" / f"{name}.csv", encoding="utf-8", newline="") as file:
        data = list(csv.DictReader(file))
    policies = list(dict.fromkeys(row["policy"] for row in data))
    for label, policy in zip(what, policies):
        cells = next(row for row in ROWS if row[0] == label)[1:5]
        for cell, row in zip(cells, [row for row in data if row["policy"] == policy], strict=True):
            assert_printed(cell, [float(row["return"]), float(row["return_ci95"])])
    published = next(row for row in ROWS if row[0] == what[0].split(",")[0] + ", MAML, published")
    assert_printed(" ".join(published[1:5]), draw.EVALUATIONS[name]["published"])


def test_every_figure_is_reproducible(tmp_path, monkeypatch):
    """Plotting the data of an experiment gives its stored figure, except for the matplotlib version."""
    kept = (ROOT / "experiments" / "results" / "ddpg_pendulum.svg").read_text(encoding="utf-8")
    monkeypatch.setattr(draw, "_path", lambda name: str(tmp_path / f"{name}.svg"))
    draw.main(["ddpg_pendulum", "trpo_maml_navigation_evaluation"])
    drawn = (tmp_path / "ddpg_pendulum.svg").read_text(encoding="utf-8")
    assert drawn.count("<path") == kept.count("<path") and (tmp_path / "trpo_maml_navigation_evaluation.svg").exists()
