"""Tests the page about adaptation with and without gradients: its code runs, and its flags exist."""
import re
import textwrap
from pathlib import Path

import pytest

from meta_policy_search.cli import evaluate

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "baselines_without_gradients.rst"
SHORTER = [("max_path_length=100", "max_path_length=5"), ("tasks=40", "tasks=3"),
           ("hidden_sizes=(64, 64)", "hidden_sizes=(4,)"), ("MetaGaussianMLPPolicy(20,", "MetaGaussianMLPPolicy(2,"),
           ("meta_batch_size=20", "meta_batch_size=2")]


@pytest.mark.thorough
def test_page_code_runs(tmp_path, monkeypatch, capsys):
    """With fewer and shorter paths, comparison and manual adaptation run."""
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    for long, short in SHORTER:
        assert long in text, long
        text = text.replace(long, short)
    blocks = re.findall(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text, flags=re.MULTILINE)
    script, by_hand = map(textwrap.dedent, blocks)
    names = {}
    exec(script, names)
    rows = capsys.readouterr().out.splitlines()
    firsts = [row.split()[0] for row in rows if row]
    assert firsts.index("gradient") < firsts.index("CEM"), rows
    assert (tmp_path / "data" / "comparison" / "return_over_timesteps.png").exists()
    exec(by_hand, names)
    assert 1 <= len(names["path"]["rewards"]) <= 5


def test_page_lists_the_flags_of_the_script(capsys):
    parser = evaluate.make_parser()
    known = {option for action in parser._actions for option in action.option_strings}
    flags = set(re.findall(r"``(--\w+)``", PAGE.read_text()))
    assert {"--compare", "--compare_steps", "--search_std"} <= flags <= known
