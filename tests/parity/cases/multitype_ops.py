"""The operators of Python as MultitypeFuncGraphs, the types of their entries, and names of types."""
from __future__ import annotations

import numpy as np
from mindspore import Tensor, ops
from mindspore import dtype as mstype
from mindspore._c_expression import typing
from mindspore.ops.composite import multitype_ops as graphs
from parity.case import case


def tensor(*values, dtype=np.float32):
    return Tensor(np.array(values, dtype))


@case()
def arithmetic():
    x, y = tensor(7, -3, 2), tensor(2, 2, 4)
    results = {
        name: graph(x, y).asnumpy() for name, graph in {
            "add": graphs.add, "sub": graphs.sub, "mul": graphs.mul, "mod": graphs.mod,
            "pow": graphs.pow_,
        }.items()
    }
    results |= {"number": graphs.add(x, 2).asnumpy(), "reversed": graphs.sub(2, x).asnumpy()}
    results |= {"numbers": np.array([graphs.add(1, 2), graphs.mul(3, 4), graphs.sub(1, 2)])}
    return results | {"negative": graphs.negative(x).asnumpy(), "positive": graphs.uadd(x).asnumpy()}


@case()
def integers():
    x, y = tensor(6, 5, 4, dtype=np.int32), tensor(3, 4, 5, dtype=np.int32)
    return {
        "and": graphs.bitwise_and(x, y).asnumpy(), "or": graphs.bitwise_or(x, y).asnumpy(), "xor": graphs.bitwise_xor(x, y).asnumpy(),
        "shifts": np.array([graphs.left_shift(1, 3), graphs.right_shift(16, 2)]),
    }


@case()
def comparisons():
    x, y = tensor(1, 2, 3), tensor(3, 2, 1)
    return {
        name: graph(x, y).asnumpy() for name, graph in {
            "equal": graphs.equal, "not_equal": graphs.not_equal, "less": graphs.less, "less_equal": graphs.less_equal,
            "greater": graphs.greater, "greater_equal": graphs.greater_equal,
        }.items()
    } | {"text": np.array([graphs.equal("a", "a"), graphs.equal("a", "b"), graphs.equal(None, None), graphs.not_equal(1, 2)])}


@case()
def names_of_types():
    names = (
        "Tensor", "Number", "Int", "Float", "Bool", "String", "Int32", "float32", "Complex64", "BFloat16", "Tuple", "List", "None",
        "Slice", "Dictionary", "Ellipsis", "Function", "TypeType", "EnvType", "COOTensor", "CSRTensor", "RowTensor", "Tensor[Float32]",
        "List[Int32]",
        "Tuple[Int32,Float32]",
    )
    types = [typing.str_to_type(name) for name in names]
    return {"text": np.array([str(type_) for type_ in types]), "repr": np.array([repr(type_) for type_ in types])}


@case()
def classes_of_types():
    types = [
        typing.Bool(), typing.Int(8), typing.Int(), typing.UInt(16), typing.Float(16), typing.Float(), typing.BFloat(16), typing.BFloat(),
        typing.Complex(64), typing.Complex(), typing.Number(), typing.String(), typing.List([mstype.float32]), typing.TensorType(),
    ]
    alike = [typing.Int(32) == mstype.int32, hash(typing.Int(32)) == hash(mstype.int32), typing.Float() == mstype.float_]
    return {"text": np.array([str(type_) for type_ in types]), "alike": np.array(alike)}


@case()
def entries_are_chosen_in_their_order():
    graph = ops.MultitypeFuncGraph("graph")
    for index, types in enumerate((("Number", "Bool"), ("Number", "Number"), ("Tuple", "None"), ("Tensor", "Tensor"), ("Int", "Float"))):
        graph.register(*types)(lambda x, y, index=index: index)
    x = tensor(1)
    return {"chosen": np.array([graph(1, True), graph(True, 1), graph(1, 2.0), graph(1j, 1), graph((1,), None), graph(x, x)])}
