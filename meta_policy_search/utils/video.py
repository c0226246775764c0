"""MP4 videos and moving GIF pictures, encoded by the extra `video`."""
import contextlib
from typing import Any, Callable, Iterator, List

import numpy as np

from meta_policy_search.utils.checks import check_positive
from meta_policy_search.utils.files import PathLike, atomic_path

_GIF_FPS, _GIF_WIDTH = 10.0, 640  # pictures per second, pixels


def check_encoder() -> None:
    """Raises `ImportError`, with the command that installs it, where the encoder is missing."""
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError as error:
        raise ImportError('videos need imageio-ffmpeg: run `pip install "meta_policy_search[video]"`') from error


@contextlib.contextmanager
def mp4_file(path: PathLike, fps: float) -> Iterator[Callable[[np.ndarray], None]]:
    """Opens an MP4 file (H.264) that appears under its name, or replaces what was there, when the block ends.

    Args:
        path: file to write.
        fps: pictures per second, above 0.

    Returns:
        A function that appends a picture, uint8 `[H, W, 3]` (red, green and blue), all of them of the same even height
        and width; at least one has to be appended.
    """
    check_encoder()
    fps = check_positive("fps", fps)
    with atomic_path(path) as temporary:
        open(temporary, "wb").close()  # its errors are clearer than the encoder's
        encoder = _Encoder(temporary, fps)
        with contextlib.closing(encoder):
            yield encoder.append
        encoder.check()


@contextlib.contextmanager
def gif_file(path: PathLike, fps: float) -> Iterator[Callable[[np.ndarray], None]]:
    """As `mp4_file`, a moving GIF: at most 640 pixels wide, about ten pictures per second, of 64 colors.

    Where the block ends without a picture, no file is written.
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


class _Encoder:
    """Writes pictures into a file; the first one tells their size."""

    def __init__(self, path: str, fps: float) -> None:
        self._path, self._fps = path, fps
        self._shape: tuple = ()
        self._send: Any = None
        self._count = 0

    def append(self, picture: np.ndarray) -> None:
        picture = np.ascontiguousarray(picture)
        if self._send is None:
            self._start(picture)
        if picture.shape != self._shape or picture.dtype != np.uint8:
            raise ValueError(f"picture: expected uint8 {self._shape}, got {picture.dtype} {picture.shape}")
        self._send.send(picture)
        self._count += 1

    def close(self) -> None:
        if self._send is not None:
            self._send.close()

    def check(self) -> None:
        """Raises an error unless there were pictures and all of them are in the file."""
        import imageio_ffmpeg

        if not self._count:
            raise ValueError("picture: expected at least one for a video, got none")
        try:
            found, _ = imageio_ffmpeg.count_frames_and_secs(self._path)
        except RuntimeError:  # it cannot be read
            found = 0
        if found != self._count:
            raise OSError(
                f"could not write the video: of {self._count} pictures, {found} are in {self._path} (a full disk?)")

    def _start(self, picture: np.ndarray) -> None:
        import imageio_ffmpeg

        if picture.ndim != 3 or picture.shape[2] != 3 or picture.shape[0] % 2 or picture.shape[1] % 2:
            raise ValueError(f"picture: expected shape (H, W, 3) with even H and W, got {picture.shape}")
        self._shape = picture.shape
        height, width = self._shape[:2]
        self._send = imageio_ffmpeg.write_frames(
            self._path, (width, height), fps=self._fps, codec="libx264", macro_block_size=2, quality=7,
            ffmpeg_log_level="error", output_params=["-f", "mp4", "-movflags", "+faststart"])
        self._send.send(None)
