"""Functions of mint that rearrange elements: shapes, slices, joins, indexes."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.tensors.creation import constant
from torchspore.mindspore import ops
from torchspore.mindspore.mint.shared import T, sizes
from torchspore.mindspore.ops.arrays.array import repeated_elements
from torchspore.mindspore.ops.declaration.declare import bridged, updating
from torchspore.mindspore.ops.declaration.indices import as_index, counted
from torchspore.mindspore.ops.declaration.wide import Widening


@bridged
def reshape(input: T, shape: Any) -> T:
    """The same elements in memory order with another shape; -1 stands for the remaining size."""
    return input.reshape(sizes(shape))


@bridged
def flatten(input: T, start_dim: int = 0, end_dim: int = -1) -> T:
    """Merge the axes from `start_dim` to `end_dim`."""
    return torch.flatten(input, start_dim, end_dim)


@bridged
def squeeze(input: T, dim: Any) -> T:
    """Remove the axis or axes `dim` of length 1."""
    return torch.squeeze(input, tuple(dim) if isinstance(dim, list) else dim)


@bridged
def transpose(input: T, dim0: int, dim1: int) -> T:
    """Swap two axes."""
    return torch.transpose(input, dim0, dim1)


@bridged
def t(input: T) -> T:
    """Swap the first two axes; a Tensor of fewer axes is returned unchanged."""
    return input.transpose(0, 1) if input.ndim > 1 else input


@bridged
def permute(input: T, dims: Any) -> T:
    """Permute the axes to the order `dims`."""
    return torch.permute(input, tuple(dims))


@bridged
def narrow(input: T, dim: int, start: Any, length: int) -> T:
    """`length` elements of the axis `dim` from `start` on."""
    return torch.narrow(input, dim, start, length)


@bridged
def select(input: T, dim: int, index: int) -> T:
    """The slice at `index` of the axis `dim`, which is removed."""
    return torch.select(input, dim, index)


def _joined(tensors: Any) -> Any:
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"expected a tuple or list of Tensors, got {type(tensors).__name__}.")
    return tuple(tensors)


@bridged
def cat(tensors: Any, dim: int = 0) -> T:
    """Concatenate the Tensors along `dim`, in their common dtype."""
    return torch.cat(_joined(tensors), dim)


@bridged
def concat(tensors: Any, dim: int = 0) -> T:
    """Concatenate the Tensors along `dim`, in their common dtype."""
    return torch.cat(_joined(tensors), dim)


@bridged
def stack(tensors: Any, dim: int = 0) -> T:
    """Stack the Tensors, of one shape, along a new axis `dim`."""
    return torch.stack(_joined(tensors), dim)


@bridged
def chunk(input: T, chunks: int, dim: int = 0) -> Any:
    """Split along `dim` into `chunks` parts, the last of them perhaps smaller."""
    return tuple(torch.chunk(input, chunks, dim))


@bridged
def split(tensor: T, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Split along `dim` into parts of one size, or of the listed sizes."""
    sections = split_size_or_sections
    return tuple(torch.split(tensor, list(sections) if isinstance(sections, (tuple, list)) else sections, dim))


@bridged
def repeat_interleave(input: T, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> T:
    """Repeat each element along `dim` (None: of the flat Tensor) `repeats` times, one number or one for each."""
    if isinstance(repeats, (tuple, list)):
        if output_size is None:
            return repeated_elements(input, repeats, dim)
        repeats = constant(repeats, input.device)
    return torch.repeat_interleave(input, repeats, dim, output_size=output_size)


def meshgrid(*tensors: Any, indexing: str | None = None) -> Any:
    """The coordinates of a grid from 1-D Tensors; the first one is along axis 0 for 'ij' (the default), along axis 1 for 'xy'."""
    listed = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    return ops.meshgrid(*listed, indexing=indexing or "ij")


@bridged
def diag(input: T, diagonal: int = 0) -> T:
    """A matrix with `input` on its diagonal, or the diagonal of a matrix; `diagonal` counts upwards from the main one."""
    return torch.diag(input, diagonal)


@bridged(wide=Widening())
def diff(input: T, n: int = 1, dim: int = -1, prepend: T | None = None, append: T | None = None) -> T:
    """The n-th differences along `dim`."""
    for name, value in (("prepend", prepend), ("append", append)):
        if value is not None and not isinstance(value, torch.Tensor):
            raise TypeError(f"expected a Tensor as {name}, got {type(value).__name__}.")
    return torch.diff(input, n, dim, prepend, append)


@bridged
def roll(input: T, shifts: Any, dims: Any = None) -> T:
    """Shift the elements by `shifts` along `dims` (None: of the flat Tensor); elements past the end enter at the front."""
    return torch.roll(input, shifts, dims)


@bridged(wide=Widening())
def gather(input: T, dim: int, index: T) -> T:
    """The elements of `input` at `index` along `dim`, in the shape of `index`."""
    return counted(lambda at: torch.gather(input, dim, at), as_index(index), input.shape[dim] if input.ndim else 1)


@bridged
def index_select(input: T, dim: int, index: T) -> T:
    """The slices along `dim` at `index`, which is 1-D."""
    return torch.index_select(input, dim, index)


@bridged
def index_add(input: T, dim: int, index: T, source: T, *, alpha: Any = 1) -> T:
    """`input` with alpha * source added to the slices along `dim` at `index`."""
    return torch.index_add(input, dim, index, source, alpha=alpha)


@bridged
def scatter(input: T, dim: int, index: T, src: Any) -> T:
    """`input` with `src`, a Tensor or a number, at `index` along `dim`."""
    if isinstance(src, T):
        return torch.scatter(input, dim, as_index(index), src.to(input.dtype))
    return torch.scatter(input, dim, as_index(index), src)


@bridged(wide=Widening())
def scatter_add(input: T, dim: int, index: T, src: T) -> T:
    """`input` with `src` added at `index` along `dim`."""
    return torch.scatter_add(input, dim, as_index(index), src)


@bridged
def take(input: T, index: T) -> T:
    """The elements of the flat Tensor at `index`, in its shape."""
    return torch.take(input, as_index(index))


@bridged
def unbind(input: T, dim: int = 0) -> Any:
    """The slices along `dim`, which is removed."""
    return tuple(torch.unbind(input, dim))


@updating("input", name="addr_")
def addr_(input: T, vec1: T, vec2: T, beta: Any = 1, alpha: Any = 1) -> T:
    """beta * input + alpha * outer(vec1, vec2) in place; returns the Tensor."""
    return torch.addr(input, vec1, vec2, beta=beta, alpha=alpha)
