"""`mindspore._extends.parse.trope`: the functions by which MindSpore's compiler names the operators of Python."""
from __future__ import annotations

import builtins
from operator import (  # noqa: F401
    add,
    and_,
    contains,
    eq,
    floordiv,
    ge,
    getitem,
    gt,
    invert,
    is_,
    is_not,
    le,
    lshift,
    lt,
    matmul,
    mod,
    mul,
    ne,
    neg,
    not_,
    or_,
    pos,
    pow,
    rshift,
    setitem,
    sub,
    truediv,
    xor,
)
from typing import Any

from torchspore.public_names import missing

_BUILTINS = frozenset(
    "abs bool enumerate filter getattr hasattr isinstance iter len list map max min next print range round setattr sum tuple zip".split()
)
_missing = missing(__name__)


def not_contains(container: Any, item: Any) -> bool:
    """Return whether `item` is not in `container`."""
    return item not in container


def __getattr__(name: str) -> Any:
    return getattr(builtins, name) if name in _BUILTINS else _missing(name)
