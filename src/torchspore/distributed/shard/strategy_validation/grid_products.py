"""Matrix products on a grid of two or three axes: `MatMul` and `BatchMatMul` with Layouts and the attribute `enable_nd_tp`.

x splits the inner axis of both matrices, y the columns of the second one, z the rows. With two axes the first matrix is stored with its
inner axis split by (x, y): it is gathered along y, and the sum over x is scattered along the columns, (y, x). With three axes the rows of
the first matrix are split by (z, y) and the inner axis of the second by (x, z): both are gathered, and the sum is scattered along the rows,
(z, x). The result therefore has the layout of the first matrix of a product with x and y exchanged. Other axes may split rows first, and
the axes of a batch, alike in both operands. The axes of the products: Optimus (Xu and others, arXiv 2104.05343) and 3D tensor parallelism
(Bian and others, arXiv 2105.14450).
"""
from __future__ import annotations

from torchspore.base.text import message
from torchspore.distributed.shard.strategy_validation.axis_labels import Call
from torchspore.distributed.shard.strategy_validation.layout import MapEntry, TensorLayout

Axes = tuple[int, ...]


def grid_product(call: Call, layouts: tuple[TensorLayout, ...]) -> tuple[tuple[TensorLayout, ...], TensorLayout] | None:
    """Return the layouts in which the matrices are multiplied, and that of the result; None unless both are on such a grid.

    Raises ValueError for an `enable_nd_tp` other than True and False.
    """
    requested = call.get("enable_nd_tp", default=False)
    if not isinstance(requested, bool):
        raise ValueError(message(f"{call.name} with enable_nd_tp={requested!r}", "a bool"))
    if not requested or len(layouts) != 2 or call.get("transpose_a", default=False):
        return None
    batch = _batch_axes(call, layouts)
    if batch is None:
        return None
    matrix = layouts[0].device_matrix
    is_turned = bool(call.get("transpose_b", default=False))
    count = len(batch)
    rows, inner = (layouts[0].axes(count + axis) for axis in (0, 1))
    second_inner, columns = (layouts[1].axes(count + axis) for axis in ((1, 0) if is_turned else (0, 1)))
    split = _split_in_two(rows, inner, second_inner, columns) or _split_in_three(rows, inner, second_inner, columns)
    if split is None or not columns or not second_inner:
        return None
    rows, inner, result = split
    if {axis for axes in batch for axis in axes} & {*rows, *inner, *columns}:
        return None
    layouts_used = [(rows, inner), (columns, inner) if is_turned else (inner, columns), result]
    first, second, product = (TensorLayout(matrix, tuple(_entry(axes, len(matrix)) for axes in (*batch, *both))) for both in layouts_used)
    return (first, second), product


def _batch_axes(call: Call, layouts: tuple[TensorLayout, ...]) -> tuple[Axes, ...] | None:
    """Return the axes of the grid that split the axes of the batch; None unless both operands have the same batch, split alike."""
    first, second = call.shapes
    count = len(first) - 2
    if count < 0 or len(second) != len(first) or first[:count] != second[:count]:
        return None
    batches = [tuple(layout.axes(axis) for axis in range(count)) for layout in layouts]
    return batches[0] if batches[0] == batches[1] else None


def _entry(axes: Axes, rank: int) -> MapEntry:
    entries = tuple(rank - 1 - axis for axis in axes)
    return entries[0] if len(entries) == 1 else entries or -1


_Split = tuple[Axes, Axes, tuple[Axes, Axes]]
"""The axes of the grid that split the rows and the inner axis of the product, and those of its result."""


def _split_in_two(rows: Axes, inner: Axes, second_inner: Axes, columns: Axes) -> _Split | None:
    if inner != second_inner + columns or len(set(rows + inner)) < len(rows + inner):
        return None
    return rows, second_inner, (rows, columns + second_inner)


def _split_in_three(rows: Axes, inner: Axes, second_inner: Axes, columns: Axes) -> _Split | None:
    depth = second_inner[len(inner):]
    computed, last = rows[:len(rows) - len(columns)], rows[len(rows) - len(columns):]
    fits = inner and second_inner[:len(inner)] == inner and last == columns and computed[len(computed) - len(depth):] == depth
    if not fits or len(set(rows + inner)) < len(rows + inner):
        return None
    return computed, inner, (computed + inner, columns)
