"""Draws the frames on the pages of environments, and what adaptation does on the start page, into `docs/images`.

    python docs/draw_environments.py

Robots take OpenGL, EGL or OSMesa; see `make_env(..., render_mode="rgb_array")`. The numbers behind the pictures are the
same every time, their pixels may differ between versions of OpenGL and matplotlib.
"""
from pathlib import Path
from typing import Any, Dict

import matplotlib
import numpy as np
from PIL import Image

from meta_policy_search.envs import MetaBernoulliBanditEnv, MetaEnv, make_env

FOLDER = Path(__file__).resolve().parent / "images"
WEIGHTS = Path(__file__).resolve().parent / "notebooks" / "navigation.npz"
ROBOTS = {  # steps with random actions before the frame
    "HalfCheetahRandDirecEnv": 12,
    "AntRandDirec2DEnv": 6,
    "HumanoidRandDirecEnv": 8,
    "Walker2DRandVelEnv": 5,
    "HopperRandParamsEnv": 12,
    "SwimmerRandVelEnv": 40,
}
POINTS: Dict[str, Any] = {  # task
    "MetaPointEnvNavigation": (0.4, 0.3),
    "MetaPointEnvCorner": (2.0, 2.0),
    "MetaPointEnvMomentum": (-2.0, 2.0),
    "MetaPointEnvWalls": {"goal": (2.0, -2.0), "gap_1": (0.8, -0.6), "gap_2": (1.2, -1.6)},
}
SIZE, COLORS = 320, 96  # pixels, and colors of the palette


def save(picture: np.ndarray, name: str) -> None:
    """Saves a picture `[H, W, 3]`, smaller and with few colors."""
    image = Image.fromarray(picture).resize((SIZE, round(SIZE * picture.shape[0] / picture.shape[1])), Image.LANCZOS)
    image.quantize(COLORS).save(FOLDER / f"{name}.png", optimize=True)


def frame_of_robot(name: str, num_steps: int) -> np.ndarray:
    """Returns a robot after some steps with random actions."""
    env = make_env(name, render_mode="rgb_array")
    env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(num_steps):
        env.step(env.action_space.sample())
    picture = env.render()
    env.close()
    return picture


def frame_of_point(name: str, task: Any) -> np.ndarray:
    """Returns a point on its way to a goal that it was told."""
    env = make_env(name, render_mode="rgb_array")
    env.set_task(task)
    goal = task["goal"] if isinstance(task, dict) else task
    observation, _ = env.reset(seed=1)
    rng = np.random.default_rng(1)
    for _ in range(60):
        away = np.asarray(goal) - observation[:2]
        push = 0.08 * away / max(np.linalg.norm(away), 0.3) + rng.normal(0.0, 0.03, 2)
        if len(observation) == 4:  # with inertia: brake
            push = 0.02 * away - 0.25 * observation[2:]
        observation = env.step(push)[0]
    return env.render()


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


def draw_adaptation(path: Path) -> None:
    """Draws the paths of a trained policy in four tasks, before and after one gradient step."""
    from matplotlib import pyplot as plt

    from meta_policy_search.baselines import LinearFeatureBaseline
    from meta_policy_search.envs import MetaPointEnvNavigation, normalize
    from meta_policy_search.meta_algos import TRPOMAML
    from meta_policy_search.policies import MetaGaussianMLPPolicy
    from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
    from meta_policy_search.utils.utils import set_seed

    set_seed(1)
    goals = [np.array(goal) for goal in ((0.4, 0.3), (-0.4, 0.35), (-0.3, -0.45), (0.45, -0.2))]
    env: MetaEnv = normalize(MetaPointEnvNavigation(), normalization_scale=1.0)
    policy = MetaGaussianMLPPolicy(len(goals), 2, 2, hidden_sizes=(100, 100), hidden_nonlinearity="relu")
    policy.load_npz(WEIGHTS)
    sampler = MetaSampler(env, policy, rollouts_per_meta_task=20, meta_batch_size=len(goals), max_path_length=100)
    processor = MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True)
    algo = TRPOMAML(policy, inner_lr=0.5, meta_batch_size=len(goals), inner_type="log_likelihood")
    sampler.update_tasks(goals)
    before = sampler.obtain_samples()
    algo.adapt(processor.process_samples(before))
    after = sampler.obtain_samples()

    figure, panels = plt.subplots(1, 2, figsize=(9.0, 4.4), layout="constrained", sharex=True, sharey=True)
    colors = ["tab:blue", "tab:orange", "tab:green", "tab:red"]
    for panel, paths, title in zip(panels, (before, after), ("before adaptation", "after one gradient step")):
        returns = [path["rewards"].sum() for task in range(len(goals)) for path in paths[task]]
        for task, (goal, color) in enumerate(zip(goals, colors)):
            for each in paths[task][:4]:
                panel.plot(*each["observations"].T, color=color, alpha=0.55, linewidth=1.0)
            panel.plot(*goal, marker="*", color=color, markersize=17, markeredgecolor="black", linestyle="none")
        panel.plot(0.0, 0.0, "k+", markersize=12)
        panel.set(title=f"{title}: mean return {np.mean(returns):.0f}", xlabel="x", aspect="equal")
    panels[0].set(ylabel="y", xlim=(-0.8, 0.8), ylim=(-0.8, 0.8))
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main() -> None:
    """Draws everything."""
    matplotlib.use("Agg")
    for name, num_steps in ROBOTS.items():
        save(frame_of_robot(name, num_steps), name)
    for name, task in POINTS.items():
        save(frame_of_point(name, task), name)
    draw_bandits(FOLDER / "MetaBernoulliBanditEnv.png")
    draw_adaptation(FOLDER / "adaptation.png")


if __name__ == "__main__":
    main()
