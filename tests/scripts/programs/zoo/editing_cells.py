"""Editing containers, walking over Cells and names, init by walking, deepcopy, flags, prefixes, parameter replacement."""
import copy
import sys
from collections import OrderedDict

import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, ops
from mindspore.common import initializer as init

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)
ms.set_seed(1)
x = Tensor(np.linspace(-1, 1, 8).reshape(2, 4).astype(np.float32))


def dense(inputs, outputs, value):
    return nn.Dense(inputs, outputs, weight_init=init.Constant(value), bias_init="zeros")


seq = nn.SequentialCell(dense(4, 4, 0.1), nn.ReLU(), dense(4, 3, 0.2))
print(len(seq), type(seq[0]).__name__, type(seq[-1]).__name__, [type(c).__name__ for c in seq[1:]])
seq.append(nn.Tanh())
del seq[1]
seq[1] = dense(4, 2, 0.3)
print([p.name for p in seq.get_parameters()], seq(x).asnumpy().round(4).tolist())
named = nn.SequentialCell(OrderedDict([("first", dense(4, 4, 0.5)), ("act", nn.Sigmoid())]))
print(list(named.name_cells()), named(x).shape, [p.name for p in named.trainable_params()])

cells = nn.CellList([dense(4, 4, 0.1 * i) for i in range(3)])
cells.append(dense(4, 4, 1.0))
cells.insert(0, nn.Flatten())
cells.extend([nn.ReLU(), nn.Identity()])
print(len(cells), [type(c).__name__ for c in cells], [type(c).__name__ for c in cells[1:3]])
table = nn.CellDict({"relu": nn.ReLU(), "linear": dense(4, 1, 0.5)})
table["tanh"] = nn.Tanh()
print(sorted(table.keys()), len(table), "relu" in table, table["linear"](x).asnumpy().round(3).tolist())


class Block(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Dense(width, width)
        self.norm = nn.LayerNorm([width])

    def construct(self, x):
        return self.norm(self.fc(x))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.blocks = nn.CellList()
        for _ in range(2):
            self.blocks.append(Block(4))
        self.head = nn.SequentialCell([nn.Dense(4, 2), nn.Softmax(axis=-1)])
        self.temperature = Parameter(Tensor(1.0, ms.float32), name="temperature")
        self.register = {"a": 1}
        self._init_weights()

    def _init_weights(self):
        for _, cell in self.cells_and_names():
            if isinstance(cell, nn.Dense):
                cell.weight.set_data(init.initializer(init.Constant(0.25), cell.weight.shape, cell.weight.dtype))
                if cell.has_bias:
                    cell.bias.set_data(init.initializer("zeros", cell.bias.shape, cell.bias.dtype))
            elif isinstance(cell, nn.LayerNorm):
                cell.gamma.set_data(init.initializer("ones", cell.gamma.shape, cell.gamma.dtype))

    def construct(self, x):
        for block in self.blocks:
            x = block(x) + x
        return self.head(x / self.temperature)


net = Net()
print([name for name, _ in net.cells_and_names()])
print([(name, p.shape) for name, p in net.parameters_and_names()])
print(list(net.parameters_dict()), [type(c).__name__ for c in net.cells()], list(net.name_cells()))
print(net.cls_name, net.training, net.set_train().training, net.head[0].training, net.set_train(False).blocks[1].norm.training)
print(np.round(net(x).asnumpy(), 4).tolist())
print(net.head)

twin = copy.deepcopy(net)
twin.temperature.set_data(Tensor(2.0, ms.float32))
print([p.name for p in twin.get_parameters()][:2], float(net.temperature.asnumpy()), float(twin.temperature.asnumpy()))
twin.update_parameters_name("twin.")
print([p.name for p in twin.get_parameters()][:2])
net.blocks[0].fc = nn.Dense(4, 4, weight_init="ones", bias_init="ones")
print([p.name for p in net.get_parameters()][:4], np.round(net(x).asnumpy(), 4).tolist())
net.head[0].weight = Parameter(Tensor(np.full((2, 4), 0.5, np.float32)), name="replaced")
print(net.head[0].weight.name, [p.name for p in net.head.get_parameters()])
net.insert_child_to_cell("extra", nn.ReLU())
net.insert_param_to_cell("spare", Parameter(Tensor([1.0]), name="spare"))
print(hasattr(net, "extra"), "spare" in net.parameters_dict(), net.spare.name)
frozen = [p for p in net.get_parameters() if "norm" in p.name]
for p in frozen:
    p.requires_grad = False
print(len(net.trainable_params()), [p.name for p in net.untrainable_params()])
weights = ParameterTuple(net.trainable_params())
clone = weights.clone(prefix="old", init="same")
print(type(weights).__name__, clone[0].name, float((clone[0] - weights[0]).abs().sum().asnumpy()))
net.apply(lambda cell: cell.add_flags(visited=True) and None)
print(net.get_flags().get("visited"), net.blocks[0].fc.get_flags().get("visited"))

for name in ("zeros", "ones", "normal", "uniform", "HeNormal", "XavierUniform", "HeUniform", "truncatedNormal"):
    tensor = init.initializer(name, [64, 32], ms.float32)
    tensor = tensor.init_data() if hasattr(tensor, "init_data") else tensor
    array = tensor.asnumpy()
    print(name, array.shape, array.dtype, bool(abs(array.mean() - (1 if name == "ones" else 0)) < 0.05), bool(array.std() < 0.3))
print(init.initializer(init.Identity(), [2, 2]).asnumpy().tolist(), init.initializer(init.Constant(3), [2]).asnumpy().tolist())
print(init.initializer(init.Orthogonal(gain=1.0), [3, 3]).shape, sum(p.size for p in net.get_parameters()))
