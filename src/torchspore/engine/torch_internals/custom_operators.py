"""Operators of our own in torch's dispatcher, so that captured graphs hold them.

Not by `torch.library.custom_op`, whose functions load torch._dynamo when they are called.
"""
from __future__ import annotations

import inspect
from typing import Any

import torch

inspect.modulesbyfile.setdefault(__file__, __name__)     # torch asks for the module of this file, and inspect would look at all modules
LIBRARY = torch.library.Library("torchspore", "FRAGMENT")


EXCHANGES: set[str] = set()
"""The names of operators that send data to other processes or receive it from them; passes keep their order."""

HOMES: dict[str, str] = {}
"""By the name of an operator, the module that defines it when it is imported."""


def define(schema: str, compute: Any, form: Any, tags: tuple[torch.Tag, ...] = (), is_exchange: bool = False) -> Any:
    """Define and return the operator `torchspore::NAME` of a schema.

    `compute` has the arguments of the schema; `form` returns tensors with the shapes and dtypes of its results.
    """
    name = schema.partition("(")[0]
    if is_exchange:
        EXCHANGES.add(name)
    HOMES[name] = compute.__module__
    LIBRARY.define(schema, tags=tags)
    LIBRARY.impl(name, compute, "CompositeExplicitAutograd")
    torch.library.register_fake(f"torchspore::{name}", form, lib=LIBRARY)
    return getattr(torch.ops.torchspore, name).default
