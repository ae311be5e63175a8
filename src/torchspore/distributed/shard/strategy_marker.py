"""The operator that marks a program's strategy in a captured graph: it returns its input, with the layout that its text describes.

Its gradient does the same, and sums the gradient of a replicated weight over the devices.
"""
from __future__ import annotations

import functools
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.split_layouts.device_layout import Layout, from_matrix
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.torch_internals.custom_operators import LIBRARY, define

laid = define("laid(Tensor x, str layout) -> Tensor", lambda x, layout: x.clone(), lambda x, layout: torch.empty_like(x))
"""Return the input, whose layout is that of the text."""
mirror, mirrored = (
    define(f"{name}(Tensor x, str name) -> Tensor", lambda x, name: x.clone(), lambda x, name: torch.empty_like(x))
    for name in ("mirror", "mirrored")
)
"""A Parameter that is computed with, and its gradient, which `gradients_mean` divides by how many devices hold the same part."""


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.text = inputs[1]


for _of, _gradient in ((laid, laid), (mirror, mirrored)):
    torch.library.register_autograd(
        _of, lambda ctx, grad, operator=_gradient: (operator(grad, ctx.text), None), setup_context=_keep, lib=LIBRARY,
    )
MARKS = frozenset((laid, mirror, mirrored))
_COPIES = frozenset({"_to_copy", "clone", "alias", "detach", "mirror"})
"""Operators that pass their first input on with its layout."""
OF_PARTS = "?"
"""The beginning of the text for the layout of a part of the batch: it counts if the full batch would be split like that."""


def text(matrix: tuple[int, ...], tensor_map: tuple[Any, ...]) -> str:
    """Return the operator's text for a device matrix and a tensor map: '2,4|1,-1,0+2'."""
    return ",".join(map(str, matrix)) + "|" + ",".join("+".join(map(str, p)) if isinstance(p, tuple) else str(p) for p in tensor_map)


@functools.cache
def parsed(layout: str) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Return the device matrix and the tensor map of such a text."""
    matrix, map_text = layout.split("|")
    tensor_map = [tuple(map(int, entry.split("+"))) for entry in map_text.split(",")] if map_text else []
    return tuple(map(int, matrix.split(","))), tuple(entry[0] if len(entry) == 1 else entry for entry in tensor_map)


@functools.cache
def layout_in(mesh: Mesh, layout: str) -> Layout:
    """Return the layout of such a text."""
    return from_matrix(mesh, *parsed(layout))


def is_expanded(t: Any) -> bool:
    """Return whether several elements of a tensor share memory. The result of a mark has separate memory, which fused optimizers require.
    """
    return isinstance(t, torch.Tensor) and any(stride == 0 and size > 1 for size, stride in zip(t.shape, t.stride()))


def first_mark(node: Node) -> str | None:
    """Return the layout that the program's first strategy requests for a value, also after a cast."""
    for user in node.users:
        if user.target is laid:
            return str(user.args[1])
        if getattr(user.target, "_opname", "") in _COPIES:
            mark = first_mark(user)
            if mark is not None:
                return mark
    return None
