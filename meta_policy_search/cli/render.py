"""Renders a video of the policy of a run in some tasks: before and after adaptation, side by side.

    meta-policy-search render RUN_FOLDER
    meta-policy-search render RUN_FOLDER --tasks "[-1.0, 1.0]" --num_steps 2 --max_path_length 200

The command samples tasks with a separate seed and adapts the policy of a snapshot to them, as the command evaluate
does. It writes RUN_FOLDER/video.mp4. The video shows the tasks sequentially: the first path before adaptation on the
left, the first path after the last adaptation step on the right. The same seed gives the same video.

Videos require imageio-ffmpeg (pip install imageio-ffmpeg pillow); videos of robots also require OpenGL. Loading a
snapshot executes code that it contains. Only use runs that you trust.
"""
import argparse
import os

import meta_policy_search as mps
from meta_policy_search import run_folder
from meta_policy_search.cli import evaluate
from meta_policy_search.cli.flags import add_output_flags, check_is_new
from meta_policy_search.envs.compat import adapt_env, copy_env, frame_rate, name_of_env
from meta_policy_search.envs.mujoco_envs.engines.camera import renderer_of
from meta_policy_search.utils.checks import check_positive
from meta_policy_search.utils.files import file_format
from meta_policy_search.utils.progress import print_line
from meta_policy_search.utils.video import check_encoder

VIDEO = "video.mp4"


def run(arguments: argparse.Namespace) -> None:
    """Adapts the policy of a run and writes the video."""
    from meta_policy_search.evaluation.recording import write_video  # imports TensorFlow

    folder = run_folder.find_run(arguments.run_folder)
    output = arguments.output or os.path.join(folder, VIDEO)
    check_is_new(output, arguments.overwrite)
    file_format(output, ["mp4"])
    if arguments.fps is not None:
        check_positive("--fps", arguments.fps)
    check_encoder()
    evaluator = mps.load_evaluator(folder, arguments.snapshot, arguments.rollouts, arguments.max_path_length,
                                   render_mode="rgb_array")
    env = adapt_env(copy_env(evaluator.env))
    try:
        env.reset()
        renderer_of(env)()
    except Exception as error:  # a package or OpenGL is missing; the message names it
        raise ValueError(f"{name_of_env(env)} cannot be rendered: {error}") from error
    fps = frame_rate(env) if arguments.fps is None else arguments.fps
    env.close()
    count = write_video(evaluate.record_paths(evaluator, arguments), output, fps)
    print_line(f"Video: {output}, {count} frames, {count / fps:.1f} s")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of the command."""
    parser.add_argument("run_folder", metavar="RUN_FOLDER",
                        help="folder of a run, or a folder that contains exactly one run")
    evaluate.add_recording_flags(parser, num_tasks=3)
    parser.add_argument("--fps", type=float, metavar="FLOAT",
                        help="frames (environment steps) per second (default: real time)")
    add_output_flags(parser, "FILE", f"MP4 file to write (default: RUN_FOLDER/{VIDEO})", "video")

