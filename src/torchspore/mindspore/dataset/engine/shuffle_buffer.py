"""Shuffling of rows in a buffer."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from torchspore.mindspore.dataset.core.random_order import Twister64
from torchspore.mindspore.dataset.engine.rows import Row, Run


def through_buffer(
    rows: Iterator[Row], size: int, draw: Twister64, run: Run, total: Callable[[], int | None], learn: Callable[[int], None] | None = None,
) -> Iterator[Row]:
    """Yield the rows in an order drawn by `draw` from a buffer of `size` rows; `total` is their number.

    `learn` receives their number at the end.
    """
    buffer = list(islice(rows, size))
    num_rows = 0
    try:
        while buffer:
            position = draw() % len(buffer)
            chosen, buffer[position] = buffer[position], buffer[-1]
            buffer.pop()
            buffer.extend(islice(rows, 1))
            num_rows += 1
            yield chosen
        if learn is not None:
            learn(num_rows)
    finally:
        # A `take` ends an epoch early; MindSpore reads on, so that its next epoch starts the same number of draws later.
        if buffer and not run.is_closing:
            for _ in range((total() or num_rows) - num_rows):
                draw()
