"""The Python code of the documentation."""
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"


def blocks_of(page, smaller=()):
    """Returns the blocks of Python code of a page.

    Args:
        page: path below `docs`.
        smaller: pairs of a text, which the blocks contain, and its replacement.
    """
    pattern = r"^\.\. code-block:: python\n(?:   :[^\n]*\n)*\n((?:   .*\n|\n)+)"
    text = (DOCS / page).read_text(encoding="utf-8") + "\n"
    blocks = [textwrap.dedent(block) for block in re.findall(pattern, text, flags=re.MULTILINE)]
    for long, short in smaller:
        assert any(long in block for block in blocks), long
        blocks = [block.replace(long, short) for block in blocks]
    return blocks
