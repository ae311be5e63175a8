"""Comments that fix conditions in graphs: `if x > 0:  # @jit.cond: True`."""
from __future__ import annotations

import functools
import linecache
import re
from types import CodeType

COMMENT = re.compile(r"#\s*@jit\.cond:\s*(True|False)\b")


def has_comment(code: CodeType) -> bool:
    """Return whether the source of a function has such a comment: a graph of it is captured from converted source."""
    lines = _lines_with_comments(code.co_filename)
    if not lines:
        return False
    last = max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno)
    return any(code.co_firstlineno <= line <= last for line in lines)


@functools.lru_cache(4096)
def _lines_with_comments(path: str) -> tuple[int, ...]:
    return tuple(number for number, line in enumerate(linecache.getlines(path), 1) if COMMENT.search(line))
