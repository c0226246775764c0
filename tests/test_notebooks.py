"""The notebooks of the documentation run from beginning to end, as they are committed."""
import json
import os
import runpy
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))
LARGEST = 150_000  # bytes, outputs and pictures included


def outputs_of(notebook, kind):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
            if output.output_type == kind]


@pytest.mark.documentation
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name, monkeypatch):
    """Given a notebook, when it is run in a process of its own, then no cell fails; their assertions are part of it."""
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    execute = runpy.run_path(str(FOLDER / "execute.py"))["execute"]
    notebook = execute(FOLDER / name)
    assert not outputs_of(notebook, "error")
    assert outputs_of(notebook, "stream")
    assert not [output.text for output in outputs_of(notebook, "stream") if output.name == "stderr"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_committed_with_its_outputs_and_small(name):
    path = FOLDER / name
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size < LARGEST
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"] == list(
        range(1, 1 + sum(cell.cell_type == "code" for cell in notebook.cells)))
    assert not outputs_of(notebook, "error") and any("image/png" in output.data
                                                     for output in outputs_of(notebook, "display_data"))
    assert str(ROOT) not in json.dumps(notebook)


def test_each_notebook_is_in_the_documentation_and_in_its_readme():
    index, readme = ((FOLDER / name).read_text() for name in ("index.rst", "README.md"))
    assert NAMES
    for name in NAMES:
        assert f"   {name.removesuffix('.ipynb')}\n" in index and f"`{name}`" in readme
