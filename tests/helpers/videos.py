"""Reads videos. Importing this module skips the tests of a module, or one test, without the extra `video`."""
import numpy as np
import pytest

ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="needs the extra video")


def read_video(path):
    """Returns the output of the command that reads a video, and its frames, int `[n, H, W, 3]`."""
    frames = ffmpeg.read_frames(str(path))
    meta = next(frames)
    width, height = meta["size"]
    return meta, np.array([np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in frames]).astype(int)
