"""Draws the pictures on the pages of environments, most of them moving, into `docs/images`.

    python docs/draw_environments.py

The half cheetah runs as the policy of the start page has adapted to (`draw_adaptation.py`); ant and swimmer move their
joints to and fro, the other robots at random; points are pushed towards their goals. Robots take OpenGL, EGL or OSMesa;
see `make_env(..., render_mode="rgb_array")`. The numbers behind the pictures are the same every time, their pixels may
differ between versions of OpenGL and matplotlib.
"""
import itertools
import sys
from pathlib import Path
from typing import Any, Dict, Iterator

import matplotlib
import numpy as np
from draw_adaptation import record_half_cheetah, save  # beside this file
from PIL import Image

from meta_policy_search.envs import MetaBernoulliBanditEnv, make_env

FOLDER = Path(__file__).resolve().parent / "images"
ROBOTS = {  # steps, and how many controls are half a period apart (0: all at random)
    "AntRandDirec2DEnv": (40, 2),
    "HumanoidRandDirecEnv": (40, 0),
    "Walker2DRandVelEnv": (60, 0),
    "HopperRandParamsEnv": (60, 0),
    "SwimmerRandVelEnv": (60, 4),
}
POINTS: Dict[str, Any] = {  # task
    "MetaPointEnvNavigation": (0.4, 0.3),
    "MetaPointEnvCorner": (2.0, 2.0),
    "MetaPointEnvMomentum": (-2.0, 2.0),
    "MetaPointEnvWalls": {"goal": (2.0, -2.0), "gap_1": (0.8, -0.6), "gap_2": (1.2, -1.6)},
}
SIZE, POINT_STEPS = 300, 45  # pixels; steps of a point


def draw(name: str, pictures: Iterator[np.ndarray], fps: float) -> None:
    """Saves a moving picture of an environment."""
    images = [Image.fromarray(picture).resize((SIZE, SIZE), Image.LANCZOS) for picture in pictures]
    save(images, FOLDER / f"{name}.webp", fps)


def pictures_of_half_cheetah() -> Iterator[np.ndarray]:
    """Draws the half cheetah running forward."""
    for env in itertools.islice(record_half_cheetah().replay(step=1, task=0), 60):
        yield env.render()


def pictures_of_robot(name: str, num_steps: int, phases: int) -> Iterator[np.ndarray]:
    """Draws a robot until it falls."""
    env = make_env(name, render_mode="rgb_array")
    env.reset(seed=1)
    env.action_space.seed(1)
    size, terminated = env.action_space.shape[0], False
    for t in range(num_steps):
        yield env.render()
        if terminated:
            break
        to_and_fro = np.sin(0.35 * t - 2.0 * np.pi / max(phases, 1) * np.arange(size))
        _, _, terminated, *_ = env.step(0.8 * to_and_fro if phases else 0.6 * env.action_space.sample())
    env.close()


def pictures_of_point(name: str, task: Any) -> Iterator[np.ndarray]:
    """Draws a point on its way to a goal that it was told."""
    env = make_env(name, render_mode="rgb_array")
    env.set_task(task)
    goal = task["goal"] if isinstance(task, dict) else task
    observation, _ = env.reset(seed=1)
    rng = np.random.default_rng(1)
    for _ in range(POINT_STEPS):
        yield env.render()
        away = np.asarray(goal) - observation[:2]
        push = 0.08 * away / max(np.linalg.norm(away), 0.3) + rng.normal(0.0, 0.03, 2)
        if len(observation) == 4:  # with inertia: brake
            push = 0.02 * away - 0.25 * observation[2:]
        observation = env.step(push)[0]


def draw_bandits(path: Path) -> None:
    """Draws the arms of some tasks of the bandit."""
    from matplotlib import pyplot as plt

    env = MetaBernoulliBanditEnv()
    tasks = np.array(env.sample_tasks(8, np.random.default_rng(1)))
    figure, axes = plt.subplots(figsize=(5.2, 3.0), layout="constrained")
    image = axes.imshow(tasks, vmin=0.0, vmax=1.0, cmap="viridis", aspect="auto")
    axes.set(xlabel="arm", ylabel="task", xticks=range(tasks.shape[1]))
    figure.colorbar(image, label="probability that it pays off")
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main() -> None:
    """Draws everything, or the environments that are named on the command line."""
    matplotlib.use("Agg")
    wanted = sys.argv[1:]
    drawn = {"HalfCheetahRandDirecEnv": (pictures_of_half_cheetah,),
             **{name: (pictures_of_robot, name, *how) for name, how in ROBOTS.items()},
             **{name: (pictures_of_point, name, task) for name, task in POINTS.items()}}
    for name, (pictures, *arguments) in drawn.items():
        if not wanted or name in wanted:
            draw(name, pictures(*arguments), 15 if name in POINTS else 20)
    if not wanted:
        draw_bandits(FOLDER / "MetaBernoulliBanditEnv.png")


if __name__ == "__main__":
    main()
