"""Coordinate grids, and matrices from diagonals and triangles."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.devices import device
from torchspore.mindspore.numpy.utils import as_list, dtype_of, function, only_tensor, part_of, promote, to_tensor
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


def _require_int(value: Any, name: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, torch.SymInt)):
        raise TypeError(message(f"{name}={value!r}", "an int"))
    return value


def _lengths(n: Any, m: Any, k: Any, names: tuple[str, str, str]) -> tuple[int, int, int]:
    n, k = _require_int(n, names[0]), _require_int(k, names[2])
    m = n if m is None else _require_int(m, names[1])
    if n < 0 or m < 0:
        raise ValueError(f"{names[0]}={n}, {names[1]}={m}: expected lengths of at least 0.")
    return n, m, k


_FAR = 1 << 62


def _triangle(n: int, m: int, k: int) -> T:
    """Return whether each element of an (n, m) matrix is on diagonal k or below."""
    rows, columns = (torch.arange(length, device=device.current()) for length in (n, m))
    if not -_FAR < k < _FAR:
        k = _FAR if k > 0 else -_FAR                             # a sum with a row stays within int64
    return columns.unsqueeze(0) <= rows.unsqueeze(1) + k


@function
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = torch.float32) -> T:
    """An (N, M) matrix with ones on diagonal `k`, zeros elsewhere."""
    n, m, k = _lengths(N, M, k, ("N", "M", "k"))
    rows, columns = (torch.arange(length, device=device.current()) for length in (n, m))
    return (columns.unsqueeze(0) == rows.unsqueeze(1) + k).to(dtype_of(dtype))


@function
def identity(n: int, dtype: Any = torch.float32) -> T:
    """An (n, n) matrix with ones on the main diagonal, zeros elsewhere."""
    n, _, _ = _lengths(n, None, 0, ("n", "n", "k"))
    return torch.eye(n, dtype=dtype_of(dtype), device=device.current())


@function
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = torch.float32) -> T:
    """An (N, M) matrix with ones on diagonal `k` and below, zeros elsewhere."""
    return _triangle(*_lengths(N, M, k, ("N", "M", "k"))).to(dtype_of(dtype))


def _part(m: Any, k: Any, keep: Any) -> T:
    t = to_tensor(m)
    if t.ndim == 0:
        raise ValueError("m: expected one axis at least.")
    t = t.expand(t.shape[0], t.shape[0]) if t.ndim == 1 else t
    return keep(t, _require_int(k, "k"))


@function(wide=Widening())
def tril(m: Any, k: int = 0) -> T:
    """m with zeros above diagonal `k` of its last two axes; one axis is broadcast to a square first."""
    return _part(m, k, torch.tril)


@function(wide=Widening())
def triu(m: Any, k: int = 0) -> T:
    """m with zeros below diagonal `k` of its last two axes; one axis is broadcast to a square first."""
    return _part(m, k, torch.triu)


def _indexes_where(inside: T) -> Any:
    return tuple(t.to(torch.int32) for t in torch.nonzero(inside, as_tuple=True))


@function
def tril_indices(n: int, k: int = 0, m: int | None = None) -> Any:
    """Rows and columns (int32) of the elements on diagonal `k` and below in an (n, m) matrix."""
    return _indexes_where(_triangle(*_lengths(n, m, k, ("n", "m", "k"))))


@function
def triu_indices(n: int, k: int = 0, m: int | None = None) -> Any:
    """Rows and columns (int32) of the elements on diagonal `k` and above in an (n, m) matrix."""
    n, m, k = _lengths(n, m, k, ("n", "m", "k"))
    return _indexes_where(~_triangle(n, m, k - 1))


def _matrix(arr: Any) -> tuple[int, int]:
    shape = to_tensor(arr).shape
    if len(shape) != 2:
        raise ValueError(f"arr of shape {tuple(shape)}: expected two axes.")
    return shape[0], shape[1]


@function
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """Rows and columns (int32) of the elements of `arr` (2-D) on diagonal `k` and below."""
    return _indexes_where(_triangle(*_matrix(arr), _require_int(k, "k")))


@function
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """Rows and columns (int32) of the elements of `arr` (2-D) on diagonal `k` and above."""
    return _indexes_where(~_triangle(*_matrix(arr), _require_int(k, "k") - 1))


@function
def diag(v: Any, k: int = 0) -> T:
    """Diagonal `k` of a matrix, or a matrix with the values of a 1-D array on diagonal `k`."""
    t = only_tensor(v, "v")
    if t.ndim not in (1, 2):
        raise ValueError(f"v of shape {tuple(t.shape)}: expected one or two axes.")
    return torch.diag(t, _require_int(k, "k")).clone()


@function
def diagflat(v: Any, k: int = 0) -> T:
    """A matrix with all values of `v` on diagonal `k`."""
    return torch.diag(only_tensor(v, "v").reshape(-1), _require_int(k, "k"))


_MOST_AXES = 64
"""The maximum for a NumPy array."""


@function
def diag_indices(n: int, ndim: int = 2) -> Any:
    """The indexes (int32) of the main diagonal of an array of `ndim` axes of length n, one array for each axis."""
    if _require_int(n, "n") < 1:
        raise ValueError(message(f"n={n}", "at least 1"))
    if _require_int(ndim, "ndim") > _MOST_AXES:
        raise ValueError(f"ndim={ndim}: expected at most {_MOST_AXES}.")
    return tuple(torch.arange(n, dtype=torch.int32, device=device.current()) for _ in range(ndim))


def _open(arrays: Any) -> list[T]:
    """Return the i-th of the 1-D arrays with its values along axis i of as many axes as there are arrays."""
    return [t.reshape([-1 if axis == i else 1 for axis in range(len(arrays))]) for i, t in enumerate(arrays)]


@function
def ix_(*args: Any) -> Any:
    """1-D arrays as indexes of a grid: the i-th has its values along axis i."""
    arrays = [only_tensor(value, f"args[{i}]") for i, value in enumerate(args)]
    if any(t.ndim != 1 for t in arrays):
        raise ValueError("expected arrays of one axis.")
    return tuple(_open(arrays))


@function
def indices(dimensions: Any, dtype: Any = torch.int32, sparse: bool = False) -> Any:
    """A list of the coordinates of each element of an array of lengths `dimensions`; `sparse` keeps axes of length 1."""
    if not isinstance(dimensions, (tuple, list)):
        raise TypeError(f"dimensions={dimensions!r}: expected a tuple or a list of ints.")
    coordinates = _open([torch.arange(length, dtype=dtype_of(dtype), device=device.current()) for length in dimensions])
    return as_list(coordinates if sparse else [t.clone() for t in torch.broadcast_tensors(*coordinates)])


@function
def meshgrid(*xi: Any, sparse: bool = False, indexing: str = "xy") -> Any:
    """A list of the coordinates of the grid of flat arrays; `indexing` 'xy' has the second one along axis 0, 'ij' the first.

    `sparse` keeps axes of length 1.
    """
    if indexing not in ("xy", "ij"):
        raise TypeError(f"indexing={indexing!r}: expected 'xy' or 'ij'.")
    coordinates = _open([only_tensor(value, f"xi[{i}]").reshape(-1) for i, value in enumerate(xi)])
    if indexing == "xy" and len(coordinates) > 1:
        coordinates = [t.swapaxes(0, 1) for t in coordinates]
    return as_list(coordinates if sparse or not coordinates else [t.clone() for t in torch.broadcast_tensors(*coordinates)])


def _along(part: slice) -> T:
    """Return the values of one slice: `start:stop:step`, or, with an imaginary step, that many values including `stop`."""
    start, stop, step = part.start or 0, part.stop, 1 if part.step is None else part.step
    if stop is None or not all(isinstance(v, (int, float, complex)) for v in (start, stop, step)):
        raise TypeError(f"{part}: expected a slice of numbers with a stop.")
    if isinstance(step, complex):
        return torch.linspace(start, stop, int(abs(step)), dtype=torch.float64).to(device.current(), torch.float32)
    is_integral = all(isinstance(v, int) for v in (start, stop, step))
    exact = torch.arange(start, stop, step, dtype=torch.int64 if is_integral else torch.float64)
    return exact.to(device.current(), torch.int32 if is_integral else torch.float32)


@part_of("mgrid")
def _grid(parts: Any, sparse: bool) -> Any:
    if isinstance(parts, slice):
        return _along(parts)
    if not isinstance(parts, tuple) or not all(isinstance(part, slice) for part in parts):
        raise TypeError(f"{parts!r}: expected slices.")
    coordinates = _open([_along(part) for part in parts])
    if sparse:
        return as_list(coordinates)
    common = coordinates[0].dtype
    for t in coordinates[1:]:
        common = promote(common, t.dtype)
    return torch.stack([t.to(common) for t in torch.broadcast_tensors(*coordinates)])


class MGridClass:
    """`mgrid[0:2, 0:3]`: the coordinates of a grid, stacked along axis 0."""

    def __getitem__(self, grids: Any) -> Any:
        """The grid of one slice or of a tuple of slices; a step of 5j means 5 values including both ends."""
        return _grid(grids, False)


class OGridClass:
    """`ogrid[0:2, 0:3]`: the coordinates of a grid, each with length 1 on all axes except its own."""

    def __getitem__(self, grids: Any) -> Any:
        """The grid of one slice, or a list for a tuple of slices; a step of 5j means 5 values including both ends."""
        return _grid(grids, True)


mgrid = MGridClass()
ogrid = OGridClass()
