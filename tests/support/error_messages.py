"""Tables of calls that must fail, with their complete messages except the path and line."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Bad:
    """A call that must fail: its kind of error, what the message shows of the call, what it says, and its hint."""

    call: Callable[[], Any]
    kind: type[Exception]
    written: str
    said: str
    hint: str | None = None

    @property
    def message(self) -> str:
        text = f"{self.written}: {self.said}" if self.written else self.said
        return text if self.hint is None else f"{text}\n\nhint: {self.hint}"


def without_mindspores_sentence(text: str) -> str:
    """Return a message of a data set without the sentence of MindSpore's at its end."""
    return re.sub(r" (Argument \w+ with value .* is not of type \[.*\], but got <.*>|Input \w+ is not within the required interval of .*"
                  r"|\w+: the (data type|shape) of input tensor does not match .*)\.", "", text)


def check(bad: Bad, file: str | None = None) -> None:
    """Fails unless the call raises exactly this; with `file`, the message must begin with a line of that file."""
    with pytest.raises(bad.kind) as caught:
        bad.call()
    text = str(caught.value)
    if file is not None:
        match = re.match(re.escape(file) + r":\d+: ", text)
        assert match is not None, text
        text = text[match.end():]
    assert text == bad.message
    assert type(caught.value) is bad.kind and len(text.splitlines()) <= 12
    assert not re.search(r"aten|mat1|torch\.|\bc10\b|at::", text)
