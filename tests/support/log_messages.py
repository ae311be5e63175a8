"""The messages that a block writes to MindSpore's log."""
from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from mindspore import log


class Messages(logging.Handler):
    """The texts are `lines`, in order; `came` is set as soon as there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.came.set()


@contextlib.contextmanager
def messages(level: str = "WARNING") -> Iterator[Messages]:
    """Collect the messages of the block from `level` on."""
    log.debug("")                                   # makes the logger, if nothing was logged yet
    logger, result = logging.getLogger("torchspore.mindspore"), Messages()
    before = logger.level
    logger.setLevel(level)
    logger.addHandler(result)
    try:
        yield result
    finally:
        logger.removeHandler(result)
        logger.setLevel(before)
