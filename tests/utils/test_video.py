"""Tests MP4 files; `samplers/test_rollout.py` tests the order of frames, `cli/test_render.py` codec and overwriting."""
import numpy as np
import pytest

from meta_policy_search.utils.video import mp4_file
from tests.helpers.videos import read_video


@pytest.mark.parametrize("pictures, message", [
    ([], "picture: expected at least one frame, got none"),
    ([np.zeros((4, 4), np.uint8)], r"picture: expected shape \(H, W, 3\), got \(4, 4\)"),
    ([np.zeros((4, 4, 3))], r"picture: expected uint8 \(4, 4, 3\), got float64 \(4, 4, 3\)"),
    ([np.zeros((4, 4, 3), np.uint8), np.zeros((4, 6, 3), np.uint8)],
     r"picture: expected uint8 \(4, 4, 3\), got uint8 \(4, 6, 3\)"),
])
def test_invalid_frames_keep_the_earlier_video(pictures, message, tmp_path):
    (tmp_path / "a.mp4").write_text("an earlier one")
    with pytest.raises(ValueError, match=message), mp4_file(tmp_path / "a.mp4", fps=10) as append:
        for picture in pictures:
            append(picture)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.mp4", "an earlier one")]


def test_frames_are_padded_to_even_sizes(tmp_path):
    with mp4_file(tmp_path / "a.mp4", fps=5) as append:
        append(np.full((31, 47, 3), 200, np.uint8))
    meta, shown = read_video(tmp_path / "a.mp4")
    assert meta["size"] == (48, 32)
    np.testing.assert_allclose(shown, 200, atol=8)


def test_incomplete_video_keeps_the_earlier_one(tmp_path):
    """The encoder does not report that it could not write a readable file, as with a full disk."""
    (tmp_path / "a.mp4").write_text("an earlier one")
    with pytest.raises(OSError, match="the video is incomplete"), mp4_file(tmp_path / "a.mp4", fps=1e-9) as append:
        append(np.zeros((4, 4, 3), np.uint8))
    assert (tmp_path / "a.mp4").read_text() == "an earlier one"


def test_interruption_leaves_no_file(tmp_path):
    with pytest.raises(KeyboardInterrupt), mp4_file(tmp_path / "a.mp4", fps=10) as append:
        append(np.zeros((4, 4, 3), np.uint8))
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_unwritable_path_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"), mp4_file(tmp_path / "file" / "a.mp4", fps=10):
        pass
    with pytest.raises(ValueError, match="fps: expected a finite number above 0, got 0"), mp4_file(tmp_path / "a", 0):
        pass
    with pytest.raises(ValueError, match=r"path: expected a name that ends with .mp4, got '.*a.gif'"), mp4_file(
            tmp_path / "a.gif", 10):
        pass
