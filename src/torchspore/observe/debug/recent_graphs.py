"""The last graphs that were compiled, as text: their stages and the order in which their operators run."""
from __future__ import annotations

import json
from typing import Any

from torchspore.graph.save_graphs import session
from torchspore.graph.save_graphs.compilation_record import Compilation
from torchspore.observe.debug import black_box as boxes

_GRAPHS, _UNFINISHED, _BYTES = 8, 2, 1 << 24
"""So many graphs are kept, of those that could not be finished so many, and so many bytes of all."""
_last: list[tuple[bool, bytes]] = []
"""Each with whether it was finished."""


def keep(is_on: bool) -> None:
    """Store the graphs that are compiled from now on, or stop."""
    session.keeper = _keep if is_on else None
    if not is_on:
        _last.clear()


def last() -> list[dict[str, Any]]:
    """The graphs, the oldest first: `name`, `line`, `stages` (name and text of each), `final`, `order`."""
    return [json.loads(line) for _, line in _last]


def _keep(compilation: Compilation, texts: list[tuple[str, str]]) -> None:
    shown = [(stem, text) for stem, text in texts if not stem.startswith("graph_build")]
    final = next((text for stem, text in reversed(texts) if stem.startswith("graph_build")), "")
    calls = compilation.stages[-1].snapshot.calls if compilation.stages else []
    line = json.dumps({
        "name": compilation.name, "line": compilation.line, "stages": shown, "final": final,
        "order": [(call.name, call.full_name, call.target) for call in calls],
    }).encode()
    if len(line) > _BYTES:
        return
    _last.append((bool(final), line))
    for finished, most in ((True, _GRAPHS), (False, _UNFINISHED)):
        alike = [entry for entry in _last if entry[0] == finished]
        for entry in alike[:-most]:
            _last.remove(entry)
    while sum(len(line) for _, line in _last) > _BYTES:
        _last.pop(0)
    if boxes.RECORDER.box is not None:
        boxes.RECORDER.box.write_graphs([line for _, line in _last])


