"""Draws the animations and figures of the environment pages into `docs/images`.

    python docs/draw_environments.py [ENV ...] [--output FOLDER] [--smoke]

The half cheetah is controlled by the adapted policy of the landing page (`draw_adaptation.py`). Ant, reacher and
swimmer move their joints periodically, the other robots randomly. Points are pushed toward their goals. The agent of
Khazad-Dum makes the detour. Carts and pendulums of three masses share one simple controller. Robots need OpenGL (EGL or
OSMesa); see `make_env(..., render_mode="rgb_array")`.
The simulated data are reproducible; pixels may differ between versions of OpenGL and Matplotlib.
"""
import itertools
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

import matplotlib
import numpy as np
from draw_adaptation import parse, record_half_cheetah, save  # in this folder
from PIL import Image, ImageOps

from meta_policy_search.envs import MetaBernoulliBanditEnv, make_env
from meta_policy_search.plotting.style import COLORS, GRID_COLOR, NOTE_STYLE

ROBOTS = {  # steps, joints per full phase shift (0: random actions)
    "AntRandDirec2DEnv": (40, 2),
    "HumanoidRandDirecEnv": (40, 0),
    "Walker2DRandVelEnv": (60, 0),
    "HopperRandParamsEnv": (60, 0),
    "SwimmerRandVelEnv": (60, 4),
    "HalfCheetahRandMassEnv": (40, 0),
    "HalfCheetahRandBodyEnv": (40, 0),
    "ReacherRandGoalEnv": (60, 2),
}
TASKS_OF_ROBOTS = {"HalfCheetahRandMassEnv": (1.9,), "HalfCheetahRandBodyEnv": (0.6, 1.0, 1.9),
                   "ReacherRandGoalEnv": (0.05, 0.15)}
POINTS: Dict[str, Any] = {  # tasks
    "MetaPointEnvCornerGoals": (0.5, 0.5),
    "MetaPointEnvNavigation": (0.4, 0.3),
    "MetaPointEnvMomentum": (-2.0, 2.0),
    "MetaPointEnvSemicircle": (-0.6, 0.8),
    "MetaPointEnvWalls": {"goal": (2.0, -2.0), "gap_1": (0.8, -0.6), "gap_2": (1.2, -1.6)},
}
SIZE, POINT_STEPS = 300, 45  # pixels; environment steps


def draw(path: Path, pictures: Iterator[np.ndarray], fps: float) -> None:
    """Saves an animation of an environment."""
    images = [ImageOps.contain(Image.fromarray(picture), (660, SIZE), Image.LANCZOS) for picture in pictures]
    save(images, path, fps)


def pictures_of_half_cheetah(smoke: bool) -> Iterator[np.ndarray]:
    """Yields frames of the half cheetah running forward."""
    for env in itertools.islice(record_half_cheetah(smoke).replay(step=1, task=0), 60):
        yield env.render()


def pictures_of_robot(name: str, num_steps: int, phases: int) -> Iterator[np.ndarray]:
    """Yields frames of a robot until it falls."""
    env = make_env(name, render_mode="rgb_array")
    if name in TASKS_OF_ROBOTS:
        env.set_task(TASKS_OF_ROBOTS[name])
    env.reset(seed=1)
    env.action_space.seed(1)
    size, terminated = env.action_space.shape[0], False
    for t in range(num_steps):
        yield env.render()
        if terminated:
            break
        periodic = np.sin(0.35 * t - 2.0 * np.pi / max(phases, 1) * np.arange(size))
        _, _, terminated, *_ = env.step(0.8 * periodic if phases else 0.6 * env.action_space.sample())
    env.close()


def pictures_of_point(name: str, task: Any) -> Iterator[np.ndarray]:
    """Yields frames of a point that moves to a known goal."""
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


def pictures_of_detour() -> Iterator[np.ndarray]:
    """Yields frames of Khazad-Dum: the agent crosses the safe bridge."""
    env = make_env("KhazadDumEnv", render_mode="rgb_array")
    env.reset(seed=1)
    right, up, left = 1, 3, 0
    for action in [right] * 6 + [up] * 5 + [left] * 6:
        yield env.render()
        env.step(action)
    yield env.render()


def balance(observation: np.ndarray) -> int:
    """Returns the action that pushes the cart toward the falling pole."""
    return int(observation @ (0.05, 0.1, 1.0, 0.2) > 0.0)


def swing_up(observation: np.ndarray) -> np.ndarray:
    """Returns the torque that accelerates a pendulum up to the energy of the upright position and balances it there."""
    cosine, sine, spin = observation
    energy = 5.0 * cosine + spin * spin / 6.0  # J per kg; 5 at rest in the upright position
    torque = -15.0 * sine - 3.0 * spin if cosine > 0.94 else 2.0 * np.sign(spin) * (energy < 5.0)
    return np.clip([torque], -2.0, 2.0)


def draw_cart_pole(axes: Any, observation: np.ndarray, masses: Sequence[float]) -> None:
    """Draws cart and pole in sizes that grow with their masses, and the limits of the angle."""
    place, _, angle, _ = observation
    half, limit = 0.1 + 0.15 * masses[0], np.radians(12.0)
    axes.axhline(-0.15, color=GRID_COLOR)
    for bound in (-limit, limit):
        axes.plot((place, place + 1.15 * np.sin(bound)), (0.0, 1.15 * np.cos(bound)), ":", color=GRID_COLOR)
    axes.fill(place + half * np.array([-1.0, 1.0, 1.0, -1.0]), (-0.15, -0.15, 0.15, 0.15), COLORS[0])
    axes.plot((place, place + np.sin(angle)), (0.0, np.cos(angle)), color=COLORS[1], linewidth=3.0 + 30.0 * masses[1],
              solid_capstyle="round")
    axes.set(xlim=(-1.1, 1.1), ylim=(-0.25, 1.2))
    axes.set_title(f"cart {masses[0]:g} kg, pole {masses[1]:g} kg", **NOTE_STYLE)


def draw_pendulum(axes: Any, observation: np.ndarray, masses: Sequence[float]) -> None:
    """Draws a pendulum with a width that grows with its mass."""
    cosine, sine, _ = observation
    axes.plot((0.0, -sine), (0.0, cosine), color=COLORS[1], linewidth=7.0 * np.sqrt(masses[0]), solid_capstyle="round")
    axes.plot(0.0, 0.0, "o", color=COLORS[0])
    axes.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
    axes.set_title(f"{masses[0]:g} kg", **NOTE_STYLE)


class Control(NamedTuple):
    """Controller and drawing function of a classic control environment."""

    tasks: Sequence[Sequence[float]]  # kg
    act: Callable[[np.ndarray], Any]
    draw: Callable[[Any, np.ndarray, Sequence[float]], None]  # axes, observation, task
    hold: int  # steps for which an action is repeated
    num_steps: int
    every: int  # steps between frames
    seed: int
    height: float  # of the figure, in hundreds of pixels
    fps: float


CONTROL = {
    "CartPoleMassEnv": Control(((0.5, 0.05), (1.0, 0.1), (2.0, 0.2)), balance, draw_cart_pole, 4, 109, 4, 1, 1.7, 12.5),
    "PendulumMassEnv": Control(((0.5,), (1.0,), (2.0,)), swing_up, draw_pendulum, 1, 101, 2, 53, 2.2, 10),
}


FPS = {"KhazadDumEnv": 5, **{name: control.fps for name, control in CONTROL.items()}}


def follow(name: str, task: Sequence[float], control: Control) -> List[np.ndarray]:
    """Returns the observations of a path."""
    env = make_env(name)
    env.set_task(np.array(task))
    observation, _ = env.reset(seed=control.seed)
    path, terminated, action = [observation], False, None
    for t in range(control.num_steps - 1):
        if terminated:
            break
        if t % control.hold == 0:
            action = control.act(observation)
        observation, _, terminated, *_ = env.step(action)
        path.append(observation)
    return path


def pictures_of_control(name: str, control: Control) -> Iterator[np.ndarray]:
    """Yields frames with all tasks next to each other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    paths = [follow(name, task, control) for task in control.tasks]
    for t in range(0, control.num_steps, control.every):
        figure = Figure(figsize=(6.6, control.height), dpi=100, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        for axes, task, path in zip(figure.subplots(1, len(paths)), control.tasks, paths, strict=True):
            axes.set_aspect("equal")
            axes.axis("off")
            control.draw(axes, path[min(t, len(path) - 1)], task)
        canvas.draw()
        yield np.asarray(canvas.buffer_rgba())[:, :, :3]


def draw_bandits(path: Path) -> None:
    """Draws the success probabilities of the arms in eight tasks of the bandit."""
    from matplotlib import pyplot as plt

    env = MetaBernoulliBanditEnv()
    tasks = np.array(env.sample_tasks(8, np.random.default_rng(1)))
    figure, axes = plt.subplots(figsize=(5.2, 3.0), layout="constrained")
    image = axes.imshow(tasks, vmin=0.0, vmax=1.0, cmap="viridis", aspect="auto")
    axes.set(xlabel="arm", ylabel="task", xticks=range(tasks.shape[1]))
    figure.colorbar(image, label="probability that it pays off")
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Draws all environments, or those named on the command line."""
    arguments = parse(__doc__, argv, nargs="*", metavar="ENV", help="environments (default: all)")
    matplotlib.use("Agg")
    drawn = {"HalfCheetahRandDirecEnv": (pictures_of_half_cheetah, arguments.smoke),
             **{name: (pictures_of_robot, name, *how) for name, how in ROBOTS.items()},
             **{name: (pictures_of_point, name, task) for name, task in POINTS.items()},
             **{name: (pictures_of_control, name, control) for name, control in CONTROL.items()},
             "KhazadDumEnv": (pictures_of_detour,)}
    for name, (pictures, *of_env) in drawn.items():
        if not arguments.names or name in arguments.names:
            frames = itertools.islice(pictures(*of_env), 2 if arguments.smoke else None)
            draw(arguments.output / f"{name}.webp", frames, FPS.get(name, 15 if name in POINTS else 20))
    if not arguments.names:
        draw_bandits(arguments.output / "MetaBernoulliBanditEnv.png")


if __name__ == "__main__":
    main()
