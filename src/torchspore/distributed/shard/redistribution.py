"""The redistribution of a value from one layout to another: the collectives with the fewest bytes."""
from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from torchspore.engine.split_layouts.device_layout import Axes, Layout, Shape
from torchspore.engine.split_layouts.device_mesh import Mesh

REDUCE, SCATTER, GATHER, EXCHANGE, CUT = "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "cut"
"""Sum the partial sums; sum and split them; gather a dimension; move the split to another dimension; take a slice without communication."""


@dataclass(frozen=True)
class Step:
    """A collective over the devices along `axes`; `dim` is gathered or split, `source` is the dimension that an all-to-all gathers."""

    kind: str
    axes: Axes
    dim: int = -1
    source: int = -1
    reduction: str = "sum"
    sent: int = 0
    """Bytes that each device receives."""


@functools.lru_cache(65536)
def steps(mesh: Mesh, shape: Shape, bytes_each: int, before: Layout, after: Layout, exchanges: bool = True) -> tuple[Step, ...]:
    """Return the steps from one layout to the other, with the fewest bytes received by a device, then the fewest steps.

    `after` has no partial sums. Without `exchanges` no all-to-all is used: a dimension is gathered, then another one split.
    """
    if before == after:
        return ()
    ways: dict[Layout, tuple[Step, ...]] = {}
    counter = itertools.count()
    waiting: list[tuple[int, int, int, Layout, tuple[Step, ...]]] = [(0, 0, next(counter), before, ())]
    while waiting:
        cost, length, _, at, way = heapq.heappop(waiting)
        if at in ways:
            continue
        ways[at] = way
        if at == after:
            return _joined(mesh, shape, bytes_each, before, way)
        for step, reached in _moves(mesh, shape, bytes_each, at, after, exchanges):
            if reached not in ways and reached.fits(mesh, shape):
                heapq.heappush(waiting, (cost + step.sent, length + 1, next(counter), reached, (*way, step)))
    # Every dimension can be gathered and split again.
    raise AssertionError(f"no sequence of steps leads from {before} to {after}")


def received(mesh: Mesh, shape: Shape, bytes_each: int, before: Layout, after: Layout, exchanges: bool = True) -> int:
    """Return the bytes that a device receives in these steps."""
    return sum(step.sent for step in steps(mesh, shape, bytes_each, before, after, exchanges))


def _moves(mesh: Mesh, shape: Shape, each: int, at: Layout, after: Layout, exchanges: bool) -> Iterator[tuple[Step, Layout]]:
    """Return the possible next steps: only those that lead towards `after`."""
    part_bytes = each * math.prod(at.local(mesh, shape))
    free = set(range(len(mesh.sizes))) - at.axes - set(at.terms)
    for axis, kind in at.partial:
        size = mesh.sizes[axis]
        rest = tuple(item for item in at.partial if item[0] != axis)
        yield Step(REDUCE, (axis,), reduction=kind, sent=_summed(part_bytes, size)), Layout(at.dim_axes, rest)
        for dim, axes in enumerate(at.dim_axes):
            if _leads(axes, axis, after.dim_axes[dim]):
                yield Step(SCATTER, (axis,), dim, reduction=kind, sent=part_bytes * (size - 1) // size), Layout(_put(at, dim, axis), rest)
    for dim, axes in enumerate(at.dim_axes):
        for axis in free:
            if _leads(axes, axis, after.dim_axes[dim]):
                yield Step(CUT, (axis,), dim, sent=0), Layout(_put(at, dim, axis), at.partial)
        if not axes or after.dim_axes[dim][: len(axes)] == axes:
            continue
        last = axes[-1]
        size = mesh.sizes[last]
        without = (*at.dim_axes[:dim], axes[:-1], *at.dim_axes[dim + 1 :])
        yield Step(GATHER, (last,), dim, sent=part_bytes * (size - 1)), Layout(without, at.partial)
        if exchanges:
            for other in range(len(at.dim_axes)):
                if other != dim and _leads(at.dim_axes[other], last, after.dim_axes[other]):
                    moved = Layout(without, at.partial)
                    yield (
                        Step(EXCHANGE, (last,), other, dim, sent=part_bytes * (size - 1) // size),
                        Layout(_put(moved, other, last), at.partial),
                    )


def _leads(axes: Axes, axis: int, target_axes: Axes) -> bool:
    """Return whether splitting by `axis` next leads towards the requested split of a dimension."""
    return target_axes[: len(axes) + 1] == (*axes, axis)


def _put(at: Layout, dim: int, axis: int) -> tuple[Axes, ...]:
    return (*at.dim_axes[:dim], (*at.dim_axes[dim], axis), *at.dim_axes[dim + 1 :])


def _joined(mesh: Mesh, shape: Shape, each: int, before: Layout, way: tuple[Step, ...]) -> tuple[Step, ...]:
    """Merge adjacent steps of one kind over adjacent axes of the grid."""
    steps: list[Step] = []
    cuts = list(before.dim_axes)
    for step in way:
        part_bytes = each * math.prod(Layout(tuple(cuts)).local(mesh, shape))
        last = steps[-1] if steps else None
        axes: Axes = ()
        if last is not None and (last.kind, last.dim, last.source, last.reduction) == (step.kind, step.dim, step.source, step.reduction):
            axes = _in_a_row(last, step)
        if last is not None and axes:
            # An all-reduce does not shrink the data, so one over both axes costs less than two.
            sent = _summed(part_bytes, mesh.product(axes)) if step.kind == REDUCE else last.sent + step.sent
            steps[-1] = Step(step.kind, axes, step.dim, step.source, step.reduction, sent)
        else:
            steps.append(step)
        _follow(cuts, step)
    return tuple(steps)


def _follow(cuts: list[Axes], step: Step) -> None:
    """Update `cuts` in place to the splits after a step."""
    if step.kind == GATHER:
        cuts[step.dim] = cuts[step.dim][:-1]
    elif step.kind == EXCHANGE:
        cuts[step.source] = cuts[step.source][:-1]
    if step.kind in (EXCHANGE, SCATTER, CUT):
        cuts[step.dim] = (*cuts[step.dim], *step.axes)


def _summed(part_bytes: int, count: int) -> int:
    """Return the bytes that each of `count` devices receives in an all-reduce of `part_bytes` bytes."""
    return 2 * part_bytes * (count - 1) // count


def _in_a_row(last: Step, step: Step) -> Axes:
    """Return the axes of both steps in the order of the grid if one collective can replace the two; otherwise none."""
    if step.kind == REDUCE:
        return tuple(sorted(last.axes + step.axes))
    if step.kind == GATHER:                    # gathered in reverse order of splitting
        together = step.axes + last.axes
    elif step.kind in (CUT, SCATTER):
        together = last.axes + step.axes
    else:
        return ()
    return together if list(together) == sorted(together) else ()
