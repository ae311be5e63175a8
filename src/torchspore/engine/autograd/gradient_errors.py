"""Errors of backward passes in the user's words: which operator has no gradient, and what to write instead."""
from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from torchspore.base.frames import user_frame
from torchspore.base.text import with_hint

_UNDEFINED = re.compile(r"derivative for '?(?:aten::)?_?(\w+?)\d?(?:: \w+)?'? is not implemented")
_COMPLETE_QR = "not differentiable when mode='complete'"
_HINT = "write ops.stop_gradient(x) for what it takes, or take the gradient by other values."


@contextmanager
def in_the_users_words() -> Iterator[None]:
    """Replaces torch's error for an operator without a gradient by a TypeError that names the user's line and the operator."""
    try:
        yield
    except RuntimeError as error:
        text = str(error)
        undefined = _UNDEFINED.search(text)
        if undefined is not None:
            raise _explained(f"the gradient of {undefined[1]} is not defined.", _HINT) from None
        if _COMPLETE_QR in text:
            sentence = "the gradient of qr with mode='complete' is not defined for a matrix of more rows than columns."
            raise _explained(sentence, "write mode='reduced'.") from None
        raise


def _explained(sentence: str, hint: str) -> TypeError:
    line = user_frame()
    error = TypeError(with_hint(f"{line[0]}:{line[1]}: {sentence}" if line else sentence, hint))
    error.explained = True  # type: ignore[attr-defined]
    return error
