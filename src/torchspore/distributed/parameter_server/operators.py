"""The operators of the parameter server in graphs: a step, and a lookup of rows. They run where the program calls them, in its order."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchspore.distributed.parameter_server.values import to_host
from torchspore.engine.torch_internals.custom_operators import define


class _Connection:
    """The client of this process; None unless it is a worker of a running job."""

    def __init__(self) -> None:
        self.client: Any = None


CONNECTION = _Connection()


def _step(
    gradients: Sequence[torch.Tensor], values: Sequence[torch.Tensor], row_numbers: Sequence[torch.Tensor], rows: Sequence[torch.Tensor],
    scalars: Sequence[torch.Tensor], decays: Sequence[float], key: str, dense_indexes: Sequence[int], table_indexes: Sequence[int],
    full_indexes: Sequence[int],
) -> list[torch.Tensor]:
    """Push the gradients of a step; return new values of the dense parameters, each with the shape, dtype and device of its gradient.

    `values` are the present values of the dense parameters. If the program has changed them since the last step, the servers get them
    before the gradients. `full_indexes` are the tables with a dense gradient.
    """
    dense = {index: to_host(t) for index, t in zip(dense_indexes, gradients)}
    sparse = {index: (to_host(ids).long(), to_host(t)) for index, ids, t in zip(table_indexes, row_numbers, rows)}
    for index in full_indexes:
        CONNECTION.client.check_read(key, index, sparse[index][1])
    with torch.no_grad():
        for index, value in zip(dense_indexes, values):
            CONNECTION.client.send_if_changed(key, index, to_host(value))
        new_values = CONNECTION.client.step(key, dense, sparse, [float(scalar) for scalar in scalars], list(decays))
    return [new_values[index].to(t.device) for index, t in zip(dense_indexes, gradients)]


def _any_worker(flag: torch.Tensor) -> torch.Tensor:
    """Return a bool tensor of the shape of `flag`: whether it is True on any worker. All workers must call it."""
    return torch.full_like(flag, CONNECTION.client.is_true_anywhere(bool(flag.any())), dtype=torch.bool)


def _rows(indices: torch.Tensor, key: str, index: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return the rows of a table at `indices` (n,), of this shape and dtype."""
    with torch.no_grad():
        values: torch.Tensor = CONNECTION.client.rows(key, index, to_host(indices).long())
    return values.to(indices.device)


step = define(
    "server_step(Tensor[] gradients, Tensor[] values, Tensor[] row_numbers, Tensor[] rows, Tensor[] scalars, float[] decays, str key, "
    "int[] dense_indexes, int[] table_indexes, int[] full_indexes) -> Tensor[]", _step,
    lambda gradients, values, row_numbers, rows, scalars, decays, key, dense_indexes, table_indexes, full_indexes: [
        torch.empty_like(t, memory_format=torch.contiguous_format) for t in gradients
    ], is_exchange=True,
)
any_worker = define(
    "server_any(Tensor flag) -> Tensor", _any_worker, lambda flag: torch.empty_like(flag, dtype=torch.bool), is_exchange=True,
)
rows = define(
    "server_rows(Tensor indices, str key, int index, int[] shape, ScalarType dtype) -> Tensor", _rows,
    lambda indices, key, index, shape, dtype: indices.new_empty((indices.shape[0], *shape), dtype=dtype), is_exchange=True,
)
