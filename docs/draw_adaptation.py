"""Draws the animation of the landing page: points and a half cheetah before and after one gradient step.

    python docs/draw_adaptation.py [--output FOLDER] [--smoke]

Writes `adaptation.webp` and, for the page "Figures and videos", `trajectories.png`. `--smoke` draws a few frames.
The policies are `notebooks/navigation.npz` and `images/half_cheetah.npz`. The first was trained with TRPO-MAML for 100
iterations (`notebooks/README.md`), the second with ProMP for 102 iterations:

    python experiments/pro_mp.py --config_file experiments/configs/make_train.json --n_itr 102

The half cheetah needs OpenGL (EGL or OSMesa); see `make_env(..., render_mode="rgb_array")`.
"""
import argparse
import itertools
from pathlib import Path
from typing import Any, Iterator, List, Optional, Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import make_env, normalize
from meta_policy_search.evaluation import MetaEvaluator, Recording
from meta_policy_search.meta_algos import TRPOMAML, ProMP
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor

HERE = Path(__file__).resolve().parent
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # distinguishable with red-green color blindness
GOALS = ((0.4, 0.3), (-0.4, 0.35), (-0.3, -0.45), (0.45, -0.2))
DIRECTIONS = {"run forward": 1.0, "run backward": -1.0}
ROWS = ("before adaptation", "after one gradient step")
PANEL, MARGIN, HEADING, RULER = 232, 8, 28, 26  # pixels
LENGTH, FPS = 64, 20  # frames, frames per second


def parse(description: Optional[str], argv: Optional[Sequence[str]], **more: Any) -> argparse.Namespace:
    """Returns the arguments of a script that draws pictures; `more` describes a positional argument."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=HERE / "images", metavar="FOLDER", help="default: docs/images")
    parser.add_argument("--smoke", action="store_true", help="a test with tiny sizes")
    if more:
        parser.add_argument("names", **more)
    return parser.parse_args(argv)


def record_points(smoke: bool = False) -> Recording:
    """Adapts a policy to four goals in two steps; the animation shows the first one."""
    env = normalize(make_env("MetaPointEnvNavigation", render_mode="rgb_array"), normalization_scale=1.0)
    policy = MetaGaussianMLPPolicy(len(GOALS), 2, 2, hidden_sizes=(100, 100), hidden_nonlinearity="relu")
    policy.load_npz(HERE / "notebooks" / "navigation.npz")
    algo = TRPOMAML(policy, inner_lr=0.5, meta_batch_size=len(GOALS), inner_type="log_likelihood")
    return _record(algo, env, [np.array(goal) for goal in GOALS], (0.5, 0.25), smoke)


def record_half_cheetah(smoke: bool = False) -> Recording:
    """Adapts a policy to both directions."""
    env = normalize(make_env("HalfCheetahRandDirecEnv", render_mode="rgb_array"))
    policy = MetaGaussianMLPPolicy(len(DIRECTIONS), 17, 6, hidden_sizes=(64, 64))
    policy.load_npz(HERE / "images" / "half_cheetah.npz")
    return _record(ProMP(policy, meta_batch_size=len(DIRECTIONS)), env, list(DIRECTIONS.values()), (0.1,), smoke)


def _record(algo: Any, env: Any, tasks: Sequence[Any], step_sizes: Sequence[float], smoke: bool) -> Recording:
    processor = MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True)
    evaluator = MetaEvaluator(algo, env, processor, rollouts_per_meta_task=3 if smoke else 20,
                              max_path_length=5 if smoke else 100)
    return evaluator.record(tasks, len(step_sizes), step_sizes, seed=1)


def pictures_of_points(recording: Recording, step: int, length: int) -> Iterator[np.ndarray]:
    """Yields frames of the first three paths of each task, one environment step per frame."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    trails = [recording.trajectories(step, task, 3) for task in range(len(GOALS))]
    for t in range(length):
        figure = Figure(figsize=(2.0, 2.0 * (PANEL + RULER) / PANEL), dpi=PANEL / 2.0)
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(-0.75, 0.75), ylim=(-0.8, 0.88))
        axes.axis("off")
        axes.plot(0.0, 0.0, "o", color="#333333", markerfacecolor="white", markersize=6)
        for goal, color, of_task in zip(GOALS, COLORS, trails, strict=True):
            axes.plot(*goal, marker="*", color=color, markersize=13, markeredgecolor="#333333", markeredgewidth=0.6)
            for trail in of_task:
                axes.plot(*trail[:t + 1].T, color=color, linewidth=1.0, alpha=0.6)
                axes.plot(*trail[min(t, len(trail) - 1)], "o", color=color, markersize=3.5)
        canvas.draw()
        yield np.asarray(canvas.buffer_rgba())[:, :, :3]


def positions(recording: Recording, step: int, task: int) -> np.ndarray:
    """Returns the position of the half cheetah after each environment step of the first path, m."""
    velocity = recording.rounds[step][task][0]["env_infos"]["reward_run"] * recording.tasks[task]  # m/s, forward
    return np.cumsum(velocity * 0.05)


def pictures_of_robot(recording: Recording, step: int, task: int, env: Any, length: int) -> Iterator[np.ndarray]:
    """Yields frames of the first path of a task, above a ruler with the position.

    After adaptation, a ring on the ruler marks the position that the policy before adaptation reaches.
    """
    places = positions(recording, step, task)[:length]
    reached = positions(recording, 0, task)[:length][-1] if step > 0 else None
    for place, moved in zip(places, itertools.islice(recording.replay(step, task, env=env), length)):
        image = Image.new("RGB", (PANEL, PANEL + RULER), "white")
        image.paste(Image.fromarray(moved.render()).resize((PANEL, PANEL), Image.LANCZOS), (0, 0))
        draw_ruler(ImageDraw.Draw(image), place, reached)
        yield np.asarray(image)


def draw_ruler(draw: Any, place: float, reached: Optional[float], reach: float = 9.0) -> None:
    """Draws a ruler from `-reach` to `reach` m below a panel, with a dot at `place` and a ring at `reached`."""
    def x(meters: float) -> float:
        return PANEL / 2 + meters / reach * PANEL / 2

    y = PANEL + 8
    draw.line((6, y, PANEL - 6, y), "#888888")
    for tick in range(-8, 9, 2):
        draw.line((x(tick), y - 3, x(tick), y + 3), "#888888")
    for tick in (-8, 0, 8):
        draw.text((x(tick), y + 10), f"{tick} m", "#555555", _font(10), anchor="mm")
    draw.line((x(0.0), y, x(place), y), COLORS[1], width=3)
    if reached is not None:
        draw.ellipse((x(reached) - 5, y - 5, x(reached) + 5, y + 5), outline="black", fill="white")
    draw.ellipse((x(place) - 5, y - 5, x(place) + 5, y + 5), fill=COLORS[1], outline="black")


def compose(panels: Sequence[Sequence[np.ndarray]], headings: Sequence[str], notes: Sequence[Sequence[str]]) -> Any:
    """Returns an image of panels in rows and columns, with headings above the columns and notes in the corners."""
    font, step, down = _font(14), PANEL + MARGIN, PANEL + RULER + MARGIN
    width, height = step * len(headings) - MARGIN + HEADING, HEADING + down * len(panels) - MARGIN
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    for column, heading in enumerate(headings):
        draw.text((HEADING + column * step + PANEL // 2, HEADING // 2), heading, "black", font, anchor="mm")
    for row, name in enumerate(ROWS):
        across = Image.new("RGB", (PANEL, HEADING), "white")
        ImageDraw.Draw(across).text((PANEL // 2, HEADING // 2), name, "black", font, anchor="mm")
        top = HEADING + row * down
        image.paste(across.transpose(Image.ROTATE_90), (0, top))
        for column, panel in enumerate(panels[row]):
            left = HEADING + column * step
            image.paste(Image.fromarray(panel), (left, top))
            draw.rectangle((left, top, left + PANEL - 1, top + PANEL + RULER - 1), outline="#cccccc")
            draw.text((left + 7, top + 6), notes[row][column], "#333333", _font(12))
    return image


def _font(size: int) -> Any:
    from matplotlib.font_manager import findfont

    return ImageFont.truetype(findfont("DejaVu Sans"), size)


def save(images: List[Any], path: Path, fps: float, quality: int = 45) -> None:
    """Saves a looping animation whose last frame is shown for 1.2 s."""
    durations = [round(1000 / fps)] * (len(images) - 1) + [1200]
    images[0].save(path, save_all=True, append_images=images[1:], duration=durations, loop=0, quality=quality, method=4)
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Draws the animation, and the trajectories of the points."""
    arguments = parse(__doc__, argv)
    smoke, length = arguments.smoke, 3 if arguments.smoke else LENGTH
    points, robot = record_points(smoke), record_half_cheetah(smoke)
    points.plot_trajectories(arguments.output / "trajectories.png", "TRPO-MAML on MetaPointEnvNavigation, seed 1",
                             num_paths=3)
    env = normalize(make_env("HalfCheetahRandDirecEnv", render_mode="rgb_array"))
    rows, notes = [], []
    for step in range(2):
        columns = [pictures_of_points(points, step, length),
                   *(pictures_of_robot(robot, step, task, env, length) for task in range(len(DIRECTIONS)))]
        rows.append([list(frames) for frames in columns])
        returns = (points.returns[:, step].mean(), *robot.returns[:, step])
        notes.append([f"mean return {value:.0f}" for value in returns])
    env.close()
    headings = ("find a hidden goal", *DIRECTIONS)
    images = [compose([[frames[t] for frames in row] for row in rows], headings, notes) for t in range(length)]
    save(images, arguments.output / "adaptation.webp", FPS)


if __name__ == "__main__":
    main()
