"""The queues of data that `Dataset.device_que` opens and `ops.GetNext` reads."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import list_choices, message, short

QUEUES: dict[str, Any] = {}
"""The open queues by name."""


def take(queue_name: str) -> list[Any]:
    """Return the next row of a queue. Raises ValueError for an unknown queue, RuntimeError if no row is left or nothing is sent."""
    if queue_name not in QUEUES:
        expected = list_choices(sorted(QUEUES)) if QUEUES else "the queue_name of a dataset's device_que(), after its send()"
        raise ValueError(message(f"the data queue {short(queue_name)}", expected))
    row: list[Any] = QUEUES[queue_name].take()
    return row
