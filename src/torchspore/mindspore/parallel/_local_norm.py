"""What `dump_device_local_norm` adds up, for programs that read it."""
from __future__ import annotations

from typing import Any

from torchspore.engine.core.tensor import wrap
from torchspore.mindspore.common.parameter import Parameter

_parameter: Any = None


def get_squared_device_local_norm_param() -> Parameter:
    """The Parameter with the sum of the squares of this device's gradients, before they are summed over devices.

    It grows with each step until the program sets it to 0. Raises ValueError where `dump_device_local_norm` is off.
    """
    global _parameter
    from torchspore.distributed.shard import gradient_norms

    held = gradient_norms.squared()
    if _parameter is None:
        _parameter = Parameter(wrap(held), name="_squared_device_local_norm", requires_grad=False)
        _parameter._t = held                                  # the very memory that the graph adds to
    return _parameter
