"""Tests figures of trajectories and labels of tasks."""
import numpy as np
import pytest

from meta_policy_search.envs import make_env
from meta_policy_search.envs.scenery import Scenery
from meta_policy_search.plotting import describe_task, plot_trajectories


def test_trajectories_show_paths_goal_and_walls(tmp_path):
    paths = [[np.array([[0, 0], [1, step]], float), np.array([[0, 0], [-1, step]], float)] for step in range(3)]
    wall = np.array([[2.0, 0.0], [2.0, 1.0]])
    with_goal = (Scenery(2.0, goal=np.array([1.5, -0.5]), walls=[wall]), paths, [-3.0, -2.0, -1.0])
    towards = (Scenery(direction=np.array([0.0, 1.0])), [path[:1] for path in paths], [1.0, 2.0, 3.0])
    figure = plot_trajectories([with_goal, towards], tmp_path / "a.png", "A title", ["here", "there"])
    panels = np.array(figure.axes).reshape(3, 2)
    for step in range(3):
        lines = [line.get_xydata().tolist() for line in panels[step, 0].lines]
        for path in paths[step]:
            assert path.tolist() in lines and [path[0].tolist()] in lines and [path[-1].tolist()] in lines
        assert wall.tolist() in lines and [[1.5, -0.5]] in lines
        assert panels[step, 0].get_xlim() == pytest.approx((-2.3, 2.3))
        (arrow,) = panels[step, 1].texts
        assert arrow.xy[0] == 0.0 and arrow.xy[1] > 0.0
        assert paths[step][0].tolist() in [line.get_xydata().tolist() for line in panels[step, 1].lines]
        assert panels[step, 1].get_xlim() == pytest.approx((-2.3, 2.3))  # equal for all steps
    assert [axes.get_title().partition("\n")[0] for axes in panels[0]] == ["here", "there"]
    assert [axes.get_ylabel() for axes in panels[:, 0]] == [
        "before adaptation", "after 1 adaptation step", "after 2 adaptation steps"]
    assert [axes.get_title() for axes in panels[:, 0]] == ["here\nreturn -3.00", "return -2.00", "return -1.00"]


@pytest.mark.parametrize("task, text", [
    (1.0, "1.00"), (-0.001, "0.00"), (np.array([0.123, -2.0]), "(0.12, -2.00)"), (3, "3"), (np.float32(0.5), "0.50"),
    ({"goal": np.array([1.0, 2.0]), "n": [1, 2]}, "goal (1.00, 2.00), n (1, 2)"), ("reach", "reach"),
    (("reach", (0.25, 1.0)), "(reach, (0.25, 1.00))"),
    (np.zeros(20), "(0.00, 0.00, 0.00, 0.00, 0.00, 0.00, ..."),
])
def test_task_labels(task, text):
    assert describe_task(task) == text


def test_directions_have_names_and_panels_have_equal_axes(tmp_path):
    """Directions are labeled by name, and all panels of two environments have equal width."""
    env = make_env("HalfCheetahRandDirecEnv")
    assert [describe_task(task, env=env) for task in (1.0, -1.0)] == ["forward", "backward"]
    assert describe_task(1.5, env=make_env("HalfCheetahRandVelEnv")) == "1.50"
    worlds = [(Scenery(half_width), [[np.zeros((2, 2))]], [0.0]) for half_width in (1.0, 3.0)]
    left, right = plot_trajectories(worlds, tmp_path / "a.svg", "A title").axes
    assert left.get_xlim() == right.get_xlim() and left.get_xlim()[1] > 3.0
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
