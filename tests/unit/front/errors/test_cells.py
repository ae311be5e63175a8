"""What bad use of Cells says: their attributes, names, containers and hooks."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.ops import operations as P
from support.error_messages import Bad, check

from torchspore.errors import NameRefused


def z(*shape, d=np.float32):
    return Tensor(np.zeros(shape, d))


def p(name="w"):
    return Parameter(z(2), name=name)


class Empty(nn.Cell):
    pass


class Early(nn.Cell):

    def __init__(self):
        self.w = p()


class Early2(nn.Cell):

    def __init__(self):
        self.dense = nn.Dense(2, 2)


class Reads(nn.Cell):

    def __init__(self):
        print(self.training)


class Holds(nn.Cell):

    def __init__(self):
        super().__init__()
        self.w = p()
        self.dense = nn.Dense(2, 2)


class Own(ops.Primitive):
    pass


def twice():
    net = Holds()
    net.dense.weight.name = "w"
    net.check_names()


BAD = {
    "early": Bad(
        lambda: Early(), AttributeError,
        "",
        "Early.w is set before super().__init__() was called.",
        "call super().__init__() first in __init__.",
    ),
    "early_cell": Bad(
        lambda: Early2(), AttributeError,
        "",
        "Early2.dense is set before super().__init__() was called.",
        "call super().__init__() first in __init__.",
    ),
    "reads": Bad(
        lambda: Reads(), AttributeError,
        "Reads",
        "attributes are read before super().__init__() was called.",
        "call super().__init__() first.",
    ),
    "no_construct": Bad(
        lambda: Empty()(z(1)), AttributeError,
        "Empty",
        "expected a method named construct.",
        "define construct(self, x) on Empty.",
    ),
    "attribute": Bad(lambda: Empty().foo, AttributeError, "", "'Empty' object has no attribute 'foo'."),
    "delete": Bad(lambda: delattr(Empty(), "foo"), AttributeError, "", "'Empty' object has no attribute 'foo'."),
    "cell_over": Bad(
        lambda: setattr(Holds(), "dense", 3), TypeError,
        "Holds.dense",
        "expected a Cell or None in place of the Cell there, got int.",
    ),
    "parameter_over": Bad(
        lambda: setattr(Holds(), "w", 3), TypeError,
        "Holds.w",
        "expected a Parameter, a Tensor or None in place of the Parameter there, got int.",
    ),
    "cell_on_parameter": Bad(
        lambda: setattr(Holds(), "w", nn.ReLU()), ValueError,
        "",
        "Holds.w is a Parameter already.",
        "give the Cell another name.",
    ),
    "insert_name": Bad(lambda: Empty().insert_param_to_cell("", p()), ValueError, "insert_param_to_cell('')", "expected a name."),
    "insert_dot": Bad(
        lambda: Empty().insert_param_to_cell("a.b", p()), NameRefused,
        "insert_param_to_cell('a.b')",
        "expected a name without a dot.",
    ),
    "insert_taken": Bad(
        lambda: Empty().insert_param_to_cell("construct", p()), NameRefused,
        "",
        "Empty.construct exists already.",
        "give the Parameter another name.",
    ),
    "insert_type": Bad(
        lambda: Empty().insert_param_to_cell("w", 3), TypeError,
        "insert_param_to_cell('w')",
        "expected a Parameter, got int.",
    ),
    "child_name": Bad(
        lambda: Empty().insert_child_to_cell("", nn.ReLU()), NameRefused, "insert_child_to_cell('')", "expected a name without a dot.",
    ),
    "child_type": Bad(lambda: Empty().insert_child_to_cell("a", 3), TypeError, "insert_child_to_cell('a')", "expected a Cell, got int."),
    "child_taken": Bad(
        lambda: Holds().insert_child_to_cell("w", nn.ReLU()), NameRefused,
        "",
        "Holds.w exists already.",
        "give the Cell another name.",
    ),
    "to_float": Bad(
        lambda: Empty().to_float(ms.int32), ValueError,
        "to_float(mindspore.int32)",
        "expected mindspore.float16, float32 or bfloat16.",
    ),
    "sub_cell": Bad(lambda: Holds().get_sub_cell("foo.bar"), AttributeError, "Holds", "no Cell is named 'foo.bar'."),
    "rename": Bad(lambda: Holds().update_parameters_name(3), TypeError, "update_parameters_name(3)", "expected a str, got int."),
    "twice": Bad(
        lambda: twice(), ValueError,
        "Holds",
        "two Parameters have the name 'w'.",
        "give one of them another name, Parameter(..., name='...').",
    ),
    "hook": Bad(lambda: Empty().register_forward_hook(3), TypeError, "hook 3", "expected a function."),
    "sequential": Bad(
        lambda: nn.SequentialCell(3), TypeError,
        "SequentialCell",
        "expected Cells, a list of them or an OrderedDict, got int.",
    ),
    "sequential_item": Bad(lambda: nn.SequentialCell([nn.ReLU(), 3]), TypeError, "SequentialCell", "expected Cells, got int."),
    "list_type": Bad(lambda: nn.CellList([nn.ReLU()])["a"], TypeError, "CellList['a']", "expected an int or a slice, got str."),
    "list_far": Bad(lambda: nn.CellList([nn.ReLU()])[5], IndexError, "CellList[5]", "there are 1 Cells."),
    "list_extend": Bad(lambda: nn.CellList([nn.ReLU()]).extend(3), TypeError, "CellList.extend", "expected a list of Cells, got int."),
    "list_call": Bad(
        lambda: nn.CellList([nn.ReLU()])(), NotImplementedError,
        "CellList",
        "it cannot be called.",
        "call the Cells in it one by one.",
    ),
    "dict_key": Bad(lambda: nn.CellDict({1: nn.ReLU()}), TypeError, "CellDict[1]", "expected a str as the name, got int."),
    "dict_nested": Bad(
        lambda: nn.CellDict({"a": nn.CellList([])}), TypeError, "CellDict['a']",
        "expected a Cell that is not a container, got CellList.",
    ),
    "dict_name": Bad(
        lambda: nn.CellDict({"keys": nn.ReLU()}), NameRefused, "CellDict['keys']",
        "expected a name without a dot that is not an attribute of Cell.",
    ),
    "dict_pop": Bad(lambda: nn.CellDict({}).pop("b"), NameRefused, "CellDict.pop('b')", "this Cell does not exist."),
    "list_alone": Bad(
        lambda: nn.CellList(nn.ReLU()), TypeError, "CellList", "expected a list of Cells, got ReLU.", "write CellList([cell]).",
    ),
    "list_of_dicts": Bad(
        lambda: nn.CellList([nn.CellDict({})]), TypeError, "CellList", "expected Cells, got a CellDict.", "write list(cells.values()).",
    ),
    "list_insert": Bad(lambda: nn.CellList([]).insert(1, nn.ReLU()), IndexError, "CellList.insert(1, ...)", "there are 0 Cells."),
    "list_insert_type": Bad(
        lambda: nn.CellList([]).insert("a", nn.ReLU()), TypeError, "CellList.insert('a', ...)", "expected an int, got str.",
    ),
    "dict_type": Bad(lambda: nn.CellDict({"a": 3}), TypeError, "CellDict['a']", "expected a Cell, got int."),
    "activation": Bad(
        lambda: nn.get_activation("foo"), NameRefused,
        "get_activation('foo')",
        "expected one of softmax, logsoftmax, relu, relu6, tanh, gelu, elu, sigmoid, prelu, leakyrelu, hswish, hsigmoid, "
        "logsigmoid, softshrink, hshrink, fast_gelu, softmin, softmax2d, logsoftmaxExt, rrelu, tanhshrink, hardtanh, softsign, preluExt, "
        "threshold, silu, mish.",
    ),
    "primitive": Bad(
        lambda: Own()(z(1)), NotImplementedError,
        "Own",
        "expected a subclass with a __call__.",
        "define __call__(self, *inputs) on Own.",
    ),
    "primitive_arguments": Bad(
        lambda: P.ReduceSum(keepdims=True), TypeError,
        "ReduceSum(keepdims=True)",
        "expected ReduceSum(keep_dims=False, skip_mode=False).",
    ),
    "primitive_missing": Bad(lambda: P.Pad(), TypeError, "Pad()", "expected Pad(paddings)."),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str) -> None:
    check(BAD[name])
