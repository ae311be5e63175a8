"""Networks of dense layers and recurrent cells: the step of each is small, so that Python's time counts."""
from __future__ import annotations

from typing import Any

import numpy as np

from networks import network


def _values(*shape: int) -> Any:
    return np.random.RandomState(1).uniform(-1, 1, shape).astype(np.float32)


@network
def policy() -> tuple[Any, Any, list[Any]]:
    """A policy for one state: three dense layers and log-probabilities."""
    import torch
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.SequentialCell(nn.Dense(8, 64), nn.Tanh(), nn.Dense(64, 64), nn.Tanh(), nn.Dense(64, 4))

        def construct(self, x: Any) -> Any:
            return ops.log_softmax(self.layers(x), -1)

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))

        def forward(self, x: Any) -> Any:
            return torch.log_softmax(self.layers(x), -1)

    return Net(), Module(), [_values(1, 8)]


@network
def gated_mlp() -> tuple[Any, Any, list[Any]]:
    """Residual blocks of a root-mean-square normalization and a gated layer, as in language models."""
    import torch
    from mindspore import Parameter, Tensor, nn, ops

    class Block(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.scale = Parameter(Tensor(np.ones(32, np.float32)), name="scale")
            self.gate, self.up = nn.Dense(32, 64, has_bias=False), nn.Dense(32, 64, has_bias=False)
            self.down = nn.Dense(64, 32, has_bias=False)

        def construct(self, x: Any) -> Any:
            y = x * ops.rsqrt(ops.square(x).mean(-1, keep_dims=True) + 1e-6) * self.scale
            return x + self.down(ops.silu(self.gate(y)) * self.up(y))

    class Part(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(32))
            self.gate, self.up = torch.nn.Linear(32, 64, bias=False), torch.nn.Linear(32, 64, bias=False)
            self.down = torch.nn.Linear(64, 32, bias=False)

        def forward(self, x: Any) -> Any:
            y = x * torch.rsqrt(torch.square(x).mean(-1, keepdim=True) + 1e-6) * self.scale
            return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))

    return nn.SequentialCell(Block(), Block(), Block()), torch.nn.Sequential(Part(), Part(), Part()), [_values(16, 32)]


@network
def lstm_cells() -> tuple[Any, Any, list[Any]]:
    """A loop over the steps of a sequence by an LSTMCell."""
    import torch
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.LSTMCell(8, 16), nn.Dense(16, 2)

        def construct(self, x: Any) -> Any:
            state = ops.zeros((4, 16)), ops.zeros((4, 16))
            for step in range(8):
                state = self.cell(x[step], state)
            return self.head(state[0])

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = torch.nn.LSTMCell(8, 16), torch.nn.Linear(16, 2)

        def forward(self, x: Any) -> Any:
            state = torch.zeros(4, 16), torch.zeros(4, 16)
            for step in range(8):
                state = self.cell(x[step], state)
            return self.head(state[0])

    return Net(), Module(), [_values(8, 4, 8)]


@network
def gru_cells() -> tuple[Any, Any, list[Any]]:
    """A loop over the steps of a sequence by a GRUCell."""
    import torch
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRUCell(8, 16), nn.Dense(16, 2)

        def construct(self, x: Any) -> Any:
            state = ops.zeros((4, 16))
            for step in range(8):
                state = self.cell(x[step], state)
            return self.head(state)

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = torch.nn.GRUCell(8, 16), torch.nn.Linear(16, 2)

        def forward(self, x: Any) -> Any:
            state = torch.zeros(4, 16)
            for step in range(8):
                state = self.cell(x[step], state)
            return self.head(state)

    return Net(), Module(), [_values(8, 4, 8)]


@network
def embedding_bag() -> tuple[Any, Any, list[Any]]:
    """The mean of embeddings, and a factorization machine over them."""
    import torch
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = nn.Embedding(100, 16), nn.Dense(16, 1)

        def construct(self, ids: Any) -> Any:
            rows = self.table(ids)
            pairs = ops.square(rows.sum(1)) - ops.square(rows).sum(1)
            return self.head(rows.mean(1)) + 0.5 * pairs.sum(1, keepdims=True)

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = torch.nn.Embedding(100, 16), torch.nn.Linear(16, 1)

        def forward(self, ids: Any) -> Any:
            rows = self.table(ids)
            pairs = torch.square(rows.sum(1)) - torch.square(rows).sum(1)
            return self.head(rows.mean(1)) + 0.5 * pairs.sum(1, keepdim=True)

    return Net(), Module(), [np.random.RandomState(2).randint(0, 100, (32, 6)).astype(np.int32)]


@network
def attention() -> tuple[Any, Any, list[Any]]:
    """Causal attention of four heads, written out, with layer normalization."""
    import torch
    from mindspore import Tensor, nn, ops

    mask = np.triu(np.full((12, 12), -1e9, np.float32), 1)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.qkv, self.out = nn.LayerNorm((32,), epsilon=1e-5), nn.Dense(32, 96), nn.Dense(32, 32)
            self.mask = Tensor(mask)

        def construct(self, x: Any) -> Any:
            q, k, v = ops.chunk(self.qkv(self.norm(x)).reshape(2, 12, 12, 8).transpose(0, 2, 1, 3), 3, 1)
            weights = ops.softmax(q @ k.swapaxes(-1, -2) * 0.35 + self.mask, -1)
            return x + self.out((weights @ v).transpose(0, 2, 1, 3).reshape(2, 12, 32))

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.qkv, self.out = torch.nn.LayerNorm(32), torch.nn.Linear(32, 96), torch.nn.Linear(32, 32)
            self.mask = torch.from_numpy(mask)

        def forward(self, x: Any) -> Any:
            q, k, v = torch.chunk(self.qkv(self.norm(x)).reshape(2, 12, 12, 8).permute(0, 2, 1, 3), 3, 1)
            weights = torch.softmax(q @ k.swapaxes(-1, -2) * 0.35 + self.mask, -1)
            return x + self.out((weights @ v).permute(0, 2, 1, 3).reshape(2, 12, 32))

    return Net(), Module(), [_values(2, 12, 32)]
