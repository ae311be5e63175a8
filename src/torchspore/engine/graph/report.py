"""Why a Cell or function is captured again."""
from __future__ import annotations

from typing import Any


def why(entry: Any, table: Any) -> str:
    """What is different from the graphs that a table has; empty where it has none."""
    if entry.graphs:
        names = sorted({f"{read.name!r}" for read in entry.graphs[0].changed()})
        return f"{', '.join(names)} changed" if names else "a variable or a Parameter changed"
    others = [other for other in table.values() if other is not entry and other.graphs]
    return _difference(entry.form, others[-1].form) if others else ""


def _difference(form: Any, other: Any) -> str:
    """What differs between two forms of a call: (function, arguments, options, settings, era, whether it is recorded)."""
    _, given, options, settings, era, recorded = form
    if other[1] != given:
        return "the shapes, dtypes or values of the arguments are others"
    changed = [name for (name, value), (_, before) in zip(options, other[2]) if value != before]
    if changed:
        return f"the option {changed[0]} changed"
    if other[3] != settings:
        return "the compile options changed"
    if other[4] != era:
        return "how Cells are called changed (hooks, to_float)"
    return "a gradient is taken around it" if recorded and not other[5] else "a number among the arguments is another one"
