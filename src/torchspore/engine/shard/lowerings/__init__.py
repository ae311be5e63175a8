"""Operators whose parts are put together by more than terms: each writes its own nodes into the local graph."""
from torchspore.engine.shard.lowerings import ctc, losses, norms, pools, products, randoms, recurrent, tables, windows
from torchspore.engine.shard.lowerings.table import LOWERINGS

__all__ = ["LOWERINGS", "ctc", "losses", "norms", "pools", "products", "randoms", "recurrent", "tables", "windows"]
