"""Layers: constructed with given weights, called in training and in evaluation; and the names of their parameters."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn
from parity.case import case

rng = np.random.RandomState(3)
IMAGE = rng.randn(2, 4, 8, 8).astype(np.float32)
LINE = rng.randn(2, 4, 9).astype(np.float32)
BOX = rng.randn(1, 2, 5, 6, 7).astype(np.float32)
ROWS = rng.randn(3, 6).astype(np.float32)

LAYERS = {
    "Dense": (lambda: nn.Dense(6, 5), ROWS),
    "Dense_activation": (lambda: nn.Dense(6, 5, has_bias=False, activation="relu"), ROWS),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3), IMAGE),
    "Conv2d_valid": (lambda: nn.Conv2d(4, 6, 3, stride=2, pad_mode="valid", has_bias=True), IMAGE),
    "Conv2d_pad": (lambda: nn.Conv2d(4, 6, 3, pad_mode="pad", padding=2, dilation=2), IMAGE),
    "Conv2d_same_even": (lambda: nn.Conv2d(4, 6, (2, 4), stride=(2, 3)), IMAGE),
    "Conv2d_group": (lambda: nn.Conv2d(4, 8, 3, group=2), IMAGE),
    "Conv1d": (lambda: nn.Conv1d(4, 3, 3, stride=2), LINE),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 3, stride=2), BOX),
    "Conv2dTranspose": (lambda: nn.Conv2dTranspose(4, 3, 3, stride=2), IMAGE),
    "Conv2dTranspose_pad": (lambda: nn.Conv2dTranspose(4, 3, 4, stride=2, pad_mode="pad", padding=1), IMAGE),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(6), ROWS),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4, momentum=0.8), IMAGE),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(2), BOX),
    "LayerNorm": (lambda: nn.LayerNorm((6,)), ROWS),
    "LayerNorm_axes": (lambda: nn.LayerNorm((8, 8), begin_norm_axis=2, begin_params_axis=2), IMAGE),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), IMAGE),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2), IMAGE),
    "MaxPool2d_same": (lambda: nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same"), IMAGE),
    "AvgPool2d": (lambda: nn.AvgPool2d(2, 2), IMAGE),
    "AvgPool2d_same": (lambda: nn.AvgPool2d(3, 2, pad_mode="same"), IMAGE),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, 2)), IMAGE),
    "Flatten": (lambda: nn.Flatten(), IMAGE),
    "Identity": (lambda: nn.Identity(), ROWS),
    "Pad": (lambda: nn.Pad(((0, 1), (2, 0))), ROWS),
    "Dropout_off": (lambda: nn.Dropout(p=0.5).set_train(False), ROWS),
    "ClipByNorm": (lambda: _Clip(), ROWS),
    "SequentialCell": (lambda: nn.SequentialCell(nn.Dense(6, 4), nn.ReLU(), nn.Dense(4, 2)), ROWS),
    "SequentialCell_list": (lambda: nn.SequentialCell([nn.Dense(6, 4), nn.Tanh()]), ROWS),
    "CellList": (lambda: _Listed(), ROWS),
    "CellDict": (lambda: _Named(), ROWS),
}
ACTIVATIONS = (
    "ELU GELU HSigmoid HSwish LeakyReLU LogSigmoid LogSoftmax Mish PReLU ReLU ReLU6 SeLU SiLU Sigmoid Softmax Softsign Tanh".split()
)


class _Clip(nn.Cell):
    def __init__(self):
        super().__init__()
        self.clip = nn.ClipByNorm()

    def construct(self, x):
        return self.clip(x, ms.Tensor(1.0))


class _Listed(nn.Cell):
    def __init__(self):
        super().__init__()
        self.cells_of_mine = nn.CellList([nn.Dense(6, 6), nn.Dense(6, 3)])

    def construct(self, x):
        for cell in self.cells_of_mine:
            x = cell(x)
        return x


class _Named(nn.Cell):
    def __init__(self):
        super().__init__()
        self.parts = nn.CellDict([["first", nn.Dense(6, 4)], ["second", nn.ReLU()]])

    def construct(self, x):
        return self.parts["second"](self.parts["first"](x))


def fill(cell):
    """Gives each parameter known values, so that initial random numbers don't matter."""
    numbers = np.random.RandomState(7)
    for name, parameter in cell.parameters_and_names():
        values = numbers.randn(*parameter.shape).astype(np.float32) * 0.3
        if "variance" in name or "gamma" in name:
            values = np.abs(values) + 0.5
        parameter.set_data(ms.Tensor(values.astype(np.float32)))
    return cell


@case(over=LAYERS, rtol=1e-4, atol=1e-5, graph=True)
def layer(row):
    make, array = row
    cell = fill(make())
    results = {"names": [[name, list(parameter.shape), bool(parameter.requires_grad)] for name, parameter in cell.parameters_and_names()]}
    cell.set_train(False)
    results["evaluation"] = cell(ms.Tensor(array)).asnumpy()
    if "Dropout" not in str(type(cell)):
        cell.set_train(True)
        results["training"] = cell(ms.Tensor(array)).asnumpy()
        results.update({f"after_{name}": parameter.asnumpy() for name, parameter in cell.parameters_and_names() if "moving" in name})
    return results


@case(over={name: row for name, row in LAYERS.items() if name != "Dropout_off"}, rtol=1e-3, atol=1e-4)
def gradient(row):
    make, array = row
    cell = fill(make()).set_train(True)
    weights = ms.ParameterTuple(cell.trainable_params())
    forward = ms.value_and_grad(lambda x: (cell(x) * cell(x)).sum(), 0, weights or None)
    _, result = forward(ms.Tensor(array))
    to_input, to_weights = result if len(weights) else (result, ())
    return {"input": to_input.asnumpy(), **{f"weight{index}": weight.asnumpy() for index, weight in enumerate(to_weights)}}


@case(over={name: name for name in ACTIVATIONS}, rtol=1e-5, atol=1e-5, graph=True)
def activation(name):
    cell = getattr(nn, name)()
    return {"output": cell(ms.Tensor(ROWS)).asnumpy(), "names": [name for name, _ in cell.parameters_and_names()]}


@case(
    over={name: name for name in ["relu", "sigmoid", "tanh", "softmax", "gelu", "leakyrelu", "elu", "relu6", "hswish", "logsoftmax"]},
    atol=1e-5,
)
def by_name(name):
    return {"output": nn.get_activation(name)(ms.Tensor(ROWS)).asnumpy()}


@case()
def embedding():
    cell = nn.Embedding(5, 3, padding_idx=1)
    table = cell.embedding_table.asnumpy().copy()
    cell.embedding_table.set_data(ms.Tensor(np.arange(15, dtype=np.float32).reshape(5, 3)))
    return {"output": cell(ms.Tensor([[0, 4], [1, 2]], ms.int32)).asnumpy(), "row": table[1], "shape": list(table.shape),
            "names": [name for name, _ in cell.parameters_and_names()]}  # fmt: skip


@case()
def dropout_keeps_the_mean():
    ones = np.ones((200, 200), np.float32)
    dropped = nn.Dropout(p=0.25).set_train(True)(ms.Tensor(ones)).asnumpy()
    return {"values": np.unique(np.round(dropped, 4)), "share": bool(abs((dropped > 0).mean() - 0.75) < 0.02)}
