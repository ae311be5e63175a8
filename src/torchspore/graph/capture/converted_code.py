"""Maps the code of converted source to the user's function from which it was made."""
from __future__ import annotations

from types import CodeType

SOURCES: dict[CodeType, CodeType] = {}
"""Every code object that the converter created, which needs no conversion, with its original."""


def original(code: CodeType) -> CodeType:
    """Return the code of the user's function from which `code` was made; `code` itself if it was not made here."""
    return SOURCES.get(code, code)
