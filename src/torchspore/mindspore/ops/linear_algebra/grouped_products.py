"""Products of several matrices in one call, and products that only Ascend's library computes."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.torch_internals.custom_operators import define
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


@op(primitive="GroupedMatmul", init=("split_item", "group_type", "transpose_a", "transpose_b"))
def _grouped_matmul(
    x: Any, weight: Any, bias: Any = None, scale: Any = None, offset: Any = None, antiquant_scale: Any = None, antiquant_offset: Any = None,
    group_list: T | None = None, split_item: int = 0, group_type: int = -1, transpose_a: bool = False, transpose_b: bool = False,
) -> tuple[T, ...]:
    """Return x[i] @ weight[i] + bias[i] for each i of these tuples (split_item 0), or a product of groups of rows (split_item 3).

    With split_item 3 `x` is one matrix, `weight` one Tensor (E, K, N) and `bias` one (E, N); matrix e multiplies the rows up to
    `group_list[e]`, from the end of the group before. Rows behind the last group are 0. Integer weights are
    (weight + antiquant_offset) * antiquant_scale. Raises ValueError for `scale` and `offset`, TypeError for other combinations.
    """
    if (split_item, group_type) not in ((0, -1), (3, 0)):
        wrote = f"GroupedMatmul(split_item={split_item!r}, group_type={group_type!r})"
        raise TypeError(message(wrote, "split_item=0 with group_type=-1, or 3 with 0"))
    if scale is not None or offset is not None:
        raise ValueError(message("GroupedMatmul with a scale or an offset", "None, as in MindSpore 2.10"))
    if (group_list is None) != (split_item == 0):
        wrote = f"GroupedMatmul(split_item={split_item}) with group_list={'None' if group_list is None else 'a Tensor'}"
        raise TypeError(message(wrote, "a Tensor" if split_item else "None"))
    columns = [(x,), (weight,), *((t,) for t in (bias, antiquant_scale, antiquant_offset))]
    xs, weights, biases, scales, offsets = (part if isinstance(part := column[0], (list, tuple)) else column for column in columns)
    rows = zip(xs, weights, *(numbers if numbers[0] is not None else (None,) * len(weights) for numbers in (biases, scales, offsets)))
    if len(xs) != len(weights) or (split_item == 3 and len(xs) != 1):
        wrote = f"GroupedMatmul(split_item={split_item}) of {len(xs)} and {len(weights)} matrices"
        raise ValueError(message(wrote, "one of each" if split_item else "as many weights as matrices"))
    results = []
    for values, matrix, shift, factor, zero in rows:
        if factor is not None:
            matrix = ((matrix.to(values.dtype) if zero is None else matrix + zero.unsqueeze(-2)) * factor.unsqueeze(-2)).to(values.dtype)
        values, matrix = values.mT if transpose_a else values, matrix.mT if transpose_b else matrix
        if group_list is None:
            result = values @ matrix
            results.append(result if shift is None else result + shift)
        else:
            results.append(_of_groups(values, matrix, shift, group_list))
    return tuple(results)


def _of_groups(x: T, weights: T, bias: T | None, ends: T) -> T:
    """Return the product of each group of rows with its matrix. The ends stay on the device, so all rows meet each matrix."""
    if weights.ndim != 3 or ends.shape != weights.shape[:1]:
        wrote = f"GroupedMatmul of weights {list(weights.shape)} with group_list {list(ends.shape)}"
        raise ValueError(message(wrote, "weights (E, K, N) and E ends"))
    positions = torch.arange(x.shape[0], device=x.device)
    groups = torch.searchsorted(ends.to(torch.int64).contiguous(), positions, right=True)
    result = x.new_zeros((x.shape[0], weights.shape[2]))
    for number in range(weights.shape[0]):
        is_member = (groups == number).unsqueeze(-1)
        product = torch.where(is_member, x, 0) @ weights[number]
        result = torch.where(is_member, product if bias is None else product + bias[number], result)
    return result


# ---- sparse attention of Ascend's custom library, whose formulas MindSpore does not document


def _refuse(like: T, shape: list[int], name: str) -> T:
    raise NotImplementedError(message(
        f"{name}: a kernel of Ascend without a documented formula", "an operator that MindSpore documents", hint="use ops.BatchMatMul",
    ))


_UNDOCUMENTED = define(
    "undocumented(Tensor like, SymInt[] shape, str name) -> Tensor", _refuse, lambda like, shape, _: like.new_empty(shape),
)
"""The result of an operator without a known formula: it has a shape in a graph that is compiled, and raises an error when it runs."""


@op(primitive="MatmulDDS", init=("bs", "heads"))
def _matmul_dds(q: T, k: T, local_mask: T, global_mask: T, bs: int = 1, heads: int = 1) -> tuple[T, T]:
    """Return Tensors of the shapes of MatmulDDS's local and global scores; raises NotImplementedError when it runs.

    `q` and `k` are (heads * width / 16, bs * length / 16, 16, 16), `local_mask` is (length / 16, bs * block / 16, 16, 16).
    """
    del k, global_mask, bs                 # the masks say how many sequences there are
    length = local_mask.shape[0] * local_mask.shape[-1]
    batch = q.shape[1] * q.shape[2] // length
    block = local_mask.shape[1] * local_mask.shape[2] // max(1, batch)
    rows = (batch, heads, length // max(1, block))
    local, total = ((*rows, size // 16, block // 16, 16, 16) for size in (block, length // 4))
    return _UNDOCUMENTED(q.detach(), local, "MatmulDDS"), _UNDOCUMENTED(q.detach(), total, "MatmulDDS")


@op(primitive="DSDMatmul")
def _dsd_matmul(input_w1: T, input_w2: T, input_v: T) -> T:
    """Return a Tensor of the shape of DSDMatmul's result, (batch, heads, width / 16, length / 16, 16, 16); raises when it runs."""
    del input_w2
    batch, heads, blocks, _, block_rows = input_w1.shape[:5]
    shape = (batch, heads, input_v.shape[1] // heads, blocks * block_rows, 16, 16)
    return _UNDOCUMENTED(input_w1.detach(), shape, "DSDMatmul")
