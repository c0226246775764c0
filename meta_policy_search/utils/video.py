"""Writes MP4 videos; requires the extra `video`."""
import contextlib
from typing import Any, Callable, Iterator, Tuple

import numpy as np

from meta_policy_search.utils.checks import check_positive
from meta_policy_search.utils.files import PathLike, atomic_path, file_format, output_path


def check_encoder() -> Any:
    """Returns the module of the video encoder; raises `ImportError` with the command that installs it."""
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise ImportError("videos require imageio-ffmpeg: run `pip install imageio-ffmpeg pillow`") from error
    return imageio_ffmpeg


@contextlib.contextmanager
def mp4_file(path: PathLike, fps: float) -> Iterator[Callable[[np.ndarray], None]]:
    """Opens an MP4 file (H.264) that replaces `path` when the `with` block ends without an error.

    Args:
        path: file to write; its name ends with `.mp4`.
        fps: frames per second, above 0.

    Returns:
        A function that appends a frame, uint8 `[H, W, 3]` (red, green, blue). All frames must have the
        same size.

    Raises:
        ImportError: the encoder is not installed.
        ValueError: the name has another ending, a frame has a wrong shape or data type, or no frame was appended.
        OSError: the file cannot be written.
    """
    ffmpeg = check_encoder()
    fps = check_positive("fps", fps)
    file_format(path, ["mp4"])
    with atomic_path(output_path(path)) as temporary:
        open(temporary, "wb").close()  # fails with a clearer error than the encoder
        shape, encoder = (0, 0, 3), None

        def append(picture: np.ndarray) -> None:
            nonlocal shape, encoder
            if encoder is None:
                encoder, shape = _start_encoder(ffmpeg, temporary, picture.shape, fps), picture.shape
            if picture.shape != shape or picture.dtype != np.uint8:
                raise ValueError(f"picture: expected uint8 {shape}, got {picture.dtype} {picture.shape}")
            encoder.send(np.pad(picture, ((0, shape[0] % 2), (0, shape[1] % 2), (0, 0)), mode="edge"))

        try:
            yield append
        finally:
            if encoder is not None:
                encoder.close()
        if encoder is None:
            raise ValueError("picture: expected at least one frame, got none")
        try:
            ffmpeg.count_frames_and_secs(temporary)
        except RuntimeError as error:  # the encoder does not report errors when it is closed
            raise OSError("the video is incomplete; is the disk full, or fps too low?") from error


def _start_encoder(ffmpeg: Any, path: str, shape: Tuple[int, ...], fps: float) -> Any:
    if len(shape) != 3 or shape[2] != 3:
        raise ValueError(f"picture: expected shape (H, W, 3), got {shape}")
    size = (shape[1] + shape[1] % 2, shape[0] + shape[0] % 2)  # the encoder requires even numbers
    encoder = ffmpeg.write_frames(
        path, size, fps=fps, codec="libx264", macro_block_size=2, quality=7, ffmpeg_log_level="error",
        output_params=["-f", "mp4", "-movflags", "+faststart"])
    encoder.send(None)
    return encoder
