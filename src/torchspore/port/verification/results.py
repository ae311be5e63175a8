"""The values of a result as tensors, so that results of any kind are compared."""
from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore.common import dtype as dtypes
from torchspore.mindspore.common.tensor import Tensor


class CannotVerify(Exception):
    """The Module can't be compared; the text says why."""


def tensors_of_result(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Yield a tensor for each value of a nest; a text or a dtype is represented by a checksum. Raises CannotVerify for other values."""
    if depth > 50:
        raise CannotVerify("a result that contains itself can't be compared")
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Tensor):
        yield raw(value)
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_of_result(item, depth + 1)
    elif isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        yield torch.from_numpy(np.array(value, copy=True))
    elif isinstance(value, (int, float, complex)):
        yield torch.tensor(value)
    elif isinstance(value, (str, type(None), torch.dtype, type(dtypes.float32))):
        name = str(value).lower().removeprefix("torch.")
        yield torch.tensor(zlib.crc32(name.encode()))
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):        # an object of the user
        yield from tensors_of_result(vars(value), depth + 1)
    else:
        raise CannotVerify(f"a result of type {type(value).__name__} can't be compared")
