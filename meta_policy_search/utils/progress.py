"""Progress bars on terminals and in notebooks, and text output above them."""
import contextlib
import html
import os
import sys
from typing import TYPE_CHECKING, Any, Container, Iterator, Optional, Sequence, TypeVar

if TYPE_CHECKING:  # worker processes show no bars
    import tqdm


_Class = TypeVar("_Class")
_live: Optional["tqdm.tqdm"] = None  # the current bar, if it is shown in a notebook


@contextlib.contextmanager
def progress_bar(is_wanted: bool, total: int, desc: str, unit: str, **options: Any) -> Iterator["tqdm.tqdm"]:
    """Shows a `tqdm` progress bar in a `with` block.

    The bar is shown in a notebook, or if standard error is a terminal. It is not written to files or pipes, because log
    files should not contain control characters. In a notebook, the bar ends with the text of `print_row`.

    Args:
        is_wanted: whether to show the bar.
        total: number of units.
        desc: label of the bar.
        unit: name of a unit.
        **options: further arguments of `tqdm`.
    """
    import tqdm

    global _live
    outside, is_live = _live, is_wanted and in_notebook()
    is_shown = is_live or is_wanted and sys.stderr is not None and sys.stderr.isatty()
    with tqdm.tqdm(total=total, desc=desc, unit=unit, disable=not is_shown, dynamic_ncols=not is_live,
                   file=sys.stdout if is_live else None, **options) as bar:
        _live = bar if is_live else None
        try:
            yield bar
        finally:
            _live = outside


def print_row(text: str) -> None:
    """Prints the line of a row, or shows it in the progress bar if there is one in a notebook."""
    if _live is None:
        print_line(text)
    else:
        _live.set_postfix_str(text)


def printable(text: str) -> str:
    """Returns a text with control characters escaped: text from files could otherwise control the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def print_line(text: str) -> None:
    """Prints text above the progress bars; control characters, and others that a terminal cannot show, are escaped.

    If standard output is closed or full, nothing is printed from then on.
    """
    tqdm = sys.modules.get("tqdm")
    show: Any = print if tqdm is None or sys.stdout is None or not tqdm.tqdm._instances else tqdm.tqdm.write
    try:
        show(printable(text))
        print(end="", flush=True)
    except UnicodeEncodeError:
        print_line(text.encode("ascii", "backslashreplace").decode())
    except (OSError, ValueError):  # a full disk, a pipe without a reader, a closed file
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends


def in_notebook() -> bool:
    """Returns whether this process is a notebook kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def shown_as_text(cls: type[_Class]) -> type[_Class]:
    """Class decorator: consoles and notebooks show the text of an object, `str(self)`, such as a table."""
    cls.__repr__ = lambda self: str(self)  # type: ignore[method-assign]
    setattr(cls, "_repr_html_", lambda self: f"<pre>{html.escape(str(self))}</pre>")  # noqa: B010 - for mypy
    return cls


def text_table(rows: Sequence[Sequence[str]], right: Container[int]) -> str:
    """Formats rows of cells as a text table.

    Args:
        rows: the cells of each row; the first row is the header.
        right: indices of the columns to align right; other columns are aligned left.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) if i in right else cell.ljust(width)
                               for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
                     for row in rows)
