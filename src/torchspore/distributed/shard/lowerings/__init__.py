"""Operators whose parts cannot be combined by sums alone: each lowering writes its nodes into the local graph."""
from torchspore.distributed.shard.lowerings import (
    attention,
    ctc,
    lookups,
    losses,
    norms,
    pools,
    products,
    random_numbers,
    recurrent,
    row_tables,
    triangles,
    windows,
)
from torchspore.distributed.shard.lowerings.registry import LOWERINGS

__all__ = [
    "LOWERINGS", "attention", "ctc", "lookups", "losses", "norms", "pools", "products", "random_numbers", "recurrent",
    "row_tables", "triangles", "windows",
]
