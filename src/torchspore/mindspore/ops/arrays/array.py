"""Shape, order and slices of Tensors."""
from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import torch

from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.arguments import several, sizes
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


@op(primitive="Reshape", older={"input_x": "input", "input_shape": "shape"}, short_path="reshape")
def reshape(input: T, shape: Any) -> T:
    """The same elements in memory order with another shape; -1 stands for the remaining size."""
    return input.reshape(sizes(shape))


@op(primitive="Transpose", older={"input_perm": "dims", "input_x": "input"}, short_path="permute")
def transpose(input: T, dims: Any) -> T:
    """Permute the axes to the order `dims`."""
    return input.permute(sizes(dims))


@op(methods=("permute",), short_path="permute")
def permute(input: T, axis: Any) -> T:
    """Permute the axes to the order `axis`."""
    return input.permute(sizes(axis))


@op(primitive="ExpandDims", methods=("expand_dims", "unsqueeze"), short_path="expand_dims")
def expand_dims(input_x: T, axis: int) -> T:
    """Insert an axis of length 1 at `axis`."""
    return input_x.unsqueeze(axis)


@op(short_path="expand_dims")
def unsqueeze(input: T, dim: int) -> T:
    """Insert an axis of length 1 at `dim`."""
    return input.unsqueeze(dim)


@op(methods=("squeeze",), short_path="squeeze")
def squeeze(input: T, axis: Any = None) -> T:
    """Remove the axes of length 1 that `axis` names, or all of them; a longer axis stays."""
    return input.squeeze() if axis is None or (isinstance(axis, tuple) and not axis) else input.squeeze(tuple(sizes(axis)))


@op(primitive="Squeeze", init=("axis",))
def _squeeze(input: T, axis: Any = ()) -> T:
    """Remove the axes of length 1 that `axis` names, or all of them; a longer axis stays."""
    return input.squeeze() if isinstance(axis, tuple) and not axis else input.squeeze(tuple(sizes(axis)))


@op()
def flatten(input: T, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> T:
    """Merge the axes from `start_dim` to `end_dim`; `order` 'C' is row-major, 'F' column-major."""
    if order not in ("C", "F"):
        raise (ValueError if isinstance(order, str) else TypeError)(f"flatten(order={order!r:.40}): expected 'C' or 'F'.")
    if order == "F":
        input = input.permute(*reversed(range(input.ndim)))
        input = input.reshape(-1) if start_dim == 0 else input
    if input.ndim < 2 and start_dim == 1 and end_dim in (-1, 0):
        return input.reshape(-1)
    return torch.flatten(input, start_dim, end_dim)


@op(primitive="Flatten")
def _flatten(input_x: T) -> T:
    """Merge all axes except the first."""
    return input_x.reshape(input_x.shape[0], -1) if input_x.ndim > 1 else input_x.reshape(-1, 1)


@op(methods=("ravel",))
def ravel(input: T) -> T:
    """Merge all axes."""
    return input.reshape(-1)


@op(primitive="Concat", init=("axis",))
def _concat(tensors: Any, axis: int = 0) -> T:
    """Concatenate the Tensors along `axis`; mixed dtypes are promoted."""
    return torch.cat(several(tensors), axis)


@op(short_path="cat")
def concat(tensors: Any, axis: int = 0) -> T:
    """Concatenate the Tensors along `axis`."""
    return torch.cat(several(tensors), axis)


@op(short_path="cat")
def cat(tensors: Any, axis: int = 0) -> T:
    """Concatenate the Tensors along `axis`."""
    return torch.cat(several(tensors), axis)


@op(short_path="stack")
def stack(tensors: Any, axis: int = 0) -> T:
    """Stack the Tensors along a new `axis`."""
    return torch.stack([tensors] if isinstance(tensors, T) else list(tensors), axis)


@op(primitive="Stack", init=("axis",))
def _stack(input_x: Any, axis: int = 0) -> T:
    """Stack the Tensors along a new `axis`."""
    return torch.stack([input_x] if isinstance(input_x, T) else list(input_x), axis)


@op(primitive="Unstack", init=("axis", "num"))
def _unstack(input_x: T, axis: int = 0, num: int | None = None) -> Any:
    """The slices along `axis`, which is removed."""
    return tuple(input_x.unbind(axis))


@op(methods=("unbind",))
def unbind(input: T, dim: int = 0) -> Any:
    """The slices along `dim`, which is removed."""
    return tuple(input.unbind(dim))


@op()
def unstack(input_x: T, axis: int = 0) -> Any:
    """The slices along `axis`, which is removed."""
    return tuple(input_x.unbind(axis))


@op(primitive="StridedSlice", init=("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"))
def strided_slice(
    input_x: T, begin: Any, end: Any, strides: Any, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> T:
    """The slice from `begin` to `end` with `strides`. Bit i of a mask changes the meaning of axis i: full, ..., None, or one element."""
    from torchspore.mindspore.ops.arrays.indexing import part_of

    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return part_of(input_x, _strided_index(begin, end, strides, masks))


def _strided_index(begin: Any, end: Any, strides: Any, masks: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the index (slices, ints, ... and None) that the arguments of `strided_slice` mean."""
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = masks
    index: list[Any] = []
    parts = sizes(begin), sizes(end), sizes(strides)
    if len({len(part) for part in parts}) > 1:
        raise ValueError(f"expected begin, end and strides of one length, got {', '.join(str(len(part)) for part in parts)}.")
    for i, (start, stop, step) in enumerate(zip(*parts)):
        if ellipsis_mask >> i & 1:
            index.append(Ellipsis)
        elif new_axis_mask >> i & 1:
            index.append(None)
        elif shrink_axis_mask >> i & 1:
            index.append(start)
        else:
            index.append(builtins.slice(None if begin_mask >> i & 1 else start, None if end_mask >> i & 1 else stop, step))
    return tuple(index)


@op(methods=("split",))
def split(tensor: T, split_size_or_sections: Any, axis: int = 0) -> Any:
    """Split along `axis` into parts of one size, the last one perhaps smaller, or into parts of the listed sizes."""
    return tuple(
        torch.split(tensor, split_size_or_sections if isinstance(split_size_or_sections, int) else list(split_size_or_sections), axis)
    )


@op(primitive="Split", init=("axis", "output_num"))
def _split(input_x: T, axis: int = 0, output_num: int = 1) -> Any:
    """Split into `output_num` equal parts along `axis`."""
    if input_x.shape[axis] % output_num:
        raise ValueError(f"expected a number of parts that divides {input_x.shape[axis]}, the length of axis {axis}, got {output_num}.")
    return tuple(torch.split(input_x, input_x.shape[axis] // output_num, axis))


@op(methods=("chunk",))
def chunk(input: T, chunks: int, axis: int = 0) -> Any:
    """Split into at most `chunks` parts of equal size along `axis`, the last one perhaps smaller."""
    return tuple(torch.chunk(input, chunks, axis))


@op(primitive="Tile", methods=("tile",), older={"multiples": "dims", "reps": "dims", "input_x": "input"})
def tile(input: T, dims: Any) -> T:
    """Repeat x along each axis, `dims` times."""
    return torch.tile(input, sizes(dims))


@op(primitive="BroadcastTo", init=("shape",))
def _broadcast_to(input_x: T, shape: Any) -> T:
    """Broadcast to `shape`; -1 keeps a length."""
    return input_x.expand(sizes(shape)).clone()


@op(methods=("broadcast_to",))
def broadcast_to(input: T, shape: Any) -> T:
    """Broadcast to `shape`; -1 keeps a length."""
    return input.expand(sizes(shape))


@op(methods=("expand_as",))
def expand_as(input: T, other: T) -> T:
    """Broadcast to the shape of `other`."""
    return input.expand_as(other)


@op(methods=("swapaxes",), short_path="swapaxes")
def swapaxes(input: T, axis0: int, axis1: int) -> T:
    """Swap two axes."""
    return input.swapaxes(axis0, axis1)


@op(methods=("swapdims",))
def swapdims(input: T, dim0: int, dim1: int) -> T:
    """Swap two axes."""
    return input.swapaxes(dim0, dim1)


@op(methods=("moveaxis", "movedim"))
def movedim(x: T, source: Any, destination: Any) -> T:
    """Move axes to other positions."""
    axis_groups = (source, destination)
    if any(isinstance(axes, (tuple, list)) for axes in axis_groups):
        source, destination = (list(axes) if isinstance(axes, (tuple, list)) else [axes] for axes in axis_groups)
    return torch.movedim(x, source, destination)


@op(methods=("flip",), wide=Widening())
def flip(input: T, dims: Any) -> T:
    """Reverse the order along `dims`."""
    return torch.flip(input, sizes(dims))


@op(primitive="ReverseV2", init=("axis",), wide=Widening())
def _reverse(input_x: T, axis: Any) -> T:
    """Reverse the order along `axis`."""
    return torch.flip(input_x, sizes(axis))


@op(methods=("roll",))
def roll(input: T, shifts: Any, dims: Any = None) -> T:
    """Shift along `dims`; elements that leave one end enter at the other."""
    return torch.roll(input, shifts, dims)


@op(methods=("repeat_interleave",))
def repeat_interleave(input: T, repeats: Any, axis: int | None = None) -> T:
    """Repeat each element `repeats` times along `axis`."""
    return repeated_elements(input, repeats, axis) if isinstance(repeats, (list, tuple)) else torch.repeat_interleave(input, repeats, axis)


def repeated_elements(input: T, repeats: Sequence[Any], axis: int | None) -> T:
    """Repeat each element along `axis` (None: of the flat Tensor) as a list of numbers says, whose sum a graph knows."""
    flat, at = (input.flatten(), 0) if axis is None else (input, axis)
    is_known = flat.ndim > 0 and -flat.ndim <= at < flat.ndim and all(type(count) is int and count >= 0 for count in repeats)
    if not is_known or type(flat.shape[at]) is not int or len(repeats) != flat.shape[at]:
        return torch.repeat_interleave(input, constant(repeats, input.device), axis)            # torch explains what does not fit
    positions = [position for position, count in enumerate(repeats) for _ in range(count)]
    return torch.index_select(flat, at, constant(positions, input.device, torch.int64))


@op(methods=("narrow",))
def narrow(input: T, axis: int, start: int, length: int) -> T:
    """The slice of `length` elements from `start` along `axis`."""
    return torch.narrow(input, axis, start, length)


def slice_bounds(input: T, begin: Any, size: Any) -> list[tuple[int, int]]:
    """Return (begin, length) for each axis of a slice. Raises ValueError if there is not exactly one pair for each axis."""
    starts, lengths = sizes(begin), sizes(size)
    if not len(starts) == len(lengths) == input.ndim:
        raise ValueError(f"expected {input.ndim} numbers as begin and as size, one for each axis, got {len(starts)} and {len(lengths)}.")
    return list(zip(starts, lengths))


@op(primitive="Slice")
def slice(input_x: T, begin: Any, size: Any) -> T:
    """The slice that begins at `begin` and has `size`; -1 means to the end."""
    for axis, (start, count) in enumerate(slice_bounds(input_x, begin, size)):
        input_x = torch.narrow(input_x, axis, start, input_x.shape[axis] - start if count == -1 else count)
    return input_x.clone()


@op(primitive="Shape", methods=())
def shape(input_x: T) -> tuple[int, ...]:
    """The shape, as a tuple of ints."""
    return tuple(input_x.shape)


@op(primitive="Rank")
def rank(input_x: T) -> int:
    """The number of axes."""
    return input_x.ndim


@op(primitive="Size")
def size(input_x: T) -> int:
    """The number of elements."""
    return input_x.numel()


@op(primitive="DType")
def dtype(x: T) -> Any:
    """The dtype of the elements."""
    from torchspore.engine.tensors.dtypes import FROM_TORCH

    return FROM_TORCH[x.dtype] if isinstance(x, T) else x.dtype


@op(primitive="Triu", init=("diagonal",), methods=("triu",), wide=Widening())
def triu(input: T, diagonal: int = 0) -> T:
    """The upper triangle; elements below the diagonal become zero."""
    return torch.triu(input, diagonal)


@op(primitive="Tril", init=("diagonal",), methods=("tril",), wide=Widening())
def tril(input: T, diagonal: int = 0) -> T:
    """The lower triangle; elements above the diagonal become zero."""
    return torch.tril(input, diagonal)


@op(methods=("diag",))
def diag(input: T) -> T:
    """The matrix with this diagonal; for an input of n axes, a Tensor of 2 n axes."""
    return torch.diag(input.reshape(-1)).reshape(*input.shape, *input.shape)


@op(methods=("diagonal",))
def diagonal(input: T, offset: int = 0, dim1: int = 0, dim2: int = 1) -> T:
    """The diagonal of the matrices along two axes."""
    return torch.diagonal(input, offset, dim1, dim2)


@op(primitive="Identity")
def _identity(x: T) -> T:
    """Return another Tensor with the same storage."""
    return x.view_as(x)


@op(raw_arguments=True)
def identity(x: Any) -> Any:
    """Return x unchanged. Programs use it in place of a function that reduces a tuple of gradients over processes."""
    return x


@op()
def meshgrid(*inputs: T, indexing: str = "xy") -> Any:
    """Coordinate matrices from coordinate vectors."""
    tensors = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) else inputs
    return tuple(torch.meshgrid(*tensors, indexing=indexing))
