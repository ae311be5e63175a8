"""Names of Parameters in lists of Cells that are filled step by step: checkpoints have them."""
from __future__ import annotations

from mindspore import nn
from parity.case import case


class Stage(nn.Cell):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.CellList()
        for _ in range(depth):
            self.blocks.append(nn.Dense(1, 1, has_bias=False))


def appended(cells, make, depths=(1, 2, 1)):
    for depth in depths:
        cells.append(make(depth))
    return cells


def pair(_):
    return nn.SequentialCell(nn.Dense(1, 1, has_bias=False), nn.Dense(1, 1, has_bias=False))


def inserted():
    cells = nn.CellList([Stage(1), Stage(1)])
    cells.insert(0, Stage(1))
    cells.insert(2, Stage(2))
    return cells


def extended():
    cells = appended(nn.CellList(), Stage, (1,))
    cells.extend([Stage(1), Stage(2)])
    return cells


def replaced():
    cells = nn.CellList([Stage(1), Stage(1)])
    cells[1], cells[0] = Stage(2), Stage(1)
    return cells


def without_parameters_first():
    cells = nn.CellList()
    cells.append(nn.ReLU())
    return appended(cells, Stage, (1, 1))


KINDS = {
    "appended": lambda: appended(nn.CellList(), Stage), "sequential": lambda: appended(nn.SequentialCell(), Stage),
    "pairs": lambda: appended(nn.CellList(), pair), "given and appended": lambda: appended(nn.CellList([Stage(1), Stage(2)]), Stage),
    "plain": lambda: appended(nn.CellList(), lambda _: nn.Dense(1, 1)), "inserted": inserted, "extended": extended, "replaced": replaced,
    "without parameters first": without_parameters_first,
}


class Net(nn.Cell):
    def __init__(self, make):
        super().__init__()
        self.held = make()


@case(over=KINDS)
def names(make):
    return {"inside": [p.name for p in Net(make).get_parameters()], "alone": [p.name for p in make().get_parameters()]}


def dense():
    return nn.Dense(1, 1, has_bias=False)


DELETED = {
    "first": lambda c: c.__delitem__(0), "last": lambda c: c.__delitem__(-1), "middle": lambda c: c.__delitem__(slice(1, 3)),
    "twice": lambda c: (c.__delitem__(1), c.__delitem__(0)),
}


@case(over=DELETED)
def names_after_cells_are_deleted(delete):
    results = {}
    for kind in (nn.CellList, nn.SequentialCell):
        alone, holder = kind([dense(), kind([dense(), dense()]), dense(), dense()]), nn.Cell()
        holder.blocks = kind([dense(), kind([dense(), dense()]), dense(), dense()])
        for cells, owner in ((alone, alone), (holder.blocks, holder)):
            delete(cells)
            results[f"{kind.__name__}_{type(owner).__name__}"] = [parameter.name for parameter in owner.get_parameters()]
    return results
