"""MP4 videos and animated GIFs; needs the extra `video`."""
import contextlib
from typing import Any, Callable, Iterator, List, Tuple

import numpy as np

from meta_policy_search.utils.checks import check_positive
from meta_policy_search.utils.files import PathLike, atomic_path

_GIF_FPS, _GIF_WIDTH = 10.0, 640  # pictures per second, pixels


def check_encoder() -> None:
    """Raises `ImportError`, with the command that installs the encoder, if it is missing."""
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError as error:
        raise ImportError('videos need imageio-ffmpeg: run `pip install "meta_policy_search[video]"`') from error


@contextlib.contextmanager
def mp4_file(path: PathLike, fps: float) -> Iterator[Callable[[np.ndarray], None]]:
    """Opens an MP4 file (H.264) that replaces `path` when the `with` block ends without an error.

    Args:
        path: file to write.
        fps: pictures per second, above 0.

    Returns:
        A function that appends a picture, uint8 `[H, W, 3]` (red, green, blue). All pictures have the same even height
        and width, and there is at least one.

    Raises:
        ValueError: a wrong picture, or none.
        OSError: the file cannot be written, for example because the disk is full.
    """
    check_encoder()
    fps = check_positive("fps", fps)
    with atomic_path(path) as temporary:
        open(temporary, "wb").close()  # its errors are clearer than the encoder's
        shape, count, encoder = (0, 0, 3), 0, None

        def append(picture: np.ndarray) -> None:
            nonlocal shape, count, encoder
            if encoder is None:
                encoder, shape = _start_encoder(temporary, picture.shape, fps), picture.shape
            if picture.shape != shape or picture.dtype != np.uint8:
                raise ValueError(f"picture: expected uint8 {shape}, got {picture.dtype} {picture.shape}")
            encoder.send(np.ascontiguousarray(picture))
            count += 1

        try:
            yield append
        finally:
            if encoder is not None:
                encoder.close()
        _check_complete(temporary, count)


def _start_encoder(path: str, shape: Tuple[int, ...], fps: float) -> Any:
    import imageio_ffmpeg

    if len(shape) != 3 or shape[2] != 3 or shape[0] % 2 or shape[1] % 2:
        raise ValueError(f"picture: expected shape (H, W, 3) with even H and W, got {shape}")
    encoder = imageio_ffmpeg.write_frames(
        path, (shape[1], shape[0]), fps=fps, codec="libx264", macro_block_size=2, quality=7, ffmpeg_log_level="error",
        output_params=["-f", "mp4", "-movflags", "+faststart"])
    encoder.send(None)
    return encoder


def _check_complete(path: str, count: int) -> None:
    """Raises an error unless there were pictures and all of them are in the file."""
    import imageio_ffmpeg

    if not count:
        raise ValueError("picture: expected at least one for a video, got none")
    try:
        found, _ = imageio_ffmpeg.count_frames_and_secs(path)
    except RuntimeError:  # the file is unreadable
        found = 0
    if found != count:
        raise OSError(f"could not write the video: of {count} pictures, {found} are in {path} (a full disk?)")


@contextlib.contextmanager
def gif_file(path: PathLike, fps: float) -> Iterator[Callable[[np.ndarray], None]]:
    """As `mp4_file`, an animated GIF: at most 640 pixels wide, about ten pictures per second, 64 colors.

    A block that appends no picture writes no file.
    """
    from PIL import Image

    every, count = max(1, round(check_positive("fps", fps) / _GIF_FPS)), 0
    images: List[Any] = []

    def append(picture: np.ndarray) -> None:
        nonlocal count
        if count % every == 0:
            image = Image.fromarray(picture)
            image.thumbnail((_GIF_WIDTH, _GIF_WIDTH))
            images.append(image.quantize(64))
        count += 1

    yield append
    if images:
        with atomic_path(path) as temporary:
            images[0].save(temporary, format="GIF", save_all=True, append_images=images[1:], loop=0,
                           duration=1000.0 * every / fps)
