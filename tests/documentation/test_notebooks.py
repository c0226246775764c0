"""The committed notebooks of the documentation run from beginning to end."""
import json
import os
import runpy

import nbclient
import nbformat
import pytest

from tests.helpers.documentation import DOCS, ROOT

FOLDER = DOCS / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))
LARGEST = 150_000  # bytes, including outputs and pictures


def outputs_of(notebook, kind):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
            if output.output_type == kind]


@pytest.mark.documentation
@pytest.mark.parametrize("name", NAMES)
def test_notebook_runs(name, monkeypatch):
    """No cell of a notebook fails in a separate process, including its assertions."""
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    execute = runpy.run_path(str(FOLDER / "execute.py"))["execute"]
    notebook = execute(FOLDER / name)
    assert not outputs_of(notebook, "error")
    assert outputs_of(notebook, "stream")
    assert not [output.text for output in outputs_of(notebook, "stream") if output.name == "stderr"]


TRAINING = """
import meta_policy_search as mps
TINY = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 5, "hidden_sizes": (4,)}
class Corner(mps.MetaPointEnvCorner):
    pass
class Mine(mps.VPGMAML):
    pass
class Policy(mps.MetaGaussianMLPPolicy):
    pass
mps.register_algorithm("mine", Mine)
def press_stop(trainer, row):
    if trainer.itr == 2:
        raise KeyboardInterrupt
run = mps.train(Corner(), "mine", 3, callbacks=[press_stop], policy=Policy, **TINY)
"""


@pytest.mark.thorough
def test_training_in_a_notebook_has_one_output_besides_the_messages(tmp_path):
    """Given a cell that is run twice, the second time with new classes of the same names, and the stop button."""
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})", TRAINING, TRAINING, "run.resume(4);")])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert {output.name for output in outputs_of(notebook, "stream")} == {"stdout"}
    assert not any("itr " in output.text for output in outputs_of(notebook, "stream"))
    assert sum("To resume after iteration 1: " in output.text for output in outputs_of(notebook, "stream")) == 2
    bars = [output.data["text/plain"] for output in outputs_of(notebook, "display_data")]
    assert [(bar.partition("|")[0], bar.partition("\n")[2][:10]) for bar in bars] == [
        ("training:  67%", "itr    1 |"), ("training:  67%", "itr    1 |"), ("training: 100%", "itr    3 |")]


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_small_and_committed_with_outputs(name):
    path = FOLDER / name
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size < LARGEST
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"] == list(
        range(1, 1 + sum(cell.cell_type == "code" for cell in notebook.cells)))
    assert not outputs_of(notebook, "error") and any("image/png" in output.data
                                                     for output in outputs_of(notebook, "display_data"))
    assert str(ROOT) not in json.dumps(notebook)


def test_each_notebook_is_in_the_documentation_and_in_the_notebook_readme():
    index, readme = ((FOLDER / name).read_text() for name in ("index.rst", "README.md"))
    assert NAMES
    for name in NAMES:
        assert f"   {name.removesuffix('.ipynb')}\n" in index and f"`{name}`" in readme
