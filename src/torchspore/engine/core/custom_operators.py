"""Operators of our own in torch's dispatcher, so that captured graphs hold them.

Not by `torch.library.custom_op`, whose functions load torch._dynamo when they are called.
"""
from __future__ import annotations

from typing import Any

import torch

LIBRARY = torch.library.Library("torchspore", "FRAGMENT")


def define(schema: str, compute: Any, form: Any, tags: tuple[torch.Tag, ...] = ()) -> Any:
    """The operator `torchspore::NAME` of this schema; `form` gives what has the shapes and dtypes of what `compute` gives."""
    name = schema.partition("(")[0]
    LIBRARY.define(schema, tags=tags)
    LIBRARY.impl(name, compute, "CompositeExplicitAutograd")
    torch.library.register_fake(f"torchspore::{name}", form, lib=LIBRARY)
    return getattr(torch.ops.torchspore, name).default
