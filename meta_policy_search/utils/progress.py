"""Progress bars on terminals and in notebooks, and lines of text above them."""
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # worker processes show no bars
    import tqdm


def progress_bar(is_wanted: bool, total: int, desc: str, unit: str, **options: Any) -> "tqdm.tqdm":
    """Returns a `tqdm` bar for a `with` block; the bar is hidden unless `is_wanted`.

    The bar is drawn in a notebook and on a terminal (standard error), but not into files and pipes, so that log files
    contain no control characters.
    """
    import tqdm

    is_shown = is_wanted and (in_notebook() or sys.stderr.isatty())
    return tqdm.tqdm(total=total, desc=desc, unit=unit, disable=not is_shown, dynamic_ncols=True, **options)


def print_line(text: str) -> None:
    """Prints text above the progress bars; characters that the terminal does not support become their codes.

    If standard output is closed or full, nothing is printed from then on.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # a replaced `sys.stdout` may have none
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
    """Returns whether the process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config
