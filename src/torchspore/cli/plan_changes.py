"""What `torchspore plan` reads from the Cells of the program, and changes in them, before the call to plan is captured.

All Cells of the process are searched, because a step that is a function refers to its Cells by its variables.
"""
from __future__ import annotations

import gc
from typing import TYPE_CHECKING, TypeVar

from torchspore.base.text import message
from torchspore.errors import StrategyRefused

if TYPE_CHECKING:
    from torchspore.mindspore.nn.cell import Cell
    from torchspore.mindspore.nn.wrap.micro_batches import BatchParts

_Kind = TypeVar("_Kind")


def mark_repeated_blocks() -> None:
    """Call `recompute()` on the items of each SequentialCell or CellList that has several items of one class with Parameters.

    A list inside a marked item is left alone: its values are computed again with the item.
    """
    from torchspore.mindspore.nn.layer.container import CellList, SequentialCell

    blocks: dict[int, Cell] = {}
    for cells in (*_instances(CellList), *_instances(SequentialCell)):
        items = [item for item in cells.cells() if list(item.get_parameters())]
        repeated = [item for item in items if sum(type(other) is type(item) for other in items) > 1]
        blocks.update((id(item), item) for item in repeated)
    inner = {id(cell) for block in blocks.values() for _, cell in block.cells_and_names() if cell is not block}
    for number, block in blocks.items():
        if number not in inner:
            block.recompute()


def count_micro_batches() -> int:
    """Return the number of micro batches of the program's Cells; 1 if none splits the batch."""
    return max((cell._part_count_() for cell in _splitting_cells()), default=1)


def set_micro_batches(count: int) -> bool:
    """Split the batch into `count` micro batches: in the Cells that split it now, else in each `nn.TrainOneStepCell`.

    Return True in the second case: the graph has such parts if the step calls its attribute `network`. Raises StrategyRefused if the
    program has neither.
    """
    from torchspore.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell
    from torchspore.mindspore.nn.wrap.micro_batches import GradAccumulationCell

    cells = _splitting_cells()
    for cell in cells:
        cell._split_into_(count)
    if cells:
        return False
    steps = _instances(TrainOneStepCell)
    if not steps:
        raise StrategyRefused(message(
            f"torchspore plan --micro-batches {count}", "a program with a Cell that splits the batch, or with an nn.TrainOneStepCell",
            hint="put the network of the step into nn.GradAccumulationCell",
        ))
    for step in steps:
        step.network = GradAccumulationCell(step.network, count)
    return count > 1


def _splitting_cells() -> list[BatchParts]:
    """Return the Cells that split the batch; where they are nested, those of the outer kind."""
    from torchspore.mindspore.nn.wrap.micro_batches import GradAccumulationCell, MicroBatchInterleaved, PipelineCell

    for kind in (PipelineCell, GradAccumulationCell, MicroBatchInterleaved):
        cells: list[BatchParts] = list(_instances(kind))
        if cells:
            return cells
    return []


def _instances(kind: type[_Kind]) -> list[_Kind]:
    """Return all instances of a class in this process. `isinstance` would call `__class__` of foreign objects, such as dead proxies."""
    return [item for item in gc.get_objects() if issubclass(type(item), kind)]
