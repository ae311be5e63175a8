"""What shares memory with a Parameter and what is a copy; what an optimizer's attributes are."""
from __future__ import annotations

import copy

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from parity.case import case


def tensor(*values):
    return ms.Tensor(np.array(values, np.float32))


TAKEN = {
    "value": lambda p: p.value(), "data": lambda p: p.data, "clone": lambda p: p.clone(), "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy, "copy": lambda p: p.copy(), "Parameter": lambda p: ms.Parameter(p, name="other"),
}
CHANGES = {
    "assign": lambda p: ops.assign(p, tensor(5, 6)), "set_data": lambda p: p.set_data(tensor(5, 6)),
    "item": lambda p: p.__setitem__(0, 5.0), "data=": lambda p: setattr(p, "data", tensor(5, 6)),
    "step": lambda p: nn.Momentum([p], 1.0, 0.9)((tensor(1, 1),)),
}


@case(graph=True, over=[f"{taken}, {change}" for taken in TAKEN for change in CHANGES])
def what_was_taken_before_a_change(both):
    taken, change = both.split(", ")
    p = ms.Parameter(tensor(1, 2), name="p")
    before = TAKEN[taken](p)
    CHANGES[change](p)
    return {"before": before.asnumpy(), "now": p.asnumpy(), "type": type(before).__name__}


@case(graph=True, over=TAKEN)
def what_is_written_into_what_was_taken(taken):
    p = ms.Parameter(tensor(1, 2), name="p")
    taken(p)[0] = 7.0
    return {"now": p.asnumpy()}


SHAPES = {
    "longer": lambda p: p.set_data(tensor(1, 2, 3)), "longer, slice_shape": lambda p: p.set_data(tensor(1, 2, 3), slice_shape=True),
    "more axes": lambda p: p.set_data(ms.Tensor(np.ones((2, 2), np.float32))), "number": lambda p: p.set_data(5.0),
    "float64": lambda p: p.set_data(ms.Tensor(np.ones(2), ms.float64)), "int32": lambda p: p.set_data(ms.Tensor([3, 4], ms.int32)),
}


@case(graph=True, over=SHAPES)
def set_data_takes_other_shapes_and_dtypes(change):
    p = ms.Parameter(tensor(1, 2), name="p")
    change(p)
    return {"now": p.asnumpy()}


def shown(value):
    if isinstance(value, (tuple, list)):
        return [shown(element) for element in value]
    return [type(value).__name__, value.asnumpy().tolist()] if isinstance(value, ms.Tensor) else value


OPTIMIZERS = {
    "decay": lambda p: nn.Momentum([p], 0.1, 0.9, weight_decay=0.5), "none": lambda p: nn.SGD([p], 0.1),
    "scale": lambda p: nn.SGD([p], 0.1, loss_scale=4.0), "adam": lambda p: nn.Adam([p], 0.1, weight_decay=0.25),
    "group": lambda p: nn.SGD([{"params": [p], "weight_decay": 0.5}], 0.1),
    "group without": lambda p: nn.SGD([{"params": [p], "lr": 0.5}], 0.1, weight_decay=0.125),
}


@case(graph=True, over=OPTIMIZERS)
def attributes_of_an_optimizer(make):
    parameter = make(ms.Parameter(tensor(1, 2), name="p"))
    names = ("weight_decay", "exec_weight_decay", "dynamic_weight_decay", "need_scale", "reciprocal_scale", "loss_scale", "is_group")
    results = {name: shown(getattr(parameter, name)) for name in names}
    results["get_weight_decay"] = shown(parameter.get_weight_decay())
    for name in ("scale_grad", "decay_weight", "gradients_centralization", "flatten_gradients"):
        results[name] = shown(getattr(parameter, name)((tensor(4, 8),)))
    return results


@case(graph=True)
def an_assigned_weight_decay_acts():
    p = ms.Parameter(tensor(1, 2), name="p")
    sgd = nn.SGD([p], 0.5, weight_decay=0.5)
    sgd.weight_decay = ms.Tensor(0.25, ms.float32)
    sgd((tensor(1, 1),))
    return {"now": p.asnumpy()}


@case(graph=True)
def weight_decay_decides_a_multitype_graph():
    pick = ops.MultitypeFuncGraph("pick")

    @pick.register("Tensor", "Tensor")
    def tensors(decay, gradient):
        return gradient * decay

    @pick.register("Number", "Tensor")
    def numbers(decay, gradient):
        return gradient + 100

    class CustomOptimizer(nn.Optimizer):
        def __init__(self, params):
            super().__init__(0.1, params, 0.5)
            self.map = ops.HyperMap()

        def construct(self, gradients):
            return self.map(ops.partial(pick, self.weight_decay), gradients)

    return {"now": CustomOptimizer([ms.Parameter(tensor(1, 2), name="p")])((tensor(4, 8),))[0].asnumpy()}


@case(over=["rows", "batch"])
def a_dict_column(kind):
    def rows():
        for i in range(4):
            yield {"a": i, "b": np.array([i, i])}, i

    data = ds.GeneratorDataset(rows, ["column", "label"], shuffle=False)
    row = next((data.batch(2) if kind == "batch" else data).create_dict_iterator(output_numpy=True, num_epochs=1))
    return dict(row["column"]) | {"types": [type(v).__name__ for v in row["column"].values()]}
