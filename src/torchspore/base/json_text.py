"""The one reader of JSON that people or other programs write: what a text says twice, or can't mean, is named and never guessed at."""
from __future__ import annotations

import json
from typing import Any

from torchspore.base.text import short


def parse(text: str | bytes) -> Any:
    """What a JSON text holds. Raises ValueError, which names a member that stands twice in one object, for all that is no JSON."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the member {next(short(name) for name in names if names.count(name) > 1)} stands twice in one object")
    return found

