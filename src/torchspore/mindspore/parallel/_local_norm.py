"""The sum of `dump_device_local_norm`, for programs that read it."""
from __future__ import annotations

from typing import Any

from torchspore.engine.tensors.tensor import wrap
from torchspore.mindspore.common.parameter import Parameter


class _Norm:
    """The Parameter that receives the local norm."""

    def __init__(self) -> None:
        self.parameter: Any = None


_NORM = _Norm()


def get_squared_device_local_norm_param() -> Parameter:
    """Return the Parameter with the sum of the squares of this device's gradients, before the reduction over devices.

    It grows with each step until the program sets it to 0. Raises ValueError if `dump_device_local_norm` is off.
    """
    from torchspore.distributed.shard import gradient_norms

    squared = gradient_norms.squared()
    if _NORM.parameter is None:
        _NORM.parameter = Parameter(wrap(squared), name="_squared_device_local_norm", requires_grad=False)
        _NORM.parameter._t = squared                                  # shares the memory that the graph adds to
    return _NORM.parameter
