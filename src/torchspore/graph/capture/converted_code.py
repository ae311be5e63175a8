"""Which of the user's functions a code object was made of, where converted source runs in its place."""
from __future__ import annotations

from types import CodeType

SOURCES: dict[CodeType, CodeType] = {}
"""Every code object that the converter made, which needs no conversion, and what it was made of."""


def original(code: CodeType) -> CodeType:
    """The code of the user's function that `code` was made of; `code` itself where it was not made here."""
    return SOURCES.get(code, code)
