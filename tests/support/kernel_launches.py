"""A count of the kernels that a call launches: operators that torch dispatches, and C++ functions of generated code."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

_VIEWS = {
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "slice", "select", "split", "detach",
    "alias", "as_strided", "empty", "empty_like", "empty_strided", "lift_fresh",
}


class Launches(TorchDispatchMode):
    """`names` are the kernels launched while it is open: ATen's operators that compute, and generated ones."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __enter__(self) -> Launches:
        super().__enter__()
        sys.setprofile(self._look)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.setprofile(None)
        super().__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._opname not in _VIEWS:
            self.names.append(func._opname)
        return func(*args, **(kwargs or {}))

    def _look(self, frame: Any, event: str, function: Any) -> None:
        # Inductor's bindings give each compiled module one function of this name.
        if event == "c_call" and getattr(function, "__name__", "") == "kernel":
            self.names.append("generated")


def launched(call: Callable[[], Any]) -> list[str]:
    """Return the names of the kernels that one call launches."""
    with Launches() as counted:
        call()
    return counted.names
