"""Adapts a pretrained half cheetah to run forward and backward, and writes a picture and a video.

    meta-policy-search demo

The policy was trained with ProMP. It does not observe the direction, and adapts to it by one gradient step on 20 paths.
The picture shows the position of the robot over time, before and after adaptation: thin lines are paths, thick lines
their means with 95% intervals. The video requires the extra video (pip install imageio-ffmpeg pillow) and OpenGL;
without them, the command writes only the picture.
"""
import argparse
import os
from typing import Any

import numpy as np

import meta_policy_search as mps
from meta_policy_search.cli.flags import add_output_flags, check_is_new
from meta_policy_search.plotting import plot_comparison
from meta_policy_search.utils.files import make_folder
from meta_policy_search.utils.progress import print_line

POLICY, TASKS = "half_cheetah_direction/promp_fast", {"run forward": 1.0, "run backward": -1.0}
STEPS = ("before adaptation", "after one gradient step")
OUTPUT, PICTURE, VIDEO = "demo", "adaptation.png", "adaptation.mp4"
MAX_PATH_LENGTH = 60  # of a path, 3 s


def run(arguments: argparse.Namespace) -> None:
    """Adapts the policy, prints its returns and writes the files."""
    from meta_policy_search.evaluation.recording import write_video  # imports TensorFlow

    picture, video = (os.path.join(arguments.output, name) for name in (PICTURE, VIDEO))
    check_is_new(picture, arguments.overwrite)
    make_folder("--output", arguments.output)
    evaluator = mps.load_pretrained(POLICY)
    evaluator.max_path_length = MAX_PATH_LENGTH
    recording = evaluator.record(list(TASKS.values()), num_steps=1)
    for name, returns in zip(TASKS, recording.returns, strict=True):
        print_line(f"{name}: return {returns[0]:.1f} before adaptation, {returns[1]:.1f} after one gradient step")
    panels = {f"{name}: position, m": {label: _positions(recording, i, task) for i, label in enumerate(STEPS)}
              for task, name in enumerate(TASKS)}
    plot_comparison(panels, picture, "ProMP on HalfCheetahRandDirecEnv", "time, s", is_count=False,
                    lines="paths")
    print_line(f"Picture: {picture}")
    try:
        write_video(recording, video)
        print_line(f"Video: {video}")
    except (ImportError, RuntimeError) as error:  # the extra or OpenGL is missing
        print_line(f"No video: {error}")


def _positions(recording: Any, step: int, task: int) -> Any:
    """Returns time in s and position in m along each path of a task."""
    direction, dt = recording.tasks[task], recording.env.unwrapped.dt
    moved = [direction * dt * np.cumsum(path["env_infos"]["reward_run"]) for path in recording.rounds[step][task]]
    return [(dt * np.arange(1, len(position) + 1), position) for position in moved]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of the command."""
    add_output_flags(parser, "DIR", f"folder for the files (default: {OUTPUT})", "demo")
    parser.set_defaults(output=OUTPUT)
