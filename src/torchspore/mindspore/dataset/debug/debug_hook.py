"""`DebugHook`, a hook between two transforms in debug mode, inserted by `set_debug_mode` or by the program."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any


class DebugHook(ABC):
    """Base of hooks: `compute(values)` receives the tuple of a row's values; its result is ignored."""

    def __init__(self, prev_op_name: str | None = None) -> None:
        self.prev_op_name = prev_op_name
        self._before = False

    def __call__(self, *args: Any) -> Any:
        where = getattr(self, "prev_op_name", None)
        if where is not None:
            print(f"map, {'before' if self._before else 'after'} {where}:")
        self.compute(args)
        return args[0] if len(args) == 1 else args

    def set_previous_op_name(self, op_name: str) -> None:
        """Sets the name of the transform before the hook."""
        self.prev_op_name, self._before = op_name, False

    def set_is_first(self) -> None:
        """Marks the hook as before the first transform, whose name it has."""
        self._before = True

    @abstractmethod
    def compute(self, *args: Any) -> Any:
        """Inspects the values."""


def hooked(operations: list[Any], hooks: list[Any]) -> list[Callable[..., Any]]:
    """Return the operations with copies of the hooks before the first one and after each."""
    import copy

    from torchspore.mindspore.dataset.engine.failures import name_of

    steps: list[Any] = []

    def put(name: str, first: bool) -> None:
        for hook in hooks:
            copied = copy.copy(hook)
            copied.set_previous_op_name(name)
            if first:
                copied.set_is_first()
            steps.append(copied)

    for operation in operations:
        if not steps:
            put(name_of(operation), True)
        steps.append(operation)
        put(name_of(operation), False)
    return steps
