"""The example at the top of the README, with smaller sizes."""
import ast
import re
from pathlib import Path

from meta_policy_search.plotting import read_progress

ROOT = Path(__file__).resolve().parent.parent
SMALLER = {"=20": "=2", "max_path_length=100": "max_path_length=10", "(64, 64)": "(8,)", "n_itr=50": "n_itr=2"}


def the_example():
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## In ten lines\n")[1]
    return re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)[1]


def test_the_example_takes_ten_lines():
    statements = [node for node in ast.parse(the_example()).body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    assert len(statements) <= 10
    assert all(node.lineno == node.end_lineno for node in statements)


def test_the_example_trains(tmp_path, monkeypatch, capsys):
    """Given the example with smaller sizes, then it prints a line per iteration and leaves a run folder."""
    example = the_example()
    for text, smaller in SMALLER.items():
        assert text in example
        example = example.replace(text, smaller)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {"__name__": "notebook"})
    assert len(re.findall(r"^itr ", capsys.readouterr().out, flags=re.MULTILINE)) == 2
    (folder,) = (tmp_path / "data").iterdir()
    assert list(read_progress(folder)["Itr"]) == [0, 1]
