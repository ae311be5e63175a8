"""The only reader of JSON from people or other programs: duplicate or impossible members are reported, never guessed."""
from __future__ import annotations

import json
from typing import Any

from torchspore.base.text import short


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raise ValueError if it is not JSON or if an object has a duplicate member, which the text names."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the member {next(short(name) for name in names if names.count(name) > 1)} appears twice in one object")
    return members

