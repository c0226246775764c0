"""Renders a video of the policy of a run in some tasks: before and after adaptation, side by side.

    python -m meta_policy_search render RUN_FOLDER
    python -m meta_policy_search render RUN_FOLDER --tasks "[-1.0, 1.0]" --num_steps 2 --max_path_length 200

The command adapts the policy of a snapshot to tasks that were not used in training, as the command evaluate does, and
writes RUN_FOLDER/video.mp4. The video shows the tasks sequentially: the first path before adaptation on the left, the
first path after the last adaptation step on the right. The same seed gives the same video.

Videos require the extra video (pip install -e ".[video]"); videos of robots also require OpenGL. Loading a snapshot
executes code that it contains. Only use runs that you trust.
"""
import argparse
import copy
import itertools
import os
from typing import TYPE_CHECKING, Any, Iterator, Optional, Sequence, Tuple

import numpy as np

import meta_policy_search as mps
from meta_policy_search.cli import evaluate
from meta_policy_search.cli.flags import Parser, add_output_flags, check_is_new
from meta_policy_search.cli.training import PROG, run_tool
from meta_policy_search.envs.gym_compat import reset_env
from meta_policy_search.plotting import describe_task, step_label
from meta_policy_search.utils.video import check_encoder, mp4_file

if TYPE_CHECKING:
    from meta_policy_search.evaluation import Recording

CAPTION_HEIGHT, GAP = 56, 16  # pixels
FONT_SIZE, MARGIN = 14, 8  # pixels
VIDEO = "video.mp4"


def render(arguments: argparse.Namespace) -> None:
    """Adapts the policy of a run and writes the video."""
    output = arguments.output or os.path.join(arguments.run_folder, VIDEO)
    check_is_new(output, arguments.overwrite)
    check_encoder()
    evaluator = mps.load_evaluator(arguments.run_folder, arguments.snapshot, arguments.rollouts,
                                        arguments.max_path_length, render_mode="rgb_array")
    envs = copy.deepcopy(evaluator.env), copy.deepcopy(evaluator.env)
    _check_pictures(envs[0])
    recording = evaluate.record_paths(evaluator, arguments)
    fps = envs[0].metadata["render_fps"] if arguments.fps is None else arguments.fps
    count = 0
    with mp4_file(output, fps) as append:
        for task in range(len(recording.tasks)):
            for frame in frames(recording, task, envs):
                append(frame)
                count += 1
    for env in envs:
        env.close()
    print(f"Video: {output}, {count} frames, {count / fps:.1f} s")


def _check_pictures(env: Any) -> None:
    """Raises `ValueError` with the reason if the environment cannot be rendered."""
    reset_env(env)
    try:
        env.render()
    except RuntimeError as error:  # OpenGL is missing; the message names the package to install
        raise ValueError(str(error)) from error


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


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Writes the video; returns the exit status."""
    return run_tool(make_parser(), render, argv)


def make_parser() -> Parser:
    """Returns the parser of the flags."""
    parser = Parser(f"{PROG} render", __doc__)
    parser.add_argument("run_folder", metavar="RUN_FOLDER",
                        help="folder of a run of a run")
    evaluate.add_recording_flags(parser, num_tasks=3)
    parser.add_argument("--fps", type=float, metavar="FLOAT",
                        help="frames (environment steps) per second (default: real time)")
    add_output_flags(parser, "FILE", f"MP4 file to write (default: RUN_FOLDER/{VIDEO})", "video")
    return parser

