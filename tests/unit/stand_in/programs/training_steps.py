"""Trains small networks on the stand-in and prints as JSON what each step does to the device: `training_steps.py MODE DEVICE [NAME...]`.

The data of a step is on the device before the step begins. Each row of TABLE is a network, its optimizer and what else the step does.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torchspore

torchspore.install()

# ruff: noqa: E402
import mindspore as ms
import numpy as np
import stand_in
from mindspore import Tensor, amp, nn, ops

rng = np.random.RandomState(0)


def floats(*shape: int) -> Any:
    """Return random numbers of a shape."""
    return rng.randn(*shape).astype(np.float32)


def integers(high: int, *shape: int) -> Any:
    """Return random integers below `high` of a shape."""
    return rng.randint(0, high, shape).astype(np.int32)


class LeNet(nn.Cell):
    """Convolutions, pooling and dense layers; `norm` adds BatchNorm and Dropout."""

    def __init__(self, norm: bool = False) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 5, pad_mode="valid"), nn.Conv2d(4, 8, 3)
        self.norm = nn.BatchNorm2d(4) if norm else nn.Identity()
        self.dropout = nn.Dropout(p=0.2) if norm else nn.Identity()
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()
        self.dense, self.out = nn.Dense(8 * 3 * 3, 16), nn.Dense(16, 10)

    def construct(self, x: Any) -> Any:
        x = self.pool(self.relu(self.norm(self.first(x))))
        x = self.flatten(self.pool(self.relu(self.second(x))))
        return self.out(self.dropout(self.relu(self.dense(x))))


class Block(nn.Cell):
    """One layer of a transformer."""

    def __init__(self, width: int, heads: int, is_causal: bool) -> None:
        super().__init__()
        self.heads, self.size, self.is_causal = heads, width // heads, is_causal
        self.qkv, self.out = nn.Dense(width, 3 * width), nn.Dense(width, width)
        self.norms = nn.CellList([nn.LayerNorm((width,)), nn.LayerNorm((width,))])
        self.up, self.down, self.gelu = nn.Dense(width, 2 * width), nn.Dense(2 * width, width), nn.GELU()
        self.dropout = nn.Dropout(p=0.1)

    def construct(self, x: Any, mask: Any = None) -> Any:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).reshape(batch, length, 3, self.heads, self.size).transpose(2, 0, 3, 1, 4)
        scores = ops.matmul(q, k.swapaxes(-1, -2)) / self.size**0.5
        if self.is_causal:
            scores = scores.masked_fill(ops.triu(ops.ones((length, length), ms.bool_), 1), -1e9)
        if mask is not None:
            scores = scores + (1.0 - mask.reshape(batch, 1, 1, length)) * -1e4
        mixed = ops.matmul(self.dropout(ops.softmax(scores, -1)), v).transpose(0, 2, 1, 3).reshape(batch, length, width)
        x = x + self.dropout(self.out(mixed))
        return x + self.down(self.gelu(self.up(self.norms[1](x))))


class Gpt(nn.Cell):
    """A language model that predicts the next word."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(40, 16), nn.Embedding(8, 16)
        self.blocks = nn.SequentialCell(Block(16, 2, True), Block(16, 2, True))
        self.norm, self.out = nn.LayerNorm((16,)), nn.Dense(16, 40)

    def construct(self, x: Any) -> Any:
        x = self.words(x) + self.positions(ops.arange(x.shape[1]))
        return self.out(self.norm(self.blocks(x))).reshape(-1, 40)


class Bert(nn.Cell):
    """A classifier of sentences with a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.kinds, self.norm = nn.Embedding(40, 16), nn.Embedding(2, 16), nn.LayerNorm((16,))
        self.blocks = nn.CellList([Block(16, 2, False), Block(16, 2, False)])
        self.pool, self.tanh, self.out = nn.Dense(16, 16), nn.Tanh(), nn.Dense(16, 10)

    def construct(self, x: Any) -> Any:
        mask = (x > 3).astype(ms.float32)
        hidden = self.norm(self.words(x) + self.kinds((x > 20).astype(ms.int32)))
        for block in self.blocks:
            hidden = block(hidden, mask)
        return self.out(self.tanh(self.pool(hidden[:, 0])))


def mlp() -> nn.Cell:
    """Return a network of dense layers."""
    return nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 10))


loss_of = nn.CrossEntropyLoss()
Step = Callable[..., Any]


def cell(net: nn.Cell, optimizer: nn.Cell) -> Step:
    """Return MindSpore's training cell."""
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_of), optimizer)
    step.set_train()
    return step


def function(net: nn.Cell, optimizer: nn.Cell, is_clipped: bool = False, scaler: Any = None) -> Step:
    """Return a step of a functional program, with clipped gradients or a loss scale."""
    def forward(x: Any, y: Any) -> Any:
        loss = loss_of(net(x), y)
        return loss if scaler is None else scaler.scale(loss)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x: Any, y: Any) -> Any:
        loss, gradients = gradient(x, y)
        if scaler is not None:
            loss, gradients = scaler.unscale(loss), scaler.unscale(gradients)
            scaler.adjust(amp.all_finite(gradients))
        if is_clipped:
            gradients = ops.clip_by_global_norm(gradients, 1.0)
        optimizer(gradients)
        return loss

    return ms.jit(step) if ms.get_context("mode") == 0 else step


def adam(net: nn.Cell, rate: Any = 1e-3) -> nn.Cell:
    return nn.Adam(net.trainable_params(), rate)


def momentum(net: nn.Cell, rate: Any = 0.1) -> nn.Cell:
    return nn.Momentum(net.trainable_params(), rate, 0.9, weight_decay=1e-4)


def adam_weight_decay(net: nn.Cell, rate: Any = 1e-3) -> nn.Cell:
    return nn.AdamWeightDecay(net.trainable_params(), rate, weight_decay=0.01)


def dynamic_scale() -> Any:
    return amp.DynamicLossScaler(1024, 2, 50)


def scaled_cell(net: nn.Cell, optimizer: nn.Cell) -> Step:
    """Return MindSpore's training cell with a dynamic loss scale."""
    step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, loss_of), optimizer, nn.DynamicLossScaleUpdateCell(1024, 2, 50))
    step.set_train()
    return lambda x, y: step(x, y)[0]


ROWS, PICTURES, TEXTS = (lambda: (floats(4, 8), integers(10, 4))), (lambda: (floats(2, 1, 16, 16), integers(10, 2))), (
    lambda: (integers(40, 2, 8), integers(40, 16)))
SENTENCES = lambda: (integers(40, 2, 8), integers(10, 2))
TABLE: dict[str, tuple[Callable[[], nn.Cell], Callable[[nn.Cell], Step], Callable[[], tuple[Any, Any]]]] = {
    "mlp, Adam": (mlp, lambda net: cell(net, adam(net)), ROWS),
    "mlp, Momentum": (mlp, lambda net: cell(net, momentum(net)), ROWS),
    "mlp, AdamWeightDecay, clipped": (mlp, lambda net: function(net, adam_weight_decay(net), is_clipped=True), ROWS),
    "mlp, SGD, dynamic loss scale": (mlp, lambda net: function(net, nn.SGD(net.trainable_params(), 0.1), scaler=dynamic_scale()), ROWS),
    "lenet, Momentum": (LeNet, lambda net: cell(net, momentum(net)), PICTURES),
    "lenet with BatchNorm and Dropout, Adam, list of rates": (
        lambda: LeNet(True), lambda net: cell(net, adam(net, nn.cosine_decay_lr(0.0, 0.1, 10, 2, 5))), PICTURES),
    "lenet, Momentum, CosineDecayLR": (LeNet, lambda net: cell(net, momentum(net, nn.CosineDecayLR(0.0, 0.1, 10))), PICTURES),
    "gpt, AdamWeightDecay, WarmUpLR": (Gpt, lambda net: cell(net, adam_weight_decay(net, nn.WarmUpLR(1e-3, 5))), TEXTS),
    "gpt, Adam, clipped, dynamic loss scale": (Gpt, lambda net: function(net, adam(net), True, dynamic_scale()), TEXTS),
    "bert, AdamWeightDecay, PolynomialDecayLR": (
        Bert, lambda net: cell(net, adam_weight_decay(net, nn.PolynomialDecayLR(1e-3, 0.0, 10, 1.0))), SENTENCES),
    "bert, Momentum, ExponentialDecayLR, clipped": (
        Bert, lambda net: function(net, momentum(net, nn.ExponentialDecayLR(0.1, 0.9, 4)), True), SENTENCES),
    "mlp, Momentum, TrainOneStepWithLossScaleCell": (mlp, lambda net: scaled_cell(net, momentum(net)), ROWS),
    "gpt, AdamWeightDecay, TrainOneStepWithLossScaleCell": (Gpt, lambda net: scaled_cell(net, adam_weight_decay(net)), TEXTS),
}


def main(mode: str, device: str, *names: str) -> None:
    """Print what each of three steps of each row does, and the losses."""
    if device == "GPU":
        stand_in.begin()
    ms.set_context(device_target=device, mode=int(mode))
    rows = {}
    for name in names or TABLE:
        network, make_step, make_batch = TABLE[name]
        rng.seed(1)
        ms.set_seed(1)
        net = network()
        net.set_train()
        step, losses, steps, events = make_step(net), [], [], []
        for _ in range(3):
            batch = [Tensor(values) for values in make_batch()]
            with stand_in.counted() as count:
                loss = step(*batch)
            steps.append(dict(count))
            events.append(list(stand_in.events))
            losses.append(float(loss))
        rows[name] = {"steps": steps, "losses": losses, "events": events}
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
