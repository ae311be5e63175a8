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


_SENTENCES = re.compile(
    r" (Argument \S+ with value .* is not of type [\[(].*[\])], but got <.*>\.|Input( \S+)? is not within the required interval of .*\."
    r"|Input \w+ is not of type .*\.|\w+: the (data type|shape) of input tensor does not match .*\.|Input dct_type must be 2, .*\."
    r"|The (file|folder) .* permission denied!|The following patterns did not match any files: .*|Not supported \w+ for .*\."
    r"|Size should be a single integer .*\.|\w+ (should|must) be a list/tuple of length 2\.|\w+ should be in \(min,max\) format\. .*\."
    r"|degrees must be either a tuple or a list\.|The size of .*\.|Value center needs to be a 2-tuple\.|Length of mean and std .*\."
    r"|num_samples exceeds the boundary between .*!|(Concatenate: )?(only 1D|can only|input datatype) .*\.|data_type: .*\."
    r"|it is invalid to convert .*\.|string input .*\.|The op is OneToOne, .*\.|Invalid file path, .* does not exist\.)"
)
"""Matches MindSpore's sentences at the end of messages."""


def without_mindspores_sentence(text: str) -> str:
    """Return a message of a data set without the sentence of MindSpore's at its end."""
    return re.sub(_SENTENCES, "", text)


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
