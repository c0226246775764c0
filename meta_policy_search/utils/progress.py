"""Progress bars on terminals and in notebooks."""
import importlib.util
import sys
from typing import Any

import tqdm

from meta_policy_search.utils.log_outputs import in_notebook


def progress_bar(is_wanted: bool, total: int, desc: str, unit: str, **options: Any) -> tqdm.tqdm:
    """Returns a bar of `tqdm`, to be used in a `with` block; nothing is drawn unless `is_wanted`.

    It is drawn in a notebook (as a widget if ipywidgets is installed) and on a terminal (standard error), but not into
    files and pipes, so that log files hold no control characters.
    """
    is_seen = is_wanted and (in_notebook() or sys.stderr.isatty())
    if is_seen and in_notebook() and importlib.util.find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm as base
    else:
        base = tqdm.tqdm
    return base(total=total, desc=desc, unit=unit, disable=not is_seen, dynamic_ncols=True, **options)
