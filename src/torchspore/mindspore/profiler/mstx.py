"""`mindspore.profiler.mstx`: a program's marks and ranges in a profile."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.mindspore.hal.stream import Stream
from torchspore.observe import profiling


def _checked(call: str, text: Any, stream: Any, domain: Any) -> str:
    for name, value in (("message", text), ("domain", domain)):
        if not isinstance(value, str) or not value:
            raise TypeError(message(f"{call}({name}={short(value)})", f"a str that is not empty, got {type(value).__name__}"))
    if stream is not None and not isinstance(stream, Stream):
        raise TypeError(message(f"{call}(stream={short(stream)})", f"a Stream or None, got {type(stream).__name__}"))
    return text if domain == "default" else f"{domain}: {text}"


class mstx:
    """Marks in the trace of the recording profiler, if any; torch assigns them to their thread, for any stream."""

    @staticmethod
    def mark(message: str, stream: Any = None, domain: str = "default") -> None:
        """Adds a mark now. Raises TypeError unless the name is a str."""
        profiling.close_range(profiling.open_range(_checked("mstx.mark", message, stream, domain)))

    @staticmethod
    def range_start(message: str, stream: Any = None, domain: str = "default") -> int:
        """Starts a range; returns its number for `range_end`. Raises TypeError unless the name is a str."""
        return profiling.open_range(_checked("mstx.range_start", message, stream, domain))

    @staticmethod
    def range_end(range_id: int, domain: str = "default") -> None:
        """Ends a range; ignores one that is not open. Raises TypeError unless the number is an int."""
        if not is_int(range_id):
            raise TypeError(message(f"mstx.range_end({short(range_id)})", f"an int, got {type(range_id).__name__}"))
        _checked("mstx.range_end", "end", None, domain)
        profiling.close_range(range_id)


Mstx = mstx
mark, range_start, range_end = mstx.mark, mstx.range_start, mstx.range_end
