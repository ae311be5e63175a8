"""Primitives of MindSpore's own modules with a kernel for the CPU: parts of embedding caches, of joins, and a few gradients."""
from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from torchspore.mindspore.ops.array import sizes
from torchspore.mindspore.ops.coo_primitives import places
from torchspore.mindspore.ops.declare import OPERATORS, op, updating
from torchspore.mindspore.ops.grad_primitives import vjp
from torchspore.mindspore.ops.indices import as_index

T = torch.Tensor

# ---- embedding caches


@updating("variable", primitive="DynamicAssign")
def _dynamic_assign(variable: T, value: T) -> T:
    """Gives a Parameter the values of `value`; gives it back."""
    if value.numel() != variable.numel():
        raise ValueError(f"expected {variable.numel()} elements, got {value.numel()}.")
    return value.reshape(variable.shape)


@op(primitive="PadAndShift")
def _pad_and_shift(input_x: T, cum_sum_arr: T, shift_idx: Any) -> T:
    """The first elements of `input_x` from cum_sum_arr[shift_idx] to below cum_sum_arr[shift_idx + 1], and -1 up to its last value."""
    ends, at = cum_sum_arr.tolist(), int(shift_idx)
    if not 0 <= at < len(ends) - 1:
        raise ValueError(f"shift_idx={at}: expected a number from 0 to {len(ends) - 2}.")
    found = input_x.new_full((ends[-1],), -1)
    found[ends[at]:ends[at + 1]] = input_x[: ends[at + 1] - ends[at]]
    return found


# ---- joins, shapes, numbers


@op(primitive="DynamicStitch")
def _dynamic_stitch(indices: Any, data: Any) -> T:
    """Slices put together in one Tensor, each at the row that its index names; of several for one row the last one counts."""
    at = [as_index(one) for one in indices]
    rest = data[0].shape[at[0].ndim:]
    for place, values in zip(at, data):
        if tuple(values.shape) != (*place.shape, *rest):
            raise ValueError(f"expected data of shape {(*place.shape, *rest)}, got {tuple(values.shape)}.")
    found = data[0].new_zeros((max(int(one.max()) for one in at) + 1, *rest))
    for place, values in zip(at, data):
        found = found.index_copy(0, place.reshape(-1), values.reshape(-1, *rest))
    return found


@op(primitive="SameTypeShape")
def _same_type_shape(x: T, y: T) -> T:
    """x, whose dtype and shape y has too."""
    if x.dtype is not y.dtype:
        raise TypeError(f"expected one dtype, got {x.dtype} and {y.dtype}.".replace("torch.", ""))
    if x.shape != y.shape:
        raise ValueError(f"expected one shape, got {tuple(x.shape)} and {tuple(y.shape)}.")
    return x.clone()


@op(primitive="ClipByNorm", init=("axis",))
def _clip_by_norm(x: T, clip_norm: T, axis: Any = None) -> T:
    """x made shorter along `axis` (all axes by default) where its length is above `clip_norm`, to that length."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    length = torch.linalg.vector_norm(x.float(), dim=axes or tuple(range(x.ndim)), keepdim=True)
    limit = clip_norm.float() if isinstance(clip_norm, T) else torch.full((), clip_norm, device=x.device)
    return (x.float() * limit / torch.maximum(length, limit)).to(x.dtype)


def _offsets(lengths: list[list[int]], axis: int) -> list[list[int]]:
    """Where each of the joined parts begins."""
    found, begin = [], 0
    for one in lengths:
        found.append([begin if at == axis % len(one) else 0 for at in range(len(one))])
        begin += one[axis]
    return found


@op(primitive="ConcatOffset", init=("N", "axis"))
def _concat_offset(input_x: Any, N: int = 2, axis: int = 0) -> T:
    """Where each of `N` Tensors begins when they are joined along `axis`: (N, rank), int64."""
    if len(input_x) != N:
        raise ValueError(f"expected {N} Tensors, got {len(input_x)}.")
    return torch.tensor(_offsets([list(one.shape) for one in input_x], axis), device=input_x[0].device)


@op(primitive="ConcatOffsetV1")
def _concat_offset_v1(axis: T, x: Any) -> tuple[T, ...]:
    """Where each part begins when Tensors of the shapes `x` are joined along `axis`: Tensors like these."""
    found = _offsets([one.tolist() for one in x], int(axis))
    return tuple(torch.tensor(part, dtype=one.dtype, device=one.device) for part, one in zip(found, x))


@op(primitive="DynamicBroadcastGradientArgs")
def _broadcast_gradient_args(s0: Any, s1: Any) -> tuple[T, T]:
    """The axes along which each of two shapes was stretched to the other: what a gradient is summed over."""
    first, second = sizes(s0), sizes(s1)
    rank = max(len(first), len(second))
    long = [[1] * (rank - len(one)) + one for one in (first, second)]
    like = s0 if isinstance(s0, T) else torch.zeros((), dtype=torch.int64)
    found = [[] if long[0] == long[1] else [at for at, length in enumerate(one) if length == 1] for one in long]
    return tuple(torch.tensor(one, dtype=like.dtype, device=like.device) for one in found)  # type: ignore[return-value]


@op(primitive="Lu", init=("output_idx_type",))
def _lu(input: T, output_idx_type: Any) -> tuple[T, T]:
    """Both triangles of square matrices in one, and the rows in their new order."""
    from torchspore.mindspore.ops.activation import as_dtype

    both, pivots = torch.linalg.lu_factor(input)
    order = torch.lu_unpack(both, pivots, unpack_data=False)[0].mT.argmax(-1)
    return both, order.to(as_dtype(output_idx_type))


# ---- losses and gradients


@op(primitive="SparseSoftmaxCrossEntropyWithLogitsV2")
def _cross_entropy_v2(logits: T, labels: T) -> tuple[T, T]:
    """The losses (N,) of logits (N, C), and their gradient by the logits."""
    chances = torch.log_softmax(logits, -1)
    at = as_index(labels)
    if bool(((at < 0) | (at >= logits.shape[-1])).any()):
        raise ValueError(f"expected classes from 0 to {logits.shape[-1] - 1}, got {at.tolist()}.")
    return F.nll_loss(chances, at, reduction="none"), chances.exp() - F.one_hot(at, logits.shape[-1]).to(logits.dtype)


@op(primitive="LuUnpackGrad", init=("L_grad_flag", "U_grad_flag"))
def _lu_unpack_grad(L_grad: T, U_grad: T, LU_data: T, L_grad_flag: bool, U_grad_flag: bool) -> tuple[T, T]:
    """The gradients of LuUnpack by the triangle below the diagonal and by that from it on, zeros for one that is not asked for."""
    shape = LU_data.shape
    lower, upper = (torch.zeros(shape, dtype=LU_data.dtype, device=LU_data.device) for _ in range(2))
    if L_grad_flag:
        lower[..., : L_grad.shape[-2], : L_grad.shape[-1]] = L_grad.tril(-1)
    if U_grad_flag:
        upper[..., : U_grad.shape[-2], : U_grad.shape[-1]] = U_grad.triu()
    return lower, upper


@op(primitive="SparseAddGrad")
def _sparse_add_grad(backprop_val_grad: T, x1_indices: T, x2_indices: T, sum_indices: T) -> tuple[T, T]:
    """The gradients of SparseAdd by the values of both, by that of the sum's; 0 where the sum has no such place."""
    lengths = (torch.cat([x1_indices, x2_indices, sum_indices]).amax(0) + 1).tolist()
    total = places(sum_indices, lengths)
    found = []
    for one in (x1_indices, x2_indices):
        same = places(one, lengths).unsqueeze(1) == total
        found.append(torch.where(same.any(1), backprop_val_grad[same.long().argmax(1)], 0))
    return found[0], found[1]


@op(primitive="MaxPool3DGradGrad", init=("kernel_size", "strides", "pad_mode", "data_format"))
def _max_pool3d_grad_grad(
    origin_input: T, origin_output: T, grad: T, kernel_size: Any = (1, 1, 1, 1, 1), strides: Any = (1, 1, 1, 1, 1),
    pad_mode: str = "VALID", data_format: str = "NCDHW",
) -> T:
    """The gradient of MaxPool3DGrad by its `grad`: what `grad`, of origin_input's shape, has where MaxPool3D took its values."""
    body = OPERATORS["_max_pool3d_grad"].body
    options = {"kernel_size": kernel_size, "strides": strides, "pad_mode": pad_mode, "data_format": data_format}
    return vjp(lambda back: body(origin_input, origin_output, back, **options), (torch.zeros_like(origin_output),), grad)[0]


@op(
    primitive="DeformableOffsetsGrad",
    init=("strides", "pads", "kernel_size", "dilations", "data_format", "deformable_groups", "modulated"),
)
def _deformable_offsets_grad(
    grad: T, x: T, offsets: T, strides: Any, pads: Any, kernel_size: Any, dilations: Any = (1, 1, 1, 1), data_format: str = "NCHW",
    deformable_groups: int = 1, modulated: bool = True,
) -> tuple[T, T]:
    """The gradients of DeformableOffsets by x and by the offsets."""
    body = OPERATORS["_deformable_offsets"].body
    return vjp(  # type: ignore[return-value]
        lambda x, offsets: body(x, offsets, strides, pads, kernel_size, dilations, data_format, deformable_groups, modulated),
        (x, offsets), grad,
    )
