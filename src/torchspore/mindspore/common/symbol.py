"""`Symbol`: facts about an open axis; `enable_dynamic`: open axes of a function's arguments."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.engine.tensors import change_counters


class Symbol:
    """An axis of `divisor * n + remainder` elements (n from 1 on), at least `min` and, if it is larger than that, at most `max`.

    With `unique`, all axes with this symbol have one length. Raises TypeError for values that are not ints and other names, ValueError for
    `min` or `divisor` below 1 and for a `remainder` outside [0, divisor).
    """

    def __init__(self, max: int = 0, min: int = 1, divisor: int = 1, remainder: int = 0, unique: bool = False, **kwargs: Any) -> None:
        if kwargs:
            raise TypeError(message(f"Symbol({next(iter(kwargs))}=...)", "max, min, divisor, remainder or unique"))
        for name, value in (("max", max), ("min", min), ("divisor", divisor), ("remainder", remainder)):
            if not isinstance(value, int):
                raise TypeError(message(f"Symbol({name}={short(value)})", f"an int, got {type(value).__name__}"))
        if not isinstance(unique, bool):
            raise TypeError(message(f"Symbol(unique={short(unique)})", f"True or False, got {type(unique).__name__}"))
        for name, value in (("min", min), ("divisor", divisor)):
            if value < 1:
                raise ValueError(message(f"Symbol({name}={value})", "an int from 1 on"))
        if not 0 <= remainder < divisor:
            raise ValueError(message(f"Symbol(divisor={divisor}, remainder={remainder})", "a remainder from 0 to the divisor minus 1"))
        self.max, self.min, self.divisor, self.remainder, self.unique = max, min, divisor, remainder, unique
        self.id = id(self)

    def to_dict(self) -> dict[str, int]:
        """Return the facts that differ from the defaults."""
        least = self.min > self.divisor + self.remainder
        facts = {
            "max": (self.max, self.max > self.min), "min": (self.min, least), "divisor": (self.divisor, self.divisor != 1),
            "remainder": (self.remainder, self.remainder != 0), "id": (self.id, self.unique),
        }
        return {name: value for name, (value, says) in facts.items() if says}

    def __str__(self) -> str:
        return str(self.to_dict())

    def fits(self, length: int) -> bool:
        """Return whether an axis of this length matches."""
        at_most = self.max if self.max > self.min else length
        return self.min <= length <= at_most and length % self.divisor == self.remainder and length >= self.divisor


def enable_dynamic(**kwargs: Any) -> Callable[..., Any]:
    """Decorate a function of `jit`: arguments by name, each a `Tensor(shape=[None, 3], dtype=...)` whose open axes may have any length.

    One graph then serves every length. Raises TypeError for arguments that are not such Tensors, ValueError without arguments or if the
    function does not have one.
    """
    if not kwargs:
        hint = "write enable_dynamic(x=Tensor(shape=None, dtype=mindspore.float32))"
        raise ValueError(message("enable_dynamic()", "arguments by name", hint=hint))
    for name, value in kwargs.items():
        if not _is_open(name, value):
            raise TypeError(message(f"enable_dynamic({name}=...)", "a Tensor with an axis that is None, or a tuple or list with one"))

    def decorated(function: Any) -> Any:
        if not inspect.isfunction(function) and not inspect.ismethod(function):
            raise ValueError(message(f"enable_dynamic of {short(function)}", "a function or method"))
        names = [name for name in inspect.signature(function).parameters if name != "self"]
        for name in kwargs:
            if name not in names:
                raise ValueError(message(f"enable_dynamic({name}=...)", list_choices(names)))
        function._open_inputs_ = tuple(kwargs.get(name) for name in names)  # type: ignore[union-attr]
        change_counters.calls_changed()
        return function

    return decorated


def _is_open(name: str, value: Any) -> bool:
    """Return whether a value has an open axis. Raises TypeError for a value that is not a Tensor."""
    if isinstance(value, (tuple, list)):
        return any(_is_open(name, item) for item in value)
    if not hasattr(value, "asnumpy"):
        expected = f"a Tensor, or a tuple or list of them, got {type(value).__name__}"
        raise TypeError(message(f"enable_dynamic({name}={short(value)})", expected))
    return hasattr(value, "symbolic")
