"""The progress bar of `Model.train`: one line on stderr, only on a terminal; it does not change the program's output.

The bar does not use rich.progress, whose display captures the program's output and rewraps its lines.
"""
from __future__ import annotations

import os
import shutil
import sys
import time
from collections import Counter
from typing import Any

from torchspore.mindspore.train.callback._callback import _handle_loss

OFF = "TORCHSPORE_NO_PROGRESS"
_EVERY = 0.2
"""Seconds between two drawings; the loss is read then, which waits for the device."""
_WAITS = 0.1
"""If the program waits for data for at least this share of the time, the bar names the slowest step of the pipeline."""
_BAR = 20


def bar(state: Any, batches: Any) -> Bar | None:
    """Return the bar for a training over `batches`; None if stderr is not a terminal, or the user disabled the bar."""
    if os.environ.get(OFF, "") not in ("", "0") or os.environ.get("TERM") == "dumb":
        return None
    return Bar(state, batches) if sys.stderr is not None and sys.stderr.isatty() else None


class Bar:
    """Draws during its `with` block, and is erased at the end."""

    def __init__(self, state: Any, batches: Any) -> None:
        self._total, self._epochs, self._batches = state.batch_num, state.epoch_num, batches
        count_rows = getattr(state.train_dataset, "get_batch_size", int)
        self._rows = max(1, count_rows() or 0)
        self._stream = sys.stderr
        self._coloured = not os.environ.get("NO_COLOR")
        self._replaced: list[tuple[str, Any, Any]] = []
        self._is_drawn = self._is_broken = self.line_is_open = False
        self._drawn_at = self._counted_at = time.monotonic()
        self._counted, self._rate, self._steps = 0, 0.0, Counter[str]()
        self._begun = time.monotonic()

    def __enter__(self) -> Bar:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and stream.isatty():
                put = _Above(stream, self)
                setattr(sys, name, put)
                self._replaced.append((name, stream, put))
        return self

    def __exit__(self, *_: Any) -> None:
        self.clear()
        for name, stream, put in self._replaced:
            if getattr(sys, name) is put:
                setattr(sys, name, stream)

    def step(self, state: Any) -> None:
        """Record the end of a step."""
        self._counted += 1
        now = time.monotonic()
        if now - self._drawn_at < _EVERY or self.line_is_open or self._is_broken:
            return
        self._drawn_at = now
        slow = self._batches.slow_step()
        if slow is not None:
            self._steps[slow] += 1
        rate = self._counted * self._rows / (now - self._counted_at)
        self._rate = rate if not self._rate else 0.7 * self._rate + 0.3 * rate
        self._counted, self._counted_at = 0, now
        self._draw(self._text(state))

    def _text(self, state: Any) -> str:
        done = (state.cur_step_num - 1) % self._total + 1 if self._total else state.cur_step_num
        share = min(1.0, done / self._total) if self._total else 0.0
        full = round(share * _BAR)
        parts = [f"epoch {state.cur_epoch_num}/{self._epochs}", f"{self._colour(32, '━' * full)}{self._colour(90, '─' * (_BAR - full))}",
                 f"{done}/{self._total}", f"{self._rate:,.0f} rows/s"]
        loss = _handle_loss(state.get("net_outputs"))
        if isinstance(loss, float):
            parts.append(f"loss {loss:.4g}")
        waits = self._batches._waits
        seconds = waits.seconds
        idle = max(0.0, seconds - waits.busy)
        if seconds > 1 and self._steps and idle < (1 - _WAITS) * seconds and waits.waited > _WAITS * seconds:
            parts.append(f"waits {waits.waited / seconds:.0%} for data: {self._steps.most_common(1)[0][0]}")
        return "  ".join(parts)

    def _colour(self, code: int, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured and text else text

    def _draw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns
        if len(text) - (18 if self._coloured else 0) >= width:
            text = f"{text[: width - 2 + (18 if self._coloured else 0)]}…"
        self._write(f"\r\x1b[2K{text}")
        self._is_drawn = True

    def clear(self) -> None:
        """Erase the bar."""
        if self._is_drawn:
            self._is_drawn = False
            self._write("\r\x1b[2K")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError, UnicodeEncodeError):      # a closed terminal, or one that can't print the bar
            self._is_broken = True


class _Above:
    """A wrapper of the program's stream on the same terminal: the bar is erased before output."""

    def __init__(self, stream: Any, bar: Bar) -> None:
        self.__dict__.update(_stream=stream, _bar=bar)

    def write(self, text: str) -> Any:
        """Write to the stream."""
        self._bar.clear()
        if text:
            self._bar.line_is_open = not text.endswith("\n")
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._stream, name, value)
