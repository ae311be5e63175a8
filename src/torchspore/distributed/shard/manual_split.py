"""`add_prim_attr('manual_split', ..)`: tables whose parts have unequal rows. torchspore keeps such a table unsplit; the numbers are equal.
"""
from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import Any

from torchspore.base.text import message, short

TABLES = frozenset({"Gather", "GatherV2", "SparseGatherV2", "EmbeddingLookup"})
NAMES = ("manual_split", "manual_split_with_offset")
"""The names of the attribute."""
WHY = "parts with unequal rows are not supported, so each device stores the full table; counts of rows are split as the strategy states"


def evenly(primitive: Any, strategy: Any, table: tuple[int, ...], args: tuple[Any, ...], devices: int) -> Any:
    """Return the strategy with an unsplit table.

    `manual_split` is a tuple of rows, or of rows and offset, for each part. Raises ValueError if the parts do not add up to the table, or
    if an offset is not the first row of its part: such indexes would refer to rows that no other device knows. As in MindSpore, the rows
    are on axis 0, and the parts of the table use all devices.
    """
    name = next(name for name in NAMES if name in primitive.attrs)
    parts = primitive.attrs[name]
    wrote = f"{primitive.name} with {name}={short(parts)} of a table of {table[0]} rows"
    if isinstance(parts, (tuple, list)) and parts and all(type(part) is int and part >= 0 for part in parts):
        parts = tuple(zip(parts, accumulate(parts, initial=0)))
    pairs = isinstance(parts, (tuple, list)) and all(
        isinstance(part, (tuple, list)) and len(part) == 2 and all(type(number) is int and number >= 0 for number in part) for part in parts
    )
    if not pairs or not parts:
        raise ValueError(message(wrote, "a tuple of (rows, offset) for each part"))
    rows = [part[0] for part in parts]
    starts = [0, *accumulate(rows)]
    if starts[-1] != table[0]:
        raise ValueError(message(wrote, f"parts of {table[0]} rows together, got {starts[-1]}"))
    if [part[1] for part in parts] != starts[:-1]:
        expected = tuple(zip(rows, starts))
        raise ValueError(message(wrote, "the first row of each part as its offset", hint=f"{name}={expected}"))
    if not isinstance(strategy, tuple) or not isinstance(strategy[0], tuple) or strategy[0][0] != len(parts):
        raise ValueError(message(f"{wrote} and in_strategy {short(strategy)}", f"a strategy that cuts the table into {len(parts)} parts"))
    axis = args[2] if len(args) > 2 else 0
    if type(axis) is int and axis % len(table):
        raise ValueError(message(f"{wrote} along axis {axis}", "axis 0"))
    if prod(strategy[0]) != devices:
        raise ValueError(message(f"{wrote} and in_strategy {short(strategy)}", f"cuts of the table that use all {devices} devices"))
    return ((1, *strategy[0][1:]), *strategy[1:])
