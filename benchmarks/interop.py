#!/usr/bin/env python3
"""Training steps of a Cell as a torch Module and of a torch Module as a Cell, compared with the native net.

`python benchmarks/interop.py [--nets mlp,conv,transformer] [--rounds 9] [--seconds 0.4]`. All contenders of a table run in this process.
"""
from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
import turns
from handwritten import torch_step

import torchspore

torchspore.install()

import mindspore as ms  # noqa: E402
from mindspore import nn, ops  # noqa: E402

NETS: dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[], tuple[torch.Tensor, torch.Tensor]]]]


class Mlp(nn.Cell):
    """Three layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Dense(784, 512), nn.Dense(512, 512), nn.Dense(512, 10)

    def construct(self, x: Any) -> Any:
        return self.third(ops.relu(self.second(ops.relu(self.first(x)))))


class TorchMlp(torch.nn.Module):
    """The same in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = torch.nn.Linear(784, 512), torch.nn.Linear(512, 512), torch.nn.Linear(512, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.relu(self.second(torch.relu(self.first(x)))))


class Residual(nn.Cell):
    """Two convolutions and a sum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, pad_mode="pad", padding=1) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def construct(self, x: Any) -> Any:
        return ops.relu(self.norm2(self.conv2(ops.relu(self.norm1(self.conv1(x))))) + x)


class TorchResidual(torch.nn.Module):
    """The same in torch."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = (torch.nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = torch.nn.BatchNorm2d(width), torch.nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x))))) + x)


class Conv(nn.Cell):
    """Eight residual blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 64, 1), nn.Dense(64, 10)
        self.blocks = nn.SequentialCell([Residual(64) for _ in range(8)])

    def construct(self, x: Any) -> Any:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class TorchConv(torch.nn.Module):
    """The same in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = torch.nn.Conv2d(3, 64, 1, bias=False), torch.nn.Linear(64, 10)
        self.blocks = torch.nn.Sequential(*[TorchResidual(64) for _ in range(8)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Layer(nn.Cell):
    """A layer of a Transformer with one head for each 64 channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.norm1, self.norm2 = nn.LayerNorm((width,), epsilon=1e-5), nn.LayerNorm((width,), epsilon=1e-5)
        self.qkv, self.out = nn.Dense(width, 3 * width), nn.Dense(width, width)
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)

    def construct(self, x: Any) -> Any:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, 64).transpose(2, 0, 3, 1, 4)
        scores = ops.softmax(ops.matmul(qkv[0], qkv[1].swapaxes(-2, -1)) * 0.125, -1)
        x = x + self.out(ops.matmul(scores, qkv[2]).transpose(0, 2, 1, 3).reshape(batch, length, width))
        return x + self.down(ops.relu(self.up(self.norm2(x))))


class TorchLayer(torch.nn.Module):
    """The same in torch."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, 64).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(torch.matmul(qkv[0], qkv[1].transpose(-2, -1)) * 0.125, -1)
        x = x + self.out(torch.matmul(scores, qkv[2]).permute(0, 2, 1, 3).reshape(batch, length, width))
        return x + self.down(torch.relu(self.up(self.norm2(x))))


class Transformer(nn.Cell):
    """Four layers over embedded tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(1000, 256), nn.Dense(256, 10)
        self.layers = nn.SequentialCell([Layer(256) for _ in range(4)])

    def construct(self, ids: Any) -> Any:
        return self.head(self.layers(self.words(ids)).mean(1))


class TorchTransformer(torch.nn.Module):
    """The same in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = torch.nn.Embedding(1000, 256), torch.nn.Linear(256, 10)
        self.layers = torch.nn.Sequential(*[TorchLayer(256) for _ in range(4)])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.words(ids)).mean(1))


NETS = {
    "mlp": (Mlp, TorchMlp, lambda: (torch.rand(128, 784), torch.randint(0, 10, (128,)))),
    "conv": (Conv, TorchConv, lambda: (torch.rand(16, 3, 32, 32), torch.randint(0, 10, (16,)))),
    "transformer": (Transformer, TorchTransformer, lambda: (torch.randint(0, 1000, (8, 64)), torch.randint(0, 10, (8,)))),
}


def torch_timer(model: torch.nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> turns.Seconds:
    """Return a timer of steps of torch's loop."""
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9)
    return turns.timer(torch_step(model.train(), torch.nn.functional.cross_entropy, optimizer, batch))


def cell_timer(net: Any, batch: tuple[torch.Tensor, torch.Tensor], is_graph: bool) -> turns.Seconds:
    """Return a timer of steps of MindSpore's loop, in a mode."""
    mode = ms.GRAPH_MODE if is_graph else ms.PYNATIVE_MODE
    loss = nn.CrossEntropyLoss()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.01, 0.9)).set_train()
    data = [torchspore.from_torch(t) for t in batch]

    def run() -> Any:
        ms.set_context(mode=mode)
        return step(*data)

    return turns.timer(run)


def main() -> None:
    """Print two tables for each net: in torch's loop, and in MindSpore's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.4, help="how long one turn takes")
    options = parser.parse_args()
    for name in options.nets.split(","):
        cell, module, data = NETS[name]
        batch = data()
        turns.compare(f"{name}: a Cell in torch's loop", {
            "torch": torch_timer(module(), batch), "as_module": torch_timer(torchspore.as_module(cell()), batch),
        }, "torch", options.seconds, options.rounds)
        turns.compare(f"{name}: a torch Module in MindSpore's loop", {
            "Cell, PyNative": cell_timer(cell(), batch, False),
            "as_cell, PyNative": cell_timer(torchspore.as_cell(module()), batch, False),
        }, "Cell, PyNative", options.seconds, options.rounds)
        turns.compare(f"{name}: a torch Module in a graph", {
            "Cell, graph": cell_timer(cell(), batch, True), "as_cell, graph": cell_timer(torchspore.as_cell(module()), batch, True),
        }, "Cell, graph", options.seconds, options.rounds)


if __name__ == "__main__":
    main()
