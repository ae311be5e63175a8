"""The shuffle of rows in a buffer."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from torchspore.mindspore.dataset.core.random_order import Twister64
from torchspore.mindspore.dataset.engine.rows import Row, Run


def through_buffer(
    rows: Iterator[Row], size: int, draw: Twister64, run: Run, total: Callable[[], int | None], learn: Callable[[int], None] | None = None,
) -> Iterator[Row]:
    """The rows in an order drawn by `draw` from a buffer of `size` of them; `total` says how many there are.

    `learn` is told how many there were, at their end.
    """
    buffer = list(islice(rows, size))
    given = 0
    try:
        while buffer:
            position = draw() % len(buffer)
            chosen, buffer[position] = buffer[position], buffer[-1]
            buffer.pop()
            buffer.extend(islice(rows, 1))
            given += 1
            yield chosen
        if learn is not None:
            learn(given)
    finally:
        # A `take` ends an epoch early; MindSpore's reads on, so its next epoch starts as many draws later.
        if buffer and not run.is_closing:
            for _ in range((total() or given) - given):
                draw()
