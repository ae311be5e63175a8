"""Errors of backward passes in the user's words: which operator has no gradient, and what to write instead."""
from __future__ import annotations

import re

from torchspore.base.frames import user_frame
from torchspore.base.text import with_hint
from torchspore.engine.memory import limit

_UNDEFINED = re.compile(r"derivative for '?(?:aten::)?_?(\w+?)\d?(?:: \w+)?'? is not implemented")
_COMPLETE_QR = "not differentiable when mode='complete'"
_HINT = "write ops.stop_gradient(x) for its inputs, or differentiate with respect to other values."


def translated(cause: RuntimeError) -> BaseException:
    """Return the error to raise for an error of torch's backward pass.

    It is a TypeError that names the user's line and the operator if an operator has no gradient, OutOfMemory if the memory limit refused
    an allocation, else `cause` itself.
    """
    text = str(cause)
    undefined = _UNDEFINED.search(text)
    if undefined is not None:
        return _explained(f"the gradient of {undefined[1]} is not defined.", _HINT)
    if _COMPLETE_QR in text:
        sentence = "the gradient of qr with mode='complete' is not defined for a matrix of more rows than columns."
        return _explained(sentence, "write mode='reduced'.")
    return limit.backward_error(cause)


def _explained(sentence: str, hint: str) -> TypeError:
    line = user_frame()
    error = TypeError(with_hint(f"{line[0]}:{line[1]}: {sentence}" if line else sentence, hint))
    error.explained = True  # type: ignore[attr-defined]
    return error
