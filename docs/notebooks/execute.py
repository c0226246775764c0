"""Runs the notebooks in this folder and saves them with their outputs.

    python docs/notebooks/execute.py                         # all of them
    python docs/notebooks/execute.py train_and_adapt.ipynb
"""
import sys
import tempfile
from pathlib import Path
from typing import Optional, Sequence

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
TIMEOUT = 300  # seconds per cell


def execute(path: Path) -> nbformat.NotebookNode:
    """Runs a notebook in a temporary folder and returns it with the new outputs; raises if a cell fails."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=TIMEOUT, resources={"metadata": {"path": folder}},
                       coalesce_streams=True).execute()  # keeps only the last state of a progress bar
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times differ in every run
    return notebook


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs and saves the notebooks named on the command line."""
    names = sys.argv[1:] if argv is None else argv
    for path in [FOLDER / name for name in names] or sorted(FOLDER.glob("*.ipynb")):
        notebook = execute(path)
        nbformat.write(notebook, path)
        print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
