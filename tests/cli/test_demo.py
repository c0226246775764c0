"""Tests the command `demo`: a pretrained half cheetah adapts to both directions."""
import os
import re
import sys
from pathlib import Path

import pytest

from meta_policy_search.cli import demo
from meta_policy_search.cli.main import main
from tests.helpers.commands import mistake


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.thorough
def test_without_the_video_extra_demo_draws_the_adaptation_and_names_the_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert main(["demo"]) == 0
    text = capsys.readouterr().out
    returns = re.findall(r"run (\w+): return (\S+) before adaptation, (\S+) after one gradient step", text)
    assert [name for name, *_ in returns] == ["forward", "backward"]
    assert all(float(after) - float(before) > 30.0 for _, before, after in returns)
    assert Path("demo", "adaptation.png").read_bytes().startswith(b"\x89PNG")
    assert os.listdir("demo") == ["adaptation.png"]
    assert 'No video: videos require imageio-ffmpeg: run `pip install imageio-ffmpeg pillow`' in text
    assert "expected a file that does not exist, got demo/adaptation.png" in mistake(main, capsys, "demo")


@pytest.mark.thorough
def test_demo_writes_a_video(capsys, monkeypatch):
    pytest.importorskip("imageio_ffmpeg")
    monkeypatch.setattr(demo, "MAX_PATH_LENGTH", 3)
    assert main(["demo", "--output", "here"]) == 0
    assert "Video: here/adaptation.mp4" in capsys.readouterr().out and Path("here", "adaptation.mp4").exists()
