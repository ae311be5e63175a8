"""Discrete cosine transforms of type 2 and their inverses, with orthonormal scaling."""
from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


def _matrix(length: int, like: T) -> T:
    """The orthonormal matrix (length, length) of the transform, in the dtype of `like`."""
    position = torch.arange(length, dtype=torch.float64, device=like.device)
    matrix = torch.cos(math.pi / length * (position[None, :] + 0.5) * position[:, None]) * math.sqrt(2 / length)
    matrix[0] = math.sqrt(1 / length)
    return matrix.to(like.dtype)


def _transformed(x: T, lengths: Sequence[int | None], axes: Sequence[int], norm: str | None, is_inverse: bool) -> T:
    """Transform along each of `axes`, which is cut or filled with zeros to its length before."""
    if norm not in (None, "ortho", "ORTHO"):
        raise ValueError(f"expected the norm 'ortho' or None, got {norm!r}.\n\nhint: Only norm \"ortho\" is supported currently.")
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(torch.float64 if x.dtype is torch.int64 else torch.float32)
    for axis, length in zip(axes, lengths):
        size = x.shape[axis] if length is None else length
        if size < 1:
            raise ValueError(f"expected a length from 1 on, got {size}.")
        x = x.movedim(axis, -1)
        x = x[..., :size] if size <= x.shape[-1] else torch.nn.functional.pad(x, (0, size - x.shape[-1]))
        matrix = _matrix(size, x)
        x = (x @ (matrix if is_inverse else matrix.T)).movedim(-1, axis)
    return x


def _along_axes(x: T, s: Sequence[int] | None, axes: Sequence[int] | None) -> tuple[list[int | None], list[int]]:
    """The lengths and axes of a transform along several axes; the last ones for lengths without axes."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    if s is not None and len(s) != len(axes):
        raise ValueError(f"expected as many lengths in s as axes, got {len(s)} and {len(axes)}.")
    return [None] * len(axes) if s is None else list(s), list(axes)


@op(primitive="DCT")
def _dct(x: T, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> T:
    """The cosine transform of type 2 along one axis."""
    _check_type(type)
    return _transformed(x, [n], [axis], norm, is_inverse=False)


@op(primitive="IDCT")
def _idct(x: T, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> T:
    """The inverse of the cosine transform of type 2 along one axis."""
    _check_type(type)
    return _transformed(x, [n], [axis], norm, is_inverse=True)


@op(primitive="DCTN")
def _dctn(x: T, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> T:
    """The cosine transform of type 2 along several axes."""
    _check_type(type)
    return _transformed(x, *_along_axes(x, s, axes), norm, is_inverse=False)


@op(primitive="IDCTN")
def _idctn(x: T, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> T:
    """The inverse of the cosine transform of type 2 along several axes."""
    _check_type(type)
    return _transformed(x, *_along_axes(x, s, axes), norm, is_inverse=True)


def _check_type(kind: int) -> None:
    if kind != 2:
        raise ValueError(f"expected type 2, got {kind}.")
