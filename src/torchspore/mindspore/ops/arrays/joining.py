"""Concatenate, split, rotate and rearrange Tensors, and build coordinate grids."""
from __future__ import annotations

import itertools
from typing import Any

import torch

from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.arrays.array import slice_bounds
from torchspore.mindspore.ops.declaration.arguments import several, sizes
from torchspore.mindspore.ops.declaration.declare import explaining, op, updating
from torchspore.mindspore.ops.declaration.indices import as_index, normalized_axis
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


@op()
def hstack(tensors: Any) -> T:
    """Concatenate the Tensors along axis 1, vectors along axis 0."""
    return torch.hstack(several(tensors))


@op()
def vstack(inputs: Any) -> T:
    """Stack the Tensors along axis 0; vectors become rows."""
    return torch.vstack(several(inputs))


@op()
def row_stack(tensors: Any) -> T:
    """Stack the Tensors along axis 0; vectors become rows."""
    return torch.vstack(several(tensors))


@op()
def tensor_slice(input: T, begin: Any, size: Any) -> T:
    """The slice that begins at `begin` and has `size`; -1 means to the end."""
    for axis, (start, count) in enumerate(slice_bounds(input, begin, size)):
        input = torch.narrow(input, axis, start, input.shape[axis] - start if count == -1 else count)
    return input.clone()


@op()
def dstack(tensors: Any) -> T:
    """Concatenate the Tensors along axis 2."""
    return torch.dstack(several(tensors))


@op()
def column_stack(tensors: Any) -> T:
    """Concatenate the Tensors along axis 1; vectors become columns."""
    return torch.column_stack(several(tensors))


@op(methods=("hsplit",))
def hsplit(input: T, indices_or_sections: Any) -> Any:
    """Split along axis 1 (a vector along axis 0), into a number of nearly equal parts or at indexes."""
    return tuple(torch.tensor_split(input, _cuts(indices_or_sections), dim=int(input.ndim > 1)))


@op(methods=("vsplit",))
def vsplit(input: T, indices_or_sections: Any) -> Any:
    """Split along axis 0, into a number of nearly equal parts or at indexes."""
    return tuple(torch.tensor_split(input, _cuts(indices_or_sections), dim=0))


@op(methods=("dsplit",))
def dsplit(input: T, indices_or_sections: Any) -> Any:
    """Split along axis 2, into a number of nearly equal parts or at indexes."""
    return tuple(torch.tensor_split(input, _cuts(indices_or_sections), dim=2))


@op(methods=("tensor_split",))
def tensor_split(input: T, indices_or_sections: Any, axis: int = 0) -> Any:
    """Split along `axis`, into a number of nearly equal parts or at indexes."""
    return tuple(torch.tensor_split(input, _cuts(indices_or_sections), dim=axis))


def _cuts(value: Any) -> Any:
    return value if isinstance(value, int) else sizes(value)


@op(primitive="SplitV", init=("size_splits", "split_dim", "num_split"))
def _split_v(input_x: T, size_splits: Any, split_dim: int, num_split: int) -> Any:
    """Split along `split_dim` into parts of these lengths, one of which may be -1."""
    lengths = list(size_splits)
    if len(lengths) != num_split:
        raise ValueError(f"num_split={num_split}: expected {len(lengths)}, the number of lengths in size_splits.")
    if -1 in lengths:
        lengths[lengths.index(-1)] = input_x.shape[split_dim] - sum(lengths) - 1
    return tuple(torch.split(input_x, lengths, split_dim))


def _at_least(function: Any, inputs: Any) -> Any:
    return function(inputs) if isinstance(inputs, T) else tuple(function(item) for item in inputs)


@op()
def atleast_1d(inputs: Any) -> Any:
    """The Tensor, or each of a tuple or list, with at least one axis."""
    return _at_least(torch.atleast_1d, inputs)


@op()
def atleast_2d(inputs: Any) -> Any:
    """The Tensor, or each of a tuple or list, with at least two axes."""
    return _at_least(torch.atleast_2d, inputs)


@op()
def atleast_3d(inputs: Any) -> Any:
    """The Tensor, or each of a tuple or list, with at least three axes."""
    return _at_least(torch.atleast_3d, inputs)


@op()
def block_diag(*inputs: T) -> T:
    """The block-diagonal matrix of the Tensors."""
    return torch.block_diag(*inputs)


@op()
def cartesian_prod(*inputs: T) -> T:
    """All combinations of one element of each vector, as rows."""
    return torch.cartesian_prod(*(t if t.ndim else t.reshape(1) for t in inputs)).reshape(-1, len(inputs))


@op()
def combinations(input: T, r: int = 2, with_replacement: bool = False) -> T:
    """All combinations of r elements of a vector in its order, as rows."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = constant(list(choose(range(input.shape[0]), r)), input.device, torch.int64).reshape(-1, r)
    return input[rows]


@op(methods=("rot90",), wide=Widening())
def rot90(input: T, k: int, dims: Any) -> T:
    """Rotate k times by 90 degrees in the plane of two axes, from the first towards the second."""
    return torch.rot90(input, k, sizes(dims))


@op(methods=("fliplr",), wide=Widening())
def fliplr(input: T) -> T:
    """Reverse the order along axis 1."""
    return torch.fliplr(input)


@op(methods=("flipud",), wide=Widening())
def flipud(input: T) -> T:
    """Reverse the order along axis 0."""
    return torch.flipud(input)


@op(methods=("reverse",), wide=Widening())
def reverse(x: T, axis: Any) -> T:
    """Reverse the order along `axis`."""
    return torch.flip(x, sizes(axis))


@op()
def vander(x: T, N: int | None = None) -> T:
    """The powers of a vector as `N` columns, the highest first."""
    if not x.requires_grad:
        return torch.vander(x, N)
    count = x.shape[0] if N is None else N                             # torch.vander has no gradient
    return torch.pow(x.unsqueeze(-1), torch.arange(count - 1, -1, -1, device=x.device))


@op(primitive="Meshgrid", init=("indexing",))
def _meshgrid(inputs: Any, indexing: str = "xy") -> Any:
    """Coordinate matrices of a tuple of coordinate vectors."""
    return tuple(torch.meshgrid(*inputs, indexing=indexing))


@op(primitive="LinSpace")
def _lin_space(start: T, stop: T, num: Any) -> T:
    """`num` numbers from `start` to `stop`, both included, along a new last axis."""
    count = int(num)
    steps = torch.arange(count, dtype=start.dtype, device=start.device)
    if count == 1:
        return start.unsqueeze(-1).clone()
    step = ((stop - start) / (count - 1)).unsqueeze(-1)
    # Computed from both ends, so that the last number equals `stop` exactly.
    return torch.where(steps < count / 2, start.unsqueeze(-1) + steps * step, stop.unsqueeze(-1) - (count - 1 - steps) * step)


@op(primitive="Expand", methods=())
def expand(input_x: T, size: Any) -> T:
    """Broadcast to `size`; -1 keeps a length."""
    return input_x.expand(sizes(size)).clone()


@op(primitive="Roll", init=("shifts", "dims"))
def _roll(input: T, shifts: Any, dims: Any = None) -> T:
    """Shift along `dims`; elements that leave one end enter at the other."""
    return torch.roll(input, shifts, dims)


@op(primitive="TransposeView")
def _transpose_view(input: T, input_perm: Any) -> T:
    """Permute the axes to the order `input_perm`, as a view."""
    return input.permute(sizes(input_perm))


@op(primitive="TransposeExtView")
def _transpose_two(input: T, dim0: int, dim1: int) -> T:
    """Swap two axes, as a view."""
    return input.transpose(dim0, dim1)


@op(primitive="SelectView")
def _select_view(input: T, input_indices: Any, axis: int) -> T:
    """The slice at an index of `axis`, which is removed, as a view."""
    return input.select(int(axis), int(input_indices))


@op(primitive="DepthToSpace", init=("block_size",))
def _depth_to_space(x: T, block_size: int) -> T:
    """Move channels into blocks of pixels: (N, C * b * b, H, W) becomes (N, C, H * b, W * b)."""
    n, c, h, w = x.shape
    _divides(block_size, block_size, "elements")
    _divides(block_size**2, c, "channels")
    parts = x.reshape(n, block_size, block_size, c // block_size**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return parts.reshape(n, c // block_size**2, h * block_size, w * block_size)


@op(primitive="SpaceToDepth", init=("block_size",))
def _space_to_depth(x: T, block_size: int) -> T:
    """Move blocks of pixels into channels: (N, C, H * b, W * b) becomes (N, C * b * b, H, W)."""
    n, c, h, w = x.shape
    _divides(block_size, h, "rows")
    _divides(block_size, w, "columns")
    parts = x.reshape(n, c, h // block_size, block_size, w // block_size, block_size).permute(0, 3, 5, 1, 2, 4)
    return parts.reshape(n, c * block_size**2, h // block_size, w // block_size)


def _divides(block: int, length: int, unit: str) -> None:
    if not isinstance(block, int):
        raise TypeError(f"expected an int as the size of blocks, got {type(block).__name__}.")
    if block < 1 or length % block:
        raise ValueError(f"expected a number of {unit} that {block} divides, got {length}.")


def _batch_to_space(x: T, block: list[int], crops: Any) -> T:
    """Move the batch into blocks of the axes after `x.ndim - len(block)`, then crop (the inverse of `_space_to_batch`)."""
    lead = x.ndim - len(block)
    batch = x.shape[0] // torch.Size(block).numel()
    _divides(torch.Size(block).numel(), x.shape[0], "images in the batch")
    parts = x.reshape(*block, batch, *x.shape[1:])
    order = [len(block), *range(len(block) + 1, len(block) + lead)]
    for i in range(len(block)):
        order += [len(block) + lead + i, i]
    out = parts.permute(order).reshape(batch, *x.shape[1:lead], *[s * b for s, b in zip(x.shape[lead:], block)])
    for i, (before, after) in enumerate(_rows(crops)):
        out = out.narrow(lead + i, before, out.shape[lead + i] - before - after)
    return out.clone()


def _space_to_batch(x: T, block: list[int], paddings: Any) -> T:
    """Move blocks of the last axes into the batch, after padding with zeros."""
    lead = x.ndim - len(block)
    x = torch.nn.functional.pad(x, [n for pair in reversed(_rows(paddings)) for n in pair])
    shape, order = list(x.shape[:lead]), []
    for i, b in enumerate(block):
        _divides(b, x.shape[lead + i], f"elements along axis {lead + i}")
        shape += [x.shape[lead + i] // b, b]
        order.append(lead + 2 * i + 1)
    order += [*range(lead), *[lead + 2 * i for i in range(len(block))]]
    out = x.reshape(shape).permute(order)
    return out.reshape(x.shape[0] * torch.Size(block).numel(), *out.shape[len(block) + 1 :])


def _rows(pairs: Any) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in (pairs.tolist() if isinstance(pairs, T) else pairs)]


def _block(block: Any, pairs: Any) -> list[int]:
    lengths = [block] * len(_rows(pairs)) if isinstance(block, int) else sizes(block)
    for length in lengths:
        if length < 1:
            raise ValueError(f"block_shape={block!r}: expected ints from 1 on.")
    return lengths


@op()
def batch_to_space_nd(input_x: T, block_shape: Any, crops: Any) -> T:
    """Move the batch into blocks of the last axes, then remove `crops` at both ends."""
    return _batch_to_space(input_x, _block(block_shape, crops), crops)


@op(primitive="BatchToSpaceND", init=("block_shape", "crops"))
def _batch_to_space_nd(input_x: T, block_shape: Any, crops: Any) -> T:
    """Move the batch into blocks of the last axes, then remove `crops` at both ends."""
    return _batch_to_space(input_x, _block(block_shape, crops), crops)


@op(primitive="BatchToSpaceNDV2")
def _batch_to_space_nd_v2(input_x: T, block_shape: Any, crops: Any) -> T:
    """Move the batch into blocks of the axes from 1 on, then remove `crops` at both ends."""
    block = _block(block_shape, crops)
    inner = 1 + len(block)
    flat = input_x.reshape(*input_x.shape[:inner], -1).movedim(-1, 1)
    return _batch_to_space(flat, block, crops).movedim(1, -1).reshape(-1, *_lengths(input_x, block, crops), *input_x.shape[inner:])


def _lengths(x: T, block: list[int], crops: Any) -> list[int]:
    return [s * b - sum(crop) for s, b, crop in zip(x.shape[1:], block, _rows(crops))]


@op(primitive="BatchToSpace", init=("block_size", "crops"))
def _batch_to_space_images(input_x: T, block_size: int, crops: Any) -> T:
    """Move the batch into blocks of pixels, then remove `crops` at both ends."""
    return _batch_to_space(input_x, [block_size] * 2, crops)


@op()
def space_to_batch_nd(input_x: T, block_size: Any, paddings: Any) -> T:
    """Pad the last axes with `paddings` of zeros at both ends, then move blocks of them into the batch."""
    return _space_to_batch(input_x, _block(block_size, paddings), paddings)


@op(primitive="SpaceToBatchND", init=("block_shape", "paddings"))
def _space_to_batch_nd(input_x: T, block_shape: Any, paddings: Any) -> T:
    """Pad the last axes with `paddings` of zeros at both ends, then move blocks of them into the batch."""
    return _space_to_batch(input_x, _block(block_shape, paddings), paddings)


@op(primitive="SpaceToBatch", init=("block_size", "paddings"))
def _space_to_batch_images(input_x: T, block_size: int, paddings: Any) -> T:
    """Pad the image with `paddings` of zeros at both ends, then move blocks of pixels into the batch."""
    return _space_to_batch(input_x, [block_size] * 2, paddings)


@op(primitive="ReverseSequence", init=("seq_dim", "batch_dim"), wide=Widening())
def reverse_sequence(x: T, seq_lengths: T, seq_dim: int, batch_dim: int = 0) -> T:
    """Reverse the first seq_lengths[i] elements along `seq_dim`, for each i along `batch_dim`."""
    seq, batch = normalized_axis(seq_dim, x.ndim), normalized_axis(batch_dim, x.ndim)
    if seq == batch:
        raise ValueError(f"seq_dim={seq_dim}: expected another axis than batch_dim.")
    positions = torch.arange(x.shape[seq], device=x.device)
    lengths = as_index(seq_lengths).unsqueeze(-1)
    at = torch.where(positions < lengths, lengths - 1 - positions, positions)
    at = at if batch < seq else at.mT
    shape = [x.shape[i] if i in (seq, batch) else 1 for i in range(x.ndim)]
    return torch.gather(x, seq, at.reshape(shape).expand(x.shape))


@op(primitive="ChannelShuffle", init=("group",))
def _channel_shuffle(x: T, group: int) -> T:
    """Shuffle the channels (axis 1) of `group` groups: one of each group in turn."""
    return _shuffled(x, group)


@op()
def channel_shuffle(x: T, groups: int) -> T:
    """Shuffle the channels (axis 1) of `groups` groups: one of each group in turn."""
    return _shuffled(x, groups)


def _shuffled(x: T, groups: int) -> T:
    _divides(groups, x.shape[1], "channels")
    return x.reshape(x.shape[0], groups, -1, *x.shape[2:]).transpose(1, 2).reshape(x.shape)


@op(primitive="ParallelConcat")
def _parallel_concat(values: Any) -> T:
    """Stack the Tensors, whose axis 0 has length 1, along axis 0."""
    return torch.cat(several(values), 0)


@op()
def repeat_elements(x: T, rep: int, axis: int = 0) -> T:
    """Repeat each element `rep` times along `axis`."""
    return torch.repeat_interleave(x, rep, axis)


@op()
def sequence_mask(lengths: T, maxlen: int | None = None) -> T:
    """True at the first lengths[...] of `maxlen` positions (by default, of the longest): shape (..., maxlen)."""
    lengths = as_index(lengths)
    if maxlen is None:
        maxlen = int(lengths.max())
    return torch.arange(maxlen, device=lengths.device) < lengths.unsqueeze(-1)


@op(primitive="TensorShape")
def dyn_shape(input_x: T) -> T:
    """The shape as an int64 Tensor."""
    return constant(list(input_x.shape), input_x.device, torch.int64)


@op(primitive="DynamicShape", init=("dtype",))
def _dynamic_shape(x: T, dtype: int = 9) -> T:
    """The shape as an int64 Tensor. Raises ValueError for a `dtype` other than 9, MindSpore's number of int64."""
    if dtype != 9:
        raise ValueError(f"dtype={dtype}: expected 9, which is int64.")
    return constant(list(x.shape), x.device, torch.int64)


@op(primitive="TensorToTuple")
def _tensor_to_tuple(x: T) -> Any:
    """The numbers of a vector as a tuple."""
    return tuple(x.tolist())


@op(primitive="InvertPermutation", raw_arguments=True)
@explaining
def _invert_permutation(input_x: Any) -> tuple[int, ...]:
    """The inverse of a permutation: y[x[i]] = i. Raises ValueError if the numbers are not a permutation."""
    values = list(input_x)
    if sorted(values) != list(range(len(values))):
        raise ValueError(f"expected each number from 0 to {len(values) - 1} once.")
    out = [0] * len(values)
    for i, value in enumerate(values):
        out[value] = i
    return tuple(out)


@updating("x", primitive="CopyWithSlice")
def _copy_with_slice(x: T, y: T) -> T:
    """Write the values of y, broadcast to the shape of x, into x, and return it."""
    return y.expand(x.shape).to(x.dtype).clone()


@op(primitive="FillV2", numbers=("shape",))
def _fill_v2(shape: Any, value: T) -> T:
    """`value` in `shape`, in its dtype."""
    return value.expand(sizes(shape)).clone()
