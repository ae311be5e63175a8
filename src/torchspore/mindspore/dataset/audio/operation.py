"""The base of audio transforms: one numeric column with at least the axes that the transform names."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short, with_type
from torchspore.mindspore.dataset.core.operation import TensorOperation
from torchspore.mindspore.dataset.core.validator_helpers import FLOAT_MAX_INTEGER, check_number, check_type, interval_error, with_sentence

_SENTENCE = "{}: the {} of input tensor does not match the requirement of operator. Expecting tensor in {}."


class AudioTensorOperation(TensorOperation):
    """A transform of one column of shape `_shape`. float64 stays float64; all other dtypes become float32."""

    _shape = "<..., time>"
    _takes_integers = True
    _takes_lists = False

    def _input(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray) and not self._takes_lists:
            text = message(f"{type(self).__name__}({short(value)})", with_type("a NumPy array", value))
            raise TypeError(f"{text} Input should be NumPy audio, got {type(value)}.")
        return super()._input(value)

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        call = type(self).__name__
        if len(values) != 1:
            text = message(f"{call} of {len(values)} columns", "one column")
            raise RuntimeError(with_sentence(text, "The op is OneToOne, can only accept one tensor as input."))
        value = values[0]
        if value.dtype.kind not in ("biuf" if self._takes_integers else "f"):
            expected = "numbers" if self._takes_integers else "float16, float32 or float64"
            accepted = "[int, float, double]" if self._takes_integers else "[float, double]"
            sentence = _SENTENCE.format(call, "data type", f"type of {accepted}")
            raise RuntimeError(f"{message(f'{call} of {value.dtype}', expected)} {sentence}")
        if value.ndim < self._shape.count(",") or ("complex" in self._shape and value.shape[-1] != 2):
            sentence = _SENTENCE.format(call, "shape", f"shape of {self._shape}")
            raise RuntimeError(f"{message(f'{call} of shape {list(value.shape)}', f'shape {self._shape}')} {sentence}")
        result = self._apply(value if value.dtype in (np.float32, np.float64) else value.astype(np.float32))
        return result if type(result) is tuple else (result,)


def check_above(call: str, argument: str, value: Any, high: float = FLOAT_MAX_INTEGER) -> None:
    """Raises TypeError unless it is a number, ValueError unless it is above 0."""
    check_number(call, argument, value, 0, high, above=True)


def check_from_0(call: str, argument: str, value: Any, high: float = FLOAT_MAX_INTEGER) -> None:
    """Raises TypeError unless it is a number, ValueError unless it is 0 or above."""
    check_number(call, argument, value, 0, high)


def check_any(call: str, argument: str, value: Any) -> None:
    """Raises TypeError unless it is a number."""
    check_number(call, argument, value, -FLOAT_MAX_INTEGER, FLOAT_MAX_INTEGER)


def check_rate_from_0(call: str, value: Any) -> None:
    """Raises TypeError unless a sample rate is an int, ValueError for one below 1. MindSpore shows the interval from 0 on."""
    check_type(call, "sample_rate", value, int, "an int")
    if not 1 <= value < 2**31:
        text = message(f"{call}(sample_rate={short(value)})", f"an int from 1 to {2**31 - 1}")
        raise interval_error(text, "sample_rate", "[0, 2147483647]")


def check_rate(call: str, value: Any) -> None:
    """Raises TypeError unless a sample rate is an int, ValueError for 0."""
    check_type(call, "sample_rate", value, int, "an int")
    if value == 0 or not -(2**31) <= value < 2**31:
        text = message(f"{call}(sample_rate={short(value)})", "samples a second, not 0")
        raise interval_error(text, "sample_rate", f"[-2147483648, {'' if call == 'Phaser' else '0) and (0, '}2147483647]")
