"""Videos of recorded paths: before adaptation on the left, after the last adaptation step on the right."""
import copy
import itertools
from typing import Any, Iterator, Optional, Sequence, Tuple

import numpy as np

from meta_policy_search.evaluation.loading import set_render_mode
from meta_policy_search.evaluation.recording import Recording
from meta_policy_search.plotting import describe_task, step_label
from meta_policy_search.utils.files import PathLike
from meta_policy_search.utils.video import check_encoder, mp4_file

CAPTION_HEIGHT, GAP = 56, 16  # pixels
FONT_SIZE, MARGIN = 14, 8  # pixels


def frame_rate(env: Any) -> float:
    """Returns the environment steps per second of real time, `metadata["render_fps"]`; 30 if it is not set."""
    return env.metadata.get("render_fps", 30)


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
        ValueError: `fps` is not above 0, or the environment does not support images.
        RuntimeError: OpenGL is missing, or the environment is not deterministic (see `Recording.replay`).
        OSError: the file cannot be written.
    """
    check_encoder()
    envs = copy.deepcopy(recording.env), copy.deepcopy(recording.env)
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


def frames(recording: "Recording", task: int, envs: Tuple[Any, Any]) -> Iterator[np.ndarray]:
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
    sides = [_panels(recording, step, task, env) for step, env in zip(steps, envs, strict=True)]
    shown: list[Any] = [None, None]
    for panels in itertools.zip_longest(*sides):
        shown = [last if panel is None else panel for panel, last in zip(panels, shown, strict=True)]
        yield side_by_side(*shown)


def _panels(recording: "Recording", step: int, task: int, env: Any) -> Iterator[np.ndarray]:
    """Renders the first path of a task after `step` adaptation steps, with captions."""
    rewards = recording.rounds[step][task][0]["rewards"]
    returns = np.concatenate(([0.0], np.cumsum(rewards)))
    head = f"task {task + 1}: {describe_task(recording.tasks[task], 24, env)}, {step_label(step)}"
    for t, moved in enumerate(recording.replay(step, task, env=env)):
        yield _captioned(moved.render(), [head, f"step {t} of {len(rewards)}, return so far {returns[t]:.2f}"])


def _captioned(picture: np.ndarray, lines: Sequence[str]) -> np.ndarray:
    """Adds lines of text above a frame."""
    from matplotlib.font_manager import findfont
    from PIL import Image, ImageDraw, ImageFont

    caption = Image.new("RGB", (picture.shape[1], CAPTION_HEIGHT), "white")
    draw, font = ImageDraw.Draw(caption), ImageFont.truetype(findfont("DejaVu Sans"), FONT_SIZE)
    for number, line in enumerate(lines):
        place = (MARGIN, MARGIN + number * (CAPTION_HEIGHT - MARGIN) // len(lines))
        draw.text(place, line, fill="black" if number == 0 else "#555555", font=font)
    return np.concatenate((np.asarray(caption), picture))


def side_by_side(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Joins two frames side by side; pads height and width to even numbers, which video encoders require."""
    gap = np.full((len(left), GAP, 3), 255, np.uint8)
    joined = np.concatenate((left, gap, right), axis=1)
    return np.pad(joined, ((0, joined.shape[0] % 2), (0, joined.shape[1] % 2), (0, 0)), mode="edge")
