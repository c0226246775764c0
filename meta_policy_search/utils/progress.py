"""Progress bars on terminals and in notebooks, and text output above them."""
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, Container, Iterator, Optional, Sequence

if TYPE_CHECKING:  # worker processes show no bars
    import tqdm


class _NotebookDisplay:
    """File of a `tqdm` bar in a notebook: one output, updated in place, with the bar and below it the last row."""

    encoding = "utf-8"  # tqdm then draws the bar with blocks

    def __init__(self) -> None:
        self.row = ""
        self._handle: Any = None

    def write(self, text: str) -> None:
        from IPython.display import display

        shown = {"text/plain": f"{text.strip()}\n{self.row}".strip()}
        if text.strip() and self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        elif text.strip():
            self._handle.update(shown, raw=True)

    def flush(self) -> None:
        """Does nothing: `write` shows its text at once."""


_live: Optional[_NotebookDisplay] = None  # display of the current bar, if it is shown in a notebook


@contextlib.contextmanager
def progress_bar(is_wanted: bool, total: int, desc: str, unit: str, **options: Any) -> Iterator["tqdm.tqdm"]:
    """Shows a `tqdm` progress bar in a `with` block.

    The bar is shown in a notebook, or if standard error is a terminal. It is not written to files or pipes, because log
    files should not contain control characters. In a notebook, the text of `print_row` is shown below the bar.

    Args:
        is_wanted: whether to show the bar.
        total: number of units.
        desc: label of the bar.
        unit: name of a unit.
        **options: further arguments of `tqdm`.
    """
    import tqdm

    global _live
    outside, _live = _live, _NotebookDisplay() if is_wanted and in_notebook() else None
    try:
        is_shown = _live is not None or is_wanted and sys.stderr.isatty()
        with tqdm.tqdm(total=total, desc=desc, unit=unit, disable=not is_shown, dynamic_ncols=_live is None,
                       file=_live, position=None if _live is None else 0, **options) as bar:
            yield bar
    finally:
        _live = outside


def print_row(text: str) -> None:
    """Prints the line of a row, or shows it below the progress bar if there is one in a notebook."""
    if _live is None:
        print_line(text)
    else:
        _live.row = text


def print_line(text: str) -> None:
    """Prints text above the progress bars; characters that the terminal does not support are escaped.

    If standard output is closed or full, nothing is printed from then on.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # replacements of `sys.stdout` may have no encoding
    text = text.encode(encoding, "backslashreplace").decode(encoding)
    tqdm = sys.modules.get("tqdm")
    try:
        if tqdm is not None and tqdm.tqdm._instances and sys.stdout is not None:
            tqdm.tqdm.write(text)
        else:
            print(text, flush=True)
    except (OSError, ValueError):  # a full disk, a pipe without a reader, a closed file
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends


def in_notebook() -> bool:
    """Returns whether this process is a notebook kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def text_table(rows: Sequence[Sequence[str]], right: Container[int]) -> str:
    """Formats rows of cells as a text table.

    Args:
        rows: the cells of each row; the first row is the header.
        right: indices of the columns to align right; other columns are aligned left.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) if i in right else cell.ljust(width)
                               for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
                     for row in rows)
