"""Types and constants in the spelling of MindSpore's .ir files: `<Tensor[Float32], (2, 4)>`."""
from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.tensors.dtypes import FROM_TORCH


@dataclass(frozen=True)
class Value:
    """The description of a value: of a Tensor the dtype and the shape, of several values each of them, else the Python type."""

    dtype: str = ""
    shape: tuple[Any, ...] = ()
    items: tuple[Value, ...] | None = None
    plain: str = ""
    bytes: int = 0
    """The memory that its elements take."""

    def __str__(self) -> str:
        if self.items is not None:
            return f"<{self.element()}, {self.extent()}>"
        return f"<{self.plain}>" if self.plain == "null" else f"<{self.element()}, {self.extent()}>"

    def element(self) -> str:
        """The type without the shape."""
        if self.items is not None:
            groups = [(name, len(list(group))) for name, group in itertools.groupby(item.element() for item in self.items)]
            return f"Tuple[{','.join(name if count == 1 else f'{name}*{count}' for name, count in groups)}]"
        return f"Tensor[{self.dtype}]" if self.dtype else self.plain

    def extent(self) -> str:
        """The shape."""
        if self.items is not None:
            return f"TupleShape({', '.join(item.extent() for item in self.items)})"
        return f"({', '.join(map(str, self.shape))})" if self.dtype else "NoShape"

    def short(self) -> str:
        """In few words: `Float32 [2, 4]`."""
        if self.items is not None:
            return ", ".join(item.short() for item in self.items)
        return f"{self.dtype} {[*self.shape]}".replace("'", "") if self.dtype else self.plain


def of_node(node: Node) -> Value:
    """Return the type of a node's result; of several results those that are read, if a pass removed the others."""
    value = node.meta.get("val")
    if value is None:
        items = {user.args[1]: user.meta.get("val") for user in node.users if getattr(user.target, "__name__", "") == "getitem"}
        if items and all(isinstance(index, int) for index in items):
            value = [items[index] for index in sorted(items)]  # type: ignore[type-var]
    return of(value)


def of(value: Any) -> Value:
    """The type of a value, a fake one as a rule."""
    if isinstance(value, torch.Tensor):
        dtype = FROM_TORCH.get(value.dtype)
        name = str(dtype) if dtype is not None else str(value.dtype).removeprefix("torch.").capitalize()
        return Value(name, tuple(n if type(n) is int else str(n) for n in value.shape), bytes=_bytes(value))
    if isinstance(value, (list, tuple)):
        items = tuple(of(item) for item in value)
        return Value(items=items, bytes=sum(item.bytes for item in items))
    return Value(plain="null" if value is None else _PLAIN.get(type(value), type(value).__name__))


_PLAIN: dict[type, str] = {bool: "Bool", int: "Int64", float: "Float32", str: "String", complex: "Complex64"}


def _bytes(value: torch.Tensor) -> int:
    count = 1
    for length in value.shape:
        if type(length) is not int:
            return 0
        count *= length
    return count * value.element_size()


def constant(value: Any) -> str:
    """A constant that is neither a number nor a string: a dtype, a device, a memory format, a Tensor."""
    if isinstance(value, torch.Tensor):
        return f"Tensor{list(value.shape)}"
    if isinstance(value, torch.dtype):
        dtype = FROM_TORCH.get(value)
        return str(dtype) if dtype is not None else str(value)
    text = str(value)
    return text if len(text) <= 60 and "0x" not in text else type(value).__name__


def literal(value: Any) -> str:
    """A Python number, string or None as an argument: `I64(2)`, `F32(0.5)`, `Bool(1)`, `"text"`, `None`."""
    if isinstance(value, bool):
        return f"Bool({int(value)})"
    if isinstance(value, int):
        return f"I64({value})"
    if isinstance(value, float):
        return f"F32({value:g})"
    return str(value) if value is None or isinstance(value, complex) else value if value.isidentifier() else f'"{value}"'
