"""Tests the leaderboards: order, equal environment steps, probability of improvement and the performance profiles."""
from pathlib import Path

import numpy as np
import pytest

from experiments.results import leaderboard, reproduced
from experiments.results.entries import ENTRIES
from experiments.results.leaderboard import Line, probability_of_improvement


def test_probability_of_improvement_compares_the_same_tasks():
    scores = np.array([[1.0, 10.0], [3.0, 30.0]])
    assert probability_of_improvement(scores, scores).mean == 0.5
    assert probability_of_improvement(scores + 5.0, scores).mean == 0.75 + 0.25 * 0.5
    assert probability_of_improvement(scores + 100.0, scores) == (1.0, 1.0, 1.0)
    assert probability_of_improvement(scores[:1], scores).mean == 0.25
    low_to_high = probability_of_improvement(scores[:1], scores)
    assert low_to_high.low == 0.0
    assert low_to_high.high == 0.5


def test_best_method_comes_first_and_the_reference_is_not_compared_with_itself():
    scores = np.arange(8.0).reshape(2, 4)
    lines = [Line("pro_mp", "ProMP", "a", scores, 1e6), Line("x", "X", "b", scores[:1] + 9.0, 2.5e6)]
    header, _, first, second = leaderboard.table(lines)
    assert header.count("|") == first.count("|") == second.count("|")
    assert first.startswith("| X | `b` | 1 | 2.5 | 10.50 [")
    assert first.endswith("| 1.00 [1.00, 1.00] |")
    assert second.startswith("| ProMP | `a` | 2 | 1.0 | 3.50 [")
    assert second.endswith("|  |")


def test_reference_without_data_leaves_the_column_empty():
    *_, last = leaderboard.table([Line("x", "X", "b", np.zeros((1, 3)), 1e6)])
    assert last == "| X | `b` | 1 | 1.0 | 0.00 [0.00, 0.00] |  |"


def test_profile_is_the_fraction_of_returns_above_a_threshold(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(leaderboard.style, "label_y", lambda panel, label: figures.append(panel))
    leaderboard.draw({"board": [Line("x", "X", "b", np.array([[3.0, 1.0], [2.0, 2.0]]), 1e6)]}, str(tmp_path / "a.svg"))
    x, above = figures[0].lines[0].get_data()
    assert (tmp_path / "a.svg").stat().st_size > 0
    for threshold, expected in ((1.0, 0.75), (1.5, 0.75), (2.0, 0.25), (2.5, 0.25), (3.0, 0.0)):
        assert above[min(np.searchsorted(x, threshold, side="right"), len(x) - 1)] == expected


def test_a_method_has_the_same_color_in_all_panels(tmp_path, monkeypatch):
    panels = []
    monkeypatch.setattr(leaderboard.style, "label_y", lambda panel, label: panels.append(panel))
    x, y = (Line(name, name, "a", np.zeros((1, 2)), 1e6) for name in "xy")
    leaderboard.draw({"first": [x, y], "second": [y]}, str(tmp_path / "a.svg"))
    colors = [[line.get_color() for line in panel.lines] for panel in panels]
    assert colors[1] == colors[0][1:] and colors[0][0] != colors[0][1]


def test_methods_of_a_leaderboard_exist_and_have_equal_environment_steps():
    for sources in leaderboard.BOARDS.values():
        for name, methods in sources.items():
            assert set(methods) <= {method.name for method in ENTRIES[name].methods}
    for lines in reproduced.read_boards().values():
        trained = {line.method: line.timesteps for line in lines if line.method != "random"}
        others = [steps for method, steps in trained.items() if method != "rl2"]
        assert max(others) == pytest.approx(min(others), rel=0.05)
        assert trained.get("rl2", 0.0) <= max(others)  # its episodes end earlier, at the goal
        assert len({line.scores.shape[1] for line in lines}) == 1


def test_page_contains_the_leaderboards_of_the_data():
    page = Path(reproduced.PAGE).read_text(encoding="utf-8")
    for heading, lines in reproduced.read_boards().items():
        assert f"### {heading}\n\n" + "\n".join(leaderboard.table(lines)) in page
