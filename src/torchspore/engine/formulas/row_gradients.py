"""Gradients of tables of which a step touches a few rows: the rows alone, and the formulas of optimizers on them.

Inside a gradient transform rows that are taken of a table are leaves of torch.autograd by themselves, so that no gradient of the table's
size is computed (engine/autograd/grad.py). All shapes are known before anything runs, so that graphs hold this too: rows that come
several times are summed without being made fewer, and each of them writes the same new row.
"""
from __future__ import annotations

import torch

from torchspore.engine.formulas import optimizers
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors.tensor import Composite, TensorBase, raw, wrap

T = torch.Tensor
BLOCK = 1 << 18
"""Elements of a table that are treated at a time where a formula touches all of them."""


class RowsBase(Composite):
    """A gradient of which only some rows are not zero: row `indices[i]` of a value of shape `dense_shape` has `values[i]` added to it."""

    def __init__(self, indices: TensorBase, values: TensorBase, dense_shape: tuple[int, ...]) -> None:
        self._indices, self._values, self._shape = indices, values, tuple(dense_shape)

    def parts(self) -> tuple[TensorBase, ...]:
        """The Tensors that it is made of."""
        return self._indices, self._values

    def rebuilt(self, parts: tuple[TensorBase, ...]) -> RowsBase:
        """The same kind of value of other Tensors."""
        indices, values = parts
        return type(self)(indices, values, self._shape)

    def fixed(self) -> tuple[int, ...]:
        """Return the facts apart from its Tensors that a graph depends on."""
        return self._shape

    @property
    def _t(self) -> T:
        """The full gradient, for code that does not handle rows; `raw` reads it as it reads a Tensor's."""
        values = raw(self._values)
        return values.new_zeros(self._shape).index_add(0, raw(self._indices).long(), values)


def create(indices: T, values: T, shape: tuple[int, ...]) -> RowsBase:
    """A gradient in the class of the front end."""
    return FRONT.row_gradient(wrap(indices), wrap(values), shape)


def summed(indices: T, values: T) -> tuple[T, T, T]:
    """For each occurrence of a row, sorted by row: its index, the sum of all its values, and whether it is the row's first (bool).

    Shapes (n,), (n, ...), (n,). Equal rows have equal sums.
    """
    order = torch.sort(indices.long(), stable=True)
    at = order.values
    is_first = torch.ones_like(at, dtype=torch.bool)
    is_first[1:] = at[1:] != at[:-1]
    group = torch.cumsum(is_first, 0) - 1
    sums = torch.zeros_like(values).index_add_(0, group, values.index_select(0, order.indices))
    return at, sums.index_select(0, group), is_first


def lazy_adam(
    p: T, m: T, v: T, indices: T, values: T, rate: T, beta1: float, beta2: float, eps: float, nesterov: bool,
) -> None:
    """Adam for the rows at `indices` alone; all others keep their values and their moments."""
    at, g, _ = summed(indices, values)
    first = m.index_select(0, at) * beta1 + g * (1 - beta1)
    second = v.index_select(0, at) * beta2 + g * g * (1 - beta2)
    ahead = first * beta1 + g * (1 - beta1) if nesterov else first
    put_rows(p, at, p.index_select(0, at) - rate.to(p.dtype) * ahead / (second.sqrt() + eps))
    put_rows(m, at, first)
    put_rows(v, at, second)


def adam(p: T, m: T, v: T, indices: T, values: T, rate: T, beta1: float, beta2: float, eps: float, nesterov: bool) -> None:
    """Adam with a zero gradient for all other rows: their moments decay and the rows move, so that each step changes the entire table."""
    at, g, is_first = summed(indices, values)
    if nesterov:
        _nesterov_adam(p, m, v, at, g * is_first.reshape(-1, *[1] * (g.ndim - 1)).to(g.dtype), rate, beta1, beta2, eps)
        return
    before = [rows_of(table, at) for table in (p, m, v)]
    # torch's kernel processes the table in blocks, with one block of zeros for all of them; the rows of the gradient are added afterwards.
    size = max(1, BLOCK // max(1, p[0].numel()))
    blocks = [[table[start:start + size] for start in range(0, p.shape[0], size)] for table in (p, m, v)]
    zeros = torch.zeros_like(blocks[0][0])
    optimizers.adam(blocks[0], [zeros[:len(block)] for block in blocks[0]], blocks[1], blocks[2], rate, beta1, beta2, eps)
    first = before[1] * beta1 + g * (1 - beta1)
    second = before[2] * beta2 + g * g * (1 - beta2)
    for table, new in ((p, before[0] - rate.to(p.dtype) * first / (second.sqrt() + eps)), (m, first), (v, second)):
        put_rows(table, at, new)


def _nesterov_adam(p: T, m: T, v: T, at: T, once: T, rate: T, beta1: float, beta2: float, eps: float) -> None:
    """The same with Nesterov momentum; `once` has each row's gradient at its first occurrence, and zeros at later ones."""
    m.mul_(beta1).index_add_(0, at, once * (1 - beta1))
    v.mul_(beta2).index_add_(0, at, once * once * (1 - beta2))
    size = max(1, BLOCK // max(1, p[0].numel()))
    for start in range(0, p.shape[0], size):
        rows = slice(start, start + size)
        p[rows].sub_(rate.to(p.dtype) * (m[rows] * beta1) / (v[rows].sqrt() + eps))
    more = rate.to(p.dtype) * once * (1 - beta1) / (v.index_select(0, at).sqrt() + eps)
    p.index_add_(0, at, -more)


def ftrl(w: T, n: T, z: T, g: T, rate: T, l1: float, l2: float, power: float) -> tuple[T, T, T]:
    """FTRL-proximal: new weights, accumulated squares and linear terms of values with gradient `g`; `power` is not positive."""
    rate = rate.to(w.dtype)
    squares = n + g * g
    now = squares.pow(-power)
    linear = z + g - (now - n.pow(-power)) / rate * w
    moved = (l1 * linear.sign() - linear) / (now / rate + 2 * l2)
    return torch.where(linear.abs() > l1, moved, torch.zeros_like(moved)), squares, linear


def proximal_adagrad(w: T, n: T, g: T, rate: T, l1: float, l2: float) -> tuple[T, T]:
    """Adagrad followed by a step towards zero: new weights and accumulated squares of values with gradient `g`."""
    squares = n + g * g
    scaled = rate.to(w.dtype) / squares.sqrt()
    near = w - scaled * g
    moved = near.sign() * (near.abs() - scaled * l1).clamp(min=0) if l1 else near
    return moved / (1 + scaled * l2), squares


def rows_of(table: T, at: T) -> T:
    """The rows of a table at `at`."""
    return table.index_select(0, at)


def put_rows(table: T, at: T, rows: T) -> None:
    """Writes rows into a table; rows that come several times are equal."""
    table.index_copy_(0, at, rows.to(table.dtype))


# ---- single elements


def scattered(indices: T, values: T, shape: tuple[int, ...]) -> T:
    """Return the value with `values` (n,) at the coordinates `indices` (n, axes); values at equal coordinates are summed."""
    return values.new_zeros(shape).index_put(tuple(indices.long().unbind(1)), values, accumulate=True)


def of_elements(indices: T, values: T, width: int) -> tuple[T, T]:
    """Elements (n,) of a matrix as rows: for each its row's index (n,), and a row (n, width) that is zero but for it."""
    at = indices.long()
    positions = torch.arange(values.shape[0], device=values.device)
    return at[:, 0], values.new_zeros((values.shape[0], width)).index_put((positions, at[:, 1]), values)
