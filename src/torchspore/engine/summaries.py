"""What summary operators keep for the SummaryRecord that is open; while none is, they do nothing."""
from __future__ import annotations

import threading
from typing import Any

from torchspore.engine import counters
from torchspore.engine.graph.capture import watch
from torchspore.engine.graph.refusal import Kind
from torchspore.engine.tensor import TensorBase, outside, raw, wrap

_lock = threading.Lock()
_open = 0
_kept: list[tuple[str, str, Any]] = []


def opened(by: int) -> None:
    """Counts the records that are open; graphs that were captured before hold no summaries, or too many."""
    global _open
    with _lock:
        _open += by
        counters.generation += 1
        if not _open:
            _kept.clear()


def keep(plugin: str, name: str, value: TensorBase) -> None:
    """Keeps the values of a Tensor, as they are now, until `taken` asks for them; the call goes on in Python."""
    if not _open:
        return
    watch.ends_trace("keeps a summary", Kind.OTHER)
    t = raw(value).detach().clone()
    with outside(), _lock:
        _kept.append((plugin, name, wrap(t)))


def taken() -> list[tuple[str, str, Any]]:
    """All that was kept since the last time: (plugin, name, Tensor); of one name the last one."""
    with _lock:
        found = {(plugin, name): value for plugin, name, value in _kept}
        _kept.clear()
    return [(plugin, name, value) for (plugin, name), value in found.items()]
