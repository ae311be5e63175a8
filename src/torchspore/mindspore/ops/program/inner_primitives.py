"""Primitives of MindSpore's internal modules that have a CPU kernel: parts of embedding caches, of joins, and a few gradients."""
from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.declare import OPERATORS, op, updating
from torchspore.mindspore.ops.declaration.indices import as_index
from torchspore.mindspore.ops.gradients.grad_primitives import vjp
from torchspore.mindspore.ops.sparse_formats.coo_primitives import flat_indices

T = torch.Tensor

# ---- embedding caches


@updating("variable", primitive="DynamicAssign")
def _dynamic_assign(variable: T, value: T) -> T:
    """Assign the values of `value` to a Parameter; return it."""
    if value.numel() != variable.numel():
        raise ValueError(f"expected {variable.numel()} elements, got {value.numel()}.")
    return value.reshape(variable.shape)


@op(primitive="PadAndShift")
def _pad_and_shift(input_x: T, cum_sum_arr: T, shift_idx: Any) -> T:
    """The elements of `input_x` from cum_sum_arr[shift_idx] to cum_sum_arr[shift_idx + 1] (exclusive), padded with -1 to its last value."""
    ends, at = cum_sum_arr.tolist(), int(shift_idx)
    if not 0 <= at < len(ends) - 1:
        raise ValueError(f"shift_idx={at}: expected a number from 0 to {len(ends) - 2}.")
    padded = input_x.new_full((ends[-1],), -1)
    padded[ends[at]:ends[at + 1]] = input_x[: ends[at + 1] - ends[at]]
    return padded


# ---- joins, shapes, numbers


@op(primitive="DynamicStitch")
def _dynamic_stitch(indices: Any, data: Any) -> T:
    """Combine slices into one Tensor, each at the row of its index; of several slices for one row, the last one counts."""
    at = [as_index(index) for index in indices]
    rest = data[0].shape[at[0].ndim:]
    for index, values in zip(at, data):
        if tuple(values.shape) != (*index.shape, *rest):
            raise ValueError(f"expected data of shape {(*index.shape, *rest)}, got {tuple(values.shape)}.")
    stitched = data[0].new_zeros((max(int(index.max()) for index in at) + 1, *rest))
    for index, values in zip(at, data):
        stitched = stitched.index_copy(0, index.reshape(-1), values.reshape(-1, *rest))
    return stitched


@op(primitive="SameTypeShape")
def _check_equal_type_and_shape(x: T, y: T) -> T:
    """Return x, after a check that y has its dtype and shape."""
    if x.dtype is not y.dtype:
        raise TypeError(f"expected one dtype, got {x.dtype} and {y.dtype}.".replace("torch.", ""))
    if x.shape != y.shape:
        raise ValueError(f"expected one shape, got {tuple(x.shape)} and {tuple(y.shape)}.")
    return x.clone()


@op(primitive="ClipByNorm", init=("axis",))
def _clip_by_norm(x: T, clip_norm: T, axis: Any = None) -> T:
    """Scale x along `axis` (all axes by default) down to the norm `clip_norm` where its norm is larger."""
    if not x.is_floating_point():
        raise TypeError("expected floating-point numbers.")
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    length = torch.linalg.vector_norm(x.float(), dim=axes or tuple(range(x.ndim)), keepdim=True)
    limit = clip_norm.float() if isinstance(clip_norm, T) else torch.full((), clip_norm, device=x.device)
    return (x.float() * limit / torch.maximum(length, limit)).to(x.dtype)


def _offsets(lengths: list[list[int]], axis: int) -> list[list[int]]:
    """Return where each of the joined parts begins."""
    offsets, begin = [], 0
    for lengths_of_part in lengths:
        offsets.append([begin if at == axis % len(lengths_of_part) else 0 for at in range(len(lengths_of_part))])
        begin += lengths_of_part[axis]
    return offsets


@op(primitive="ConcatOffset", init=("N", "axis"))
def _concat_offset(input_x: Any, N: int = 2, axis: int = 0) -> T:
    """Return where each of `N` Tensors begins after joining along `axis`: (N, rank), int64."""
    if len(input_x) != N:
        raise ValueError(f"expected {N} Tensors, got {len(input_x)}.")
    return torch.tensor(_offsets([list(part.shape) for part in input_x], axis), device=input_x[0].device)


@op(primitive="ConcatOffsetV1")
def _concat_offset_v1(axis: T, x: Any) -> tuple[T, ...]:
    """Return where each part begins after joining Tensors of the shapes `x` along `axis`, as Tensors like these."""
    offsets = _offsets([part.tolist() for part in x], int(axis))
    return tuple(torch.tensor(offset, dtype=tensor.dtype, device=tensor.device) for offset, tensor in zip(offsets, x))


@op(primitive="DynamicBroadcastGradientArgs")
def _broadcast_gradient_args(s0: Any, s1: Any) -> tuple[T, T]:
    """Return the axes along which each of two shapes broadcasts to the other: a gradient is summed over them."""
    first, second = sizes(s0), sizes(s1)
    rank = max(len(first), len(second))
    long = [[1] * (rank - len(lengths)) + lengths for lengths in (first, second)]
    like = s0 if isinstance(s0, T) else torch.zeros((), dtype=torch.int64)
    axes = [[] if long[0] == long[1] else [at for at, length in enumerate(lengths) if length == 1] for lengths in long]
    return tuple(torch.tensor(reduced, dtype=like.dtype, device=like.device) for reduced in axes)  # type: ignore[return-value]


@op(primitive="Lu", init=("output_idx_type",))
def _lu(input: T, output_idx_type: Any) -> tuple[T, T]:
    """The LU factors of square matrices in one Tensor, and the permutation of the rows."""
    from torchspore.mindspore.ops.declaration.arguments import as_dtype

    factors, pivots = torch.linalg.lu_factor(input)
    order = torch.lu_unpack(factors, pivots, unpack_data=False)[0].mT.argmax(-1)
    return factors, order.to(as_dtype(output_idx_type))


# ---- losses and gradients


@op(primitive="SparseSoftmaxCrossEntropyWithLogitsV2")
def _cross_entropy_v2(logits: T, labels: T) -> tuple[T, T]:
    """The losses (N,) of logits (N, C), and their gradient for the logits."""
    chances = torch.log_softmax(logits, -1)
    at = as_index(labels)
    if bool(((at < 0) | (at >= logits.shape[-1])).any()):
        raise ValueError(f"expected classes from 0 to {logits.shape[-1] - 1}, got {at.tolist()}.")
    return F.nll_loss(chances, at, reduction="none"), chances.exp() - F.one_hot(at, logits.shape[-1]).to(logits.dtype)


@op(primitive="LuUnpackGrad", init=("L_grad_flag", "U_grad_flag"))
def _lu_unpack_grad(L_grad: T, U_grad: T, LU_data: T, L_grad_flag: bool, U_grad_flag: bool) -> tuple[T, T]:
    """The gradients of LuUnpack for the triangles below and on or above the diagonal; those that are not requested are zeros."""
    shape = LU_data.shape
    lower, upper = (torch.zeros(shape, dtype=LU_data.dtype, device=LU_data.device) for _ in range(2))
    if L_grad_flag:
        lower[..., : L_grad.shape[-2], : L_grad.shape[-1]] = L_grad.tril(-1)
    if U_grad_flag:
        upper[..., : U_grad.shape[-2], : U_grad.shape[-1]] = U_grad.triu()
    return lower, upper


@op(primitive="SparseAddGrad")
def _sparse_add_grad(backprop_val_grad: T, x1_indices: T, x2_indices: T, sum_indices: T) -> tuple[T, T]:
    """The gradients of SparseAdd for the values of both inputs; 0 where the sum has no such position."""
    lengths = (torch.cat([x1_indices, x2_indices, sum_indices]).amax(0) + 1).tolist()
    total = flat_indices(sum_indices, lengths)
    gradients = []
    for indices in (x1_indices, x2_indices):
        is_match = flat_indices(indices, lengths).unsqueeze(1) == total
        gradients.append(torch.where(is_match.any(1), backprop_val_grad[is_match.long().argmax(1)], 0))
    return gradients[0], gradients[1]


@op(primitive="MaxPool3DGradGrad", init=("kernel_size", "strides", "pad_mode", "data_format"))
def _max_pool3d_grad_grad(
    origin_input: T, origin_output: T, grad: T, kernel_size: Any = (1, 1, 1, 1, 1), strides: Any = (1, 1, 1, 1, 1),
    pad_mode: str = "VALID", data_format: str = "NCDHW",
) -> T:
    """The gradient of MaxPool3DGrad for its `grad`: the elements of `grad`, of origin_input's shape, at the maxima of MaxPool3D."""
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
    """The gradients of DeformableOffsets for x and for the offsets."""
    body = OPERATORS["_deformable_offsets"].body
    return vjp(  # type: ignore[return-value]
        lambda x, offsets: body(x, offsets, strides, pads, kernel_size, dilations, data_format, deformable_groups, modulated),
        (x, offsets), grad,
    )
