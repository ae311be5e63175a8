"""What Tensors, Parameters, initializers, seeds and jit say of bad arguments."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, ParameterTuple, Tensor
from mindspore.common import initializer as init
from support.error_messages import Bad, check


def z(*shape, d=np.float32):
    return Tensor(np.zeros(shape, d))


def p(name="w"):
    return Parameter(z(2), name=name)


class OwnInit(init.Initializer):
    pass


BAD = {
    "tensor_nothing": Bad(lambda: Tensor(), TypeError, "Tensor()", "expected data, or a shape and a dtype.", "write Tensor([1.0, 2.0])."),
    "tensor_text": Bad(
        lambda: Tensor("abc"), TypeError,
        "Tensor('abc')",
        "expected a number, a list, a tuple, a NumPy array or a Tensor, got str.",
        "write Tensor([1.0, 2.0], mindspore.float32).",
    ),
    "tensor_dict": Bad(
        lambda: Tensor({}), TypeError,
        "Tensor({})",
        "expected a number, a list, a tuple, a NumPy array or a Tensor, got dict.",
        "write Tensor([1.0, 2.0], mindspore.float32).",
    ),
    "tensor_ragged": Bad(
        lambda: Tensor([[1], [1, 2]]), TypeError, "Tensor([[1], [1, 2]])",
        "expected rows of equal length. For Tensor, the input_data is [[1], [1, 2]] that contain unsupported element.",
    ),
    "tensor_none": Bad(
        lambda: Tensor([None, 1]), TypeError, "Tensor([None, 1])",
        "expected numbers or truth values. For Tensor, the input_data is [None, 1] that contain unsupported element.",
    ),
    "tensor_mixed": Bad(
        lambda: Tensor([z(1), 2]), TypeError,
        "Tensor of a list",
        "expected Tensors and numbers of one shape, got (1,), ().",
    ),
    "tensor_numpy_dtype": Bad(
        lambda: Tensor([1.0], np.float32), TypeError,
        "Tensor(dtype=<class 'numpy.float32'>)",
        "expected a MindSpore dtype that holds numbers.",
        "write dtype=mindspore.float32.",
    ),
    "tensor_generic": Bad(
        lambda: Tensor([1.0], ms.float_), TypeError,
        "Tensor(dtype=mindspore.float)",
        "expected a MindSpore dtype that holds numbers.",
        "write dtype=mindspore.float32.",
    ),
    "tensor_python_dtype": Bad(
        lambda: Tensor([1], int), TypeError,
        "Tensor(dtype=<class 'int'>)",
        "expected a MindSpore dtype that holds numbers.",
        "write dtype=mindspore.int64.",
    ),
    "tensor_init": Bad(
        lambda: Tensor(init=init.One()), ValueError,
        "Tensor(init=...)",
        "expected shape and dtype with it.",
        "write Tensor(shape=(2, 3), dtype=mindspore.float32, init=One()).",
    ),
    "tensor_words": Bad(
        lambda: Tensor(np.array(["a"])), TypeError,
        "Tensor of a NumPy array of dtype <U1",
        "expected numbers or truth values. For Tensor, initializing tensor by numpy array failed, because it has elements of "
        "<class 'numpy.str_'>.",
    ),
    "from_numpy": Bad(
        lambda: Tensor.from_numpy([1.0]), TypeError,
        "Tensor.from_numpy([1.0])",
        "expected a NumPy array, got list.",
        "write Tensor([1.0]).",
    ),
    "truth": Bad(
        lambda: bool(z(2)), ValueError,
        "truth of a Tensor",
        "expected a Tensor of one element, got shape (2,).",
        "use .asnumpy() for all of them, or index one.",
    ),
    "number": Bad(
        lambda: int(z(2)), ValueError,
        "int(Tensor)",
        "expected a Tensor of one element, got shape (2,).",
        "use .asnumpy() for all of them, or index one.",
    ),
    "floating": Bad(
        lambda: float(z(2)), ValueError,
        "float(Tensor)",
        "expected a Tensor of one element, got shape (2,).",
        "use .asnumpy() for all of them, or index one.",
    ),
    "cplx": Bad(
        lambda: complex(z(2)), ValueError,
        "complex(Tensor)",
        "expected a Tensor of one element, got shape (2,).",
        "use .asnumpy() for all of them, or index one.",
    ),
    "item": Bad(
        lambda: z(2).item(), ValueError,
        "item()",
        "expected a Tensor of one element, got shape (2,).",
        "use .asnumpy() for all of them, or index one.",
    ),
    "index": Bad(lambda: [1, 2][Tensor(1.0)], TypeError, "a Tensor as an index", "expected integers, got Float32."),
    "index_many": Bad(
        lambda: [1, 2][Tensor([1, 2])], ValueError,
        "index",
        "expected a Tensor of one element, got shape (2,).",
        "use .asnumpy() for all of them, or index one.",
    ),
    "length": Bad(
        lambda: len(Tensor(1.0)), TypeError, "len(Tensor)",
        "expected at least one axis, got a 0-d Tensor. Not support len of a 0-D tensor.",
    ),
    "iterate": Bad(
        lambda: list(Tensor(1.0)), TypeError,
        "iter(Tensor)",
        "expected at least one axis, got a 0-d Tensor. Cannot iterate over a scalar tensor.",
    ),
    "astype": Bad(
        lambda: z(2).astype("x"), TypeError,
        "dtype 'x'",
        "expected one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, "
        "bfloat16, complex64, complex128, float8_e4m3fn, float8_e5m2.",
    ),
    "astype_none": Bad(
        lambda: z(2).astype(None), TypeError,
        "dtype None",
        "a Tensor can't hold it; expected a dtype such as mindspore.float32.",
    ),
    "nptype": Bad(
        lambda: ms.dtype_to_nptype(ms.float_), TypeError,
        "dtype mindspore.float",
        "expected one that NumPy has, such as mindspore.float32.",
    ),
    "nptype_text": Bad(
        lambda: ms.dtype_to_nptype(ms.string), TypeError,
        "dtype mindspore.string_",
        "expected one that NumPy has, such as mindspore.float32.",
    ),
    "pytype": Bad(lambda: ms.pytype_to_dtype("abc"), TypeError, "'abc'", "expected a Python or NumPy type such as float or np.float32."),
    "parameter_truth": Bad(
        lambda: Parameter(True), ValueError,
        "Parameter(True)", "expected a number, got a bool.", "write Tensor(True).",
    ),
    "parameter_name": Bad(
        lambda: Parameter(z(2), name=3), ValueError,
        "Parameter(name=3)",
        "expected a str, got int.",
        "write name='weight'.",
    ),
    "parameter_flag": Bad(
        lambda: Parameter(z(2), name="w", requires_grad=1), TypeError,
        "Parameter 'w'",
        "requires_grad=1: expected a bool, got int.",
    ),
    "tuple_other": Bad(lambda: ParameterTuple([z(2)]), TypeError, "ParameterTuple", "expected Parameters, got Tensor."),
    "tuple_twice": Bad(
        lambda: ParameterTuple([p(), p()]), ValueError,
        "ParameterTuple",
        "the name 'w' occurs twice, its name 'w' already exists.",
        "give each Parameter a unique name.",
    ),
    "seed_type": Bad(lambda: ms.set_seed(1.5), TypeError, "set_seed(1.5)", "expected an int, got float."),
    "seed_value": Bad(lambda: ms.set_seed(-1), ValueError, "set_seed(-1)", "expected an int from 0 on."),
    "jit_type": Bad(lambda: ms.jit(3), TypeError, "jit(3)", "expected a function, got int."),
    "jit_option": Bad(
        lambda: ms.jit(lambda x: x, foo=1), TypeError,
        "jit(foo=1)",
        "expected one of capture_mode, jit_level, dynamic, fullgraph, backend.",
    ),
    "jit_level": Bad(lambda: ms.jit(lambda x: x, jit_level="O7"), ValueError, "jit(jit_level='O7')", "expected one of 'O0', 'O1', 'O2'."),
    "jit_mode": Bad(
        lambda: ms.jit(lambda x: x, capture_mode="x"), ValueError,
        "jit(capture_mode='x')",
        "expected one of 'ast', 'bytecode', 'trace'.",
    ),
    "jit_config": Bad(lambda: ms.JitConfig(jit_level="O7"), ValueError, "JitConfig(jit_level='O7')", "expected one of 'O0', 'O1', 'O2'."),
    "jit_class": Bad(lambda: ms.jit_class(3), TypeError, "jit_class(3)", "expected a class, got int."),
    "init_name": Bad(
        lambda: init.initializer("foo", [2]), ValueError,
        "initializer('foo')",
        "expected one of constant, dirac, henormal, heuniform, identity, normal, one, ones, orthogonal, sparse, "
        "truncatednormal, uniform, variancescaling, xaviernormal, xavieruniform, zero, zeros.",
    ),
    "init_type": Bad(
        lambda: init.initializer(None, [2]), TypeError,
        "initializer(None)",
        "expected a name, an Initializer, a number or a Tensor, got NoneType.",
    ),
    "init_shape": Bad(lambda: init.initializer("zeros", [0]), ValueError, "initializer(shape=[0])", "expected lengths from 1 on."),
    "init_shapes": Bad(
        lambda: init.initializer(z(2), [3]), ValueError,
        "initializer(Tensor of shape (2,), shape=[3])",
        "expected equal shapes.",
    ),
    "init_own": Bad(
        lambda: init.initializer(OwnInit(), [2], ms.float32).init_data(), NotImplementedError,
        "OwnInit",
        "expected a method _initialize(self, arr).",
    ),
    "init_fans": Bad(
        lambda: init.initializer("he_uniform", [2]).init_data(), ValueError,
        "initial values for shape (2,)",
        "fans need at least two axes.",
        "use Normal() for vectors.",
    ),
    "init_mode": Bad(lambda: init.HeUniform(mode="x"), ValueError, "HeUniform(mode='x')", "expected 'fan_in' or 'fan_out'."),
    "init_gain": Bad(
        lambda: init.initializer(init.HeNormal(nonlinearity="foo"), [2, 2]).init_data(), ValueError,
        "nonlinearity='foo'",
        "expected one of sigmoid, linear, conv1d, conv2d, conv3d, tanh, relu, conv_transpose1d, "
        "conv_transpose2d, conv_transpose3d, leaky_relu.",
    ),
    "init_scale": Bad(lambda: init.VarianceScaling(scale=-1), ValueError, "VarianceScaling(scale=-1)", "expected a number above 0."),
    "init_vmode": Bad(
        lambda: init.VarianceScaling(mode="x"), ValueError,
        "VarianceScaling(mode='x')",
        "expected 'fan_in', 'fan_out' or 'fan_avg'.",
    ),
    "init_dist": Bad(
        lambda: init.VarianceScaling(distribution="x"), ValueError,
        "VarianceScaling(distribution='x')",
        "expected 'uniform', 'truncated_normal' or 'untruncated_normal'.",
    ),
    "init_orth": Bad(
        lambda: init.initializer(init.Orthogonal(), [2]).init_data(), ValueError,
        "Orthogonal for shape (2,)",
        "expected at least two axes.",
    ),
    "init_sparse": Bad(
        lambda: init.initializer(init.Sparse(0.5), [2]).init_data(), ValueError, "Sparse for shape (2,)", "expected two axes.",
    ),
    "init_sigma": Bad(
        lambda: init.initializer(init.Normal(-1.0), [2]).init_data(), ValueError, "normal initial values with sigma=-1.0",
        "expected a number from 0 on.",
    ),
    "init_sigma_0": Bad(
        lambda: init.initializer(init.TruncatedNormal(0), [2]).init_data(), ValueError, "truncated normal initial values with sigma=0",
        "expected a positive number.",
    ),
    "graph_seed": Bad(lambda: init._get_graph_seed(-1, "x"), ValueError, "x: seed=-1", "expected an int from 0 on."),
    "init_dirac": Bad(
        lambda: init.initializer(init.Dirac(), [2]), ValueError,
        "Dirac for shape (2,)",
        "expected three, four or five axes.",
    ),
    "init_dirac_groups": Bad(
        lambda: init.initializer(init.Dirac(2), [3, 1, 1]), ValueError,
        "Dirac(groups=2) for shape (3, 1, 1)",
        "the first axis is not a multiple of groups.",
    ),
    "init_identity": Bad(lambda: init.initializer(init.Identity(), [2]), ValueError, "Identity for shape (2,)", "expected two axes."),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str) -> None:
    check(BAD[name])
