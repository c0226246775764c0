"""Recorded paths of a policy before and after adaptation, and their trajectory plots and videos.

Videos show paths before adaptation on the left and after the last adaptation step on the right.
"""
import copy
import dataclasses
import itertools
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.envs.compat import adapt_env, copy_env, frame_rate, set_render_mode
from meta_policy_search.envs.mujoco_envs.engines.camera import renderer_of
from meta_policy_search.envs.point_envs import MetaPointEnvNavigation
from meta_policy_search.envs.scenery import check_is_planar, position_of, scenery_of
from meta_policy_search.plotting import describe_task, plot_trajectories, step_label
from meta_policy_search.plotting.style import Figure
from meta_policy_search.samplers import MetaSampler
from meta_policy_search.samplers.rollout_loop import INITIAL_BUFFER_STEPS, draw_path_noise
from meta_policy_search.types import PathsMetaBatch, Task
from meta_policy_search.utils.checks import check_positive_int
from meta_policy_search.utils.files import PathLike
from meta_policy_search.utils.statistics import task_returns
from meta_policy_search.utils.video import check_encoder, mp4_file

CAPTION_HEIGHT, GAP = 56, 16  # pixels
FONT_SIZE, MARGIN = 14, 8  # pixels


def next_start_rngs(sampler: MetaSampler) -> List[List[np.random.Generator]]:
    """Returns the random generators `[M][P]` that environments will use in the next paths of `sampler`."""
    actor = sampler.make_actor()
    noise = np.empty((min(sampler.max_path_length, INITIAL_BUFFER_STEPS), actor.noise_dim), np.float32)
    rngs = [[sampler.path_rng(m, p) for p in range(sampler.batch_size)] for m in range(sampler.meta_batch_size)]
    for rng in itertools.chain(*rngs):
        draw_path_noise(actor, rng, sampler.max_path_length, noise)  # the policy's noise is drawn first
    return rngs


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Recording:
    """Paths of a policy in `M` tasks, before adaptation and after each adaptation step.

    Args:
        name: name of the policy.
        env: the environment; `replay` uses copies of it.
        tasks: the `M` tasks.
        rounds: the paths (`P` per task) after 0, 1, ..., `K` adaptation steps.
        start_rngs: for each element of `rounds`, the random generators `[M][P]` of the environments at the start of the
            paths. For trials, the only element contains the generators at the start of the first episode.
        is_trial: whether the elements of `rounds` are the successive episodes of the same trials. Then `replay`
            first repeats the earlier episodes. Default False.
        policy: the policy after the last adaptation step, which acts in `env`; for trials, in the `TrialEnv`. Default
            None: unknown.
    """

    name: str
    env: Any
    tasks: Sequence[Task]
    rounds: Sequence[PathsMetaBatch]
    start_rngs: Sequence[Sequence[Sequence[np.random.Generator]]]
    is_trial: bool = False
    policy: Any = None

    def __repr__(self) -> str:
        return f"<Recording of {self.name} in {len(self.tasks)} tasks, after 0 to {len(self.rounds) - 1} steps>"

    @property
    def returns(self) -> np.ndarray:
        """Mean undiscounted return in each task after 0, 1, ..., `K` adaptation steps, float64 `[M, K + 1]`."""
        return np.stack([task_returns(paths) for paths in self.rounds], axis=-1)

    def replay(self, step: int, task: int, path: int = 0, env: Any = None) -> Iterator[Any]:
        """Replays a recorded path; yields the environment at the start of the path and after each step.

        Args:
            step: number of adaptation steps before the path.
            task: index of the task.
            path: index of the path; default 0.
            env: environment to step, which is modified. Default None: a copy of `self.env`.

        Raises:
            ValueError: a reward differs from the recorded reward. This happens if the environment draws random
                numbers from a source other than the generator that the library sets.
        """
        env = adapt_env(copy_env(self.env) if env is None else env)
        recorded = self.rounds[step][task][path]
        env.set_task(self.tasks[task])
        env.np_random = copy.deepcopy(self.start_rngs[0 if self.is_trial else step][task][path])
        for earlier in self.rounds[:step] if self.is_trial else ():
            env.reset()
            for action in earlier[task][path]["actions"]:
                env.step(action)
        env.reset()
        yield env
        for t, (action, reward) in enumerate(zip(recorded["actions"], recorded["rewards"], strict=True)):
            again = env.step(action)[1]
            if not np.isclose(again, reward, rtol=1e-6, atol=1e-9):
                raise ValueError(f"replay: expected the recorded reward {reward} in step {t}, got {again}: "
                                   f"{type(env.unwrapped).__name__} is not deterministic for a given generator")
            yield env

    def trajectories(self, step: int, task: int, num_paths: int = 5) -> List[np.ndarray]:
        """Returns the positions along the first `num_paths` paths of a task, a list of float64 `[T + 1, 2]`.

        Args:
            step: number of adaptation steps before the paths.
            task: index of the task.
            num_paths: maximum number of paths; default 5.

        Raises:
            ValueError: the environment is not planar (it has no `position`).
        """
        check_is_planar(self.env)
        env = copy_env(self.env)
        count = min(num_paths, len(self.rounds[step][task]))
        return [np.array([position_of(moved) for moved in self.replay(step, task, path, env)])
                for path in range(count)]

    def plot_trajectories(self, path: Optional[PathLike] = None, title: str = "", num_paths: int = 5,
                          ax: Any = None) -> Figure:
        """Plots the paths in each task, before adaptation and after each adaptation step.

        Args:
            path: file to write: the ending (such as `.svg` or `.png`) determines the format. Default None: no file.
            title: title of the figure. Default: "Paths of" and the name of the policy.
            num_paths: maximum number of paths per panel; default 5.
            ax: see `plotting.plot_trajectories`.

        Returns:
            The figure.

        Raises:
            ValueError: the environment is not planar (it has no `position`).
        """
        num_paths, env, tasks = check_positive_int("num_paths", num_paths), adapt_env(copy_env(self.env)), []
        for index, task in enumerate(self.tasks):
            trajectories = [self.trajectories(step, index, num_paths) for step in range(len(self.rounds))]
            env.set_task(task)
            tasks.append((scenery_of(env), trajectories, self.returns[index]))
        names = [f"task {number}: {describe_task(task, env=env)}" for number, task in enumerate(self.tasks, 1)]
        return plot_trajectories(tasks, path, title or f"Paths of {self.name}", names, ax)


def write_video(recording: Recording, path: PathLike, fps: Optional[float] = None) -> int:
    """Writes an MP4 video that shows the tasks of a recording sequentially. Requires the extra `video`.

    Args:
        recording: the recorded paths; the video shows the first path of each task.
        path: file to write; an existing file is replaced.
        fps: frames (environment steps) per second. Default None: `frame_rate` of the environment.

    Returns:
        The number of frames.

    Raises:
        ImportError: the extra `video` is not installed; the message contains the command that installs it.
        ValueError: `fps` is not above 0, the environment does not support images, or it is not deterministic (see
            `Recording.replay`).
        RuntimeError: OpenGL is missing.
        OSError: the file cannot be written.
    """
    check_encoder()
    envs = copy_env(recording.env), copy_env(recording.env)
    for env in envs:
        set_render_mode(env, "rgb_array")
    count = 0
    try:
        with mp4_file(path, frame_rate(envs[0]) if fps is None else fps) as append:
            for frame in itertools.chain(*(frames(recording, task, envs) for task in range(len(recording.tasks)))):
                append(frame)
                count += 1
    finally:
        for env in envs:
            env.close()
    return count


def frames(recording: Recording, task: int, envs: Tuple[Any, Any]) -> Iterator[np.ndarray]:
    """Renders the first path of a task before adaptation and the first path after the last step, side by side.

    Args:
        recording: the recorded paths.
        task: index of the task.
        envs: one environment per side; both support `render`.

    Returns:
        An iterator over frames, uint8 `[H, W, 3]`: one for the start, and one for each step of the longer path. After
        the shorter path has ended, its last frame is repeated.
    """
    steps = (0, len(recording.rounds) - 1)
    if isinstance(envs[0].unwrapped, MetaPointEnvNavigation):
        positions = np.concatenate([recording.trajectories(step, task, 1)[0] for step in steps])
        for env in envs:
            env.unwrapped.least_half_width = float(np.abs(positions).max())
    sides = [_panels(recording, step, task, env) for step, env in zip(steps, envs, strict=True)]
    shown: List[Any] = [None, None]
    for panels in itertools.zip_longest(*sides):
        shown = [last if panel is None else panel for panel, last in zip(panels, shown, strict=True)]
        gap = np.full((len(shown[0]), GAP, 3), 255, np.uint8)
        yield np.concatenate((shown[0], gap, shown[1]), axis=1)


def _panels(recording: Recording, step: int, task: int, env: Any) -> Iterator[np.ndarray]:
    """Renders the first path of a task after `step` adaptation steps, with captions."""
    rewards = recording.rounds[step][task][0]["rewards"]
    returns = np.concatenate(([0.0], np.cumsum(rewards)))
    head = f"task {task + 1}: {describe_task(recording.tasks[task], 24, env)}, {step_label(step)}"
    render: Any = None
    for t, moved in enumerate(recording.replay(step, task, env=env)):
        render = render or renderer_of(moved)
        yield _captioned(render(), [head, f"step {t} of {len(rewards)}, return so far {returns[t]:.2f}"])


def _captioned(picture: np.ndarray, lines: Sequence[str]) -> np.ndarray:
    """Adds centered lines of text above a frame."""
    from matplotlib.font_manager import findfont
    from PIL import Image, ImageDraw, ImageFont

    caption = Image.new("RGB", (picture.shape[1], CAPTION_HEIGHT), "white")
    draw, font = ImageDraw.Draw(caption), ImageFont.truetype(findfont("DejaVu Sans"), FONT_SIZE)
    for number, line in enumerate(lines):
        place = (picture.shape[1] / 2, MARGIN + number * (CAPTION_HEIGHT - MARGIN) // len(lines))
        draw.text(place, line, anchor="ma", fill="black" if number == 0 else "#555555", font=font)
    return np.concatenate((np.asarray(caption), picture))
