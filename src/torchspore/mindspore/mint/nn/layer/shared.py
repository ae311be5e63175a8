"""Base class of mint's layers: a Cell around a function of `mint.nn.functional`."""
from __future__ import annotations

import inspect
from typing import Any

from torchspore.mindspore.nn.cell import Cell

REQUIRED: Any = inspect.Parameter.empty
"""Marks an argument without a default."""


def layer(name: str, function: Any, doc: str = "", **options: Any) -> type[Cell]:
    """A Cell that passes the arguments of its call, and then those of its constructor, to `function`.

    `options` are the arguments of its constructor in order, with their defaults; they are stored as attributes.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(key, kind, default=value) for key, value in options.items()])

    def __init__(self: Any, *arguments: Any, **keywords: Any) -> None:
        Cell.__init__(self)
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{name}: {error}: expected {name}{signature}.") from None
        bound.apply_defaults()
        for key, value in bound.arguments.items():
            setattr(self, key, value)

    def construct(self: Any, *values: Any, **named: Any) -> Any:
        return function(*values, **named, **{key: getattr(self, key) for key in options})

    __init__.__signature__ = inspect.Signature(
        [inspect.Parameter("self", kind), *signature.parameters.values()],
    )
    construct.__doc__ = text = doc or function.__doc__
    return type(name, (Cell,), {"__init__": __init__, "construct": construct, "__doc__": text, "__module__": __name__})
