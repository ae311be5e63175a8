"""The sum of `dump_device_local_norm`, for programs that read it."""
from __future__ import annotations

from typing import Any

from torchspore.engine.core.tensor import wrap
from torchspore.mindspore.common.parameter import Parameter

_parameter: Any = None


def get_squared_device_local_norm_param() -> Parameter:
    """Return the Parameter with the sum of the squares of this device's gradients, before the reduction over devices.

    It grows with each step until the program sets it to 0. Raises ValueError if `dump_device_local_norm` is off.
    """
    global _parameter
    from torchspore.distributed.shard import gradient_norms

    squared = gradient_norms.squared()
    if _parameter is None:
        _parameter = Parameter(wrap(squared), name="_squared_device_local_norm", requires_grad=False)
        _parameter._t = squared                                  # shares the memory that the graph adds to
    return _parameter
