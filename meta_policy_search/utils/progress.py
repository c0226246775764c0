"""Progress bars on terminals and in notebooks, and text output above them."""
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # worker processes show no bars
    import tqdm


def progress_bar(is_wanted: bool, total: int, desc: str, unit: str, **options: Any) -> "tqdm.tqdm":
    """Returns a `tqdm` progress bar for a `with` block.

    The bar is shown in a notebook, or if standard error is a terminal. It is not written to files or pipes, because log
    files should not contain control characters.

    Args:
        is_wanted: whether to show the bar.
        total: number of units.
        desc: label of the bar.
        unit: name of a unit.
        **options: further arguments of `tqdm`.
    """
    import tqdm

    is_shown = is_wanted and (in_notebook() or sys.stderr.isatty())
    return tqdm.tqdm(total=total, desc=desc, unit=unit, disable=not is_shown, dynamic_ncols=True, **options)


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
