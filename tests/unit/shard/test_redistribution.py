"""What a change of layout costs: the bytes that a device receives in each collective."""
from __future__ import annotations

import pytest

from torchspore.distributed.shard.redistribution import received, steps
from torchspore.engine.split_layouts.device_layout import Layout
from torchspore.engine.split_layouts.device_mesh import Mesh

MESH, SHAPE, EACH = Mesh((2, 4)), (8, 8), 4
TERMS = ((0, "sum"), (1, "sum"))
WAYS = {
    "a sum over all": (Layout(((), ()), TERMS), Layout(((), ())), ["all_reduce"], 2 * 256 * 7 // 8),
    "a sum over all of a part": (Layout(((0,), ()), TERMS[1:]), Layout(((0,), ())), ["all_reduce"], 2 * 128 * 3 // 4),
    "a sum that is cut": (Layout(((), ()), TERMS), Layout(((0, 1), ())), ["reduce_scatter"], 256 * 7 // 8),
    "parts of all": (Layout(((0, 1), ())), Layout(((), ())), ["all_gather"], 32 * 7),
    "parts of two dimensions": (Layout(((0,), (1,))), Layout(((), ())), ["all_gather", "all_gather"], 32 * 7),
    "a cut that moves": (Layout(((1,), ())), Layout(((), (1,))), ["all_to_all"], 64 * 3 // 4),
    "a part and a sum": (Layout(((), ()), TERMS), Layout(((0,), ())), ["reduce_scatter", "all_reduce"], 256 // 2 + 2 * 128 * 3 // 4),
}


@pytest.mark.parametrize("name", WAYS)
def test_bytes_are_those_of_the_collectives_that_run(name: str) -> None:
    before, after, kinds, bytes_received = WAYS[name]
    assert [step.kind for step in steps(MESH, SHAPE, EACH, before, after)] == kinds
    assert received(MESH, SHAPE, EACH, before, after) == bytes_received
