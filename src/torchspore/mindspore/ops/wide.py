"""uint16, uint32 and uint64 in operators that torch lacks for them: widened to int64, computed, and narrowed again.

Only what MindSpore 2.10 computes is widened; it refuses the others with TypeError, and so does torch.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

WIDE = frozenset({torch.uint16, torch.uint32, torch.uint64})

_VALUES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("argmax", "argmin", "_argmax_primitive", "_argmin_primitive"), ()),
    **dict.fromkeys(("_argmax_with_value", "_argmin_with_value"), (1,)),
    **dict.fromkeys((
        "amax", "amin", "max", "min", "_reduce_max", "_reduce_min", "sum", "_reduce_sum", "prod", "_reduce_prod", "cumsum", "_cumsum",
        "gather", "_gather",
        "gather_elements", "gather_d", "flip", "_reverse", "topk", "_topk", "clamp", "clip", "clip_by_value", "square", "relu",
        "logical_not",
    ), (0,)),
}
"""The operators, and which of their results hold values; the others are indexes."""


def widening(body: Callable[..., Any]) -> Callable[..., Any]:
    """`body` itself, or, where it is one of these operators, `body` that also takes wide unsigned integers."""
    values = _VALUES.get(body.__name__)
    if values is None:
        return body

    @functools.wraps(body)
    def widened(*arguments: Any, **keywords: Any) -> Any:
        for argument in arguments:
            if isinstance(argument, torch.Tensor) and argument.dtype in WIDE:
                out = body(*map(_wider, arguments), **{key: _wider(value) for key, value in keywords.items()})
                if isinstance(out, torch.Tensor):
                    return _narrowed(out, argument.dtype) if values else out
                return tuple(_narrowed(item, argument.dtype) if i in values else item for i, item in enumerate(out))
        return body(*arguments, **keywords)

    return widened


def _wider(value: Any) -> Any:
    return value.to(torch.int64) if isinstance(value, torch.Tensor) and value.dtype in WIDE else value


def _narrowed(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return t.to(dtype) if t.dtype is torch.int64 else t
