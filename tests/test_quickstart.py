"""Runs the README example and the longer example of the quickstart with smaller sizes."""
import ast
import re
from pathlib import Path

import pytest

from meta_policy_search.plotting import read_progress
from meta_policy_search.utils import logger
from tests.test_documented_code import blocks_of

ROOT = Path(__file__).resolve().parent.parent
SMALLER = {"n_itr=50": "n_itr=2, meta_batch_size=2, rollouts_per_meta_task=2, max_path_length=9, hidden_sizes=(8,)",
           "tasks=40": "tasks=2"}
BY_HAND = {"=20": "=2", "max_path_length=100": "max_path_length=10", "(64, 64)": "(8,)", "n_itr=50": "n_itr=2"}


def the_example():
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Quick start\n")[1]
    return re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)[1]


def run_smaller(example, replacements, folder, monkeypatch, capsys):
    for text, smaller in replacements.items():
        assert text in example
        example = example.replace(text, smaller)
    monkeypatch.chdir(folder)
    exec(compile(example, "README.md", "exec"), {"__name__": "notebook"})
    said = capsys.readouterr().out
    assert len(re.findall(r"^itr ", said, flags=re.MULTILINE)) == 2
    (run_folder,) = [path.parent for path in folder.rglob("data/**/progress.csv")]
    assert list(read_progress(run_folder)["Itr"]) == [0, 1]
    return said, run_folder


def test_readme_example_has_at_most_five_lines():
    statements = ast.parse(the_example()).body
    assert len(statements) <= 5
    assert all(node.lineno == node.end_lineno for node in statements)


def test_readme_example_trains_evaluates_adapts_and_acts(tmp_path, monkeypatch, capsys):
    said, folder = run_smaller(the_example(), SMALLER, tmp_path, monkeypatch, capsys)
    assert f"written to {folder.relative_to(tmp_path)}" in said and "gain" in said
    assert {"params.json", "params.pkl"} <= {path.name for path in folder.iterdir()}


@pytest.mark.thorough
def test_longer_example_trains(tmp_path, monkeypatch, capsys):
    by_hand = blocks_of("quickstart.rst")[-1]
    with logger.scoped_configure(tmp_path / "other"):  # the example configures the logger again
        _, folder = run_smaller(by_hand, BY_HAND, tmp_path, monkeypatch, capsys)
    assert (folder / "params.json").exists()
