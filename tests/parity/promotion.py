"""All pairs of dtypes and kinds of scalars under all binary operators: the dtype of the result, or the type of the error.

Run by real MindSpore (`tools/record.py promotion`) and by the test; imports nothing but mindspore and NumPy.
"""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

DTYPES = (
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
)
OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}
SCALARS = {
    "True": True, "2": 2, "2.5": 2.5, "np.bool_": np.bool_(True), "np.int32": np.int32(2), "np.int64": np.int64(2),
    "np.float32": np.float32(2.5),
    "np.float64": np.float64(2.5),
}


def groups() -> list[tuple[str, str]]:
    """(operator, dtype of the left operand): what is computed together."""
    return [(symbol, left) for symbol in OPERATORS for left in DTYPES]


def names(symbol: str, left: str) -> list[str]:
    """The cases of one group."""
    pairs = [f"{left} {symbol} {zero}{right}" for right in DTYPES for zero in ("", "0d ")]
    pairs += [f"{left} {symbol} {text}" for text in SCALARS]
    return pairs + [f"{text} {symbol} {left}" for text in SCALARS if not text.startswith("np.")]


def answers(ms: Any, symbol: str, left: str, only: str | None = None) -> dict[str, str]:
    """`{"float32 + int8": "Float32", "2 * int8": ..., ...}`; `0d int64` is a Tensor without axes. `only` names one case."""
    function, x = OPERATORS[symbol], ms.Tensor(np.array([1, 1]), getattr(ms, left))
    cases: dict[str, Any] = {}
    for right in DTYPES:
        cases[f"{left} {symbol} {right}"] = lambda right=right: function(x, ms.Tensor(np.array([1, 1]), getattr(ms, right)))
        cases[f"{left} {symbol} 0d {right}"] = lambda right=right: function(x, ms.Tensor(np.array(1), getattr(ms, right)))
    for text, scalar in SCALARS.items():
        cases[f"{left} {symbol} {text}"] = lambda scalar=scalar: function(x, scalar)
        if not text.startswith("np."):
            cases[f"{text} {symbol} {left}"] = lambda scalar=scalar: function(scalar, x)
    return {case: _answer(call) for case, call in cases.items() if only in (None, case)}


def _answer(call: Any) -> str:
    try:
        out = call()
        return str(out.dtype) if hasattr(out, "shape") else type(out).__name__
    except Exception as error:
        return type(error).__name__
