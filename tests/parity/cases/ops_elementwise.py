"""Operators that work element by element: functions, primitives, and Tensor methods where there is one."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case

X = np.array([[-2.5, -1.0, -0.5, 0.0], [0.25, 0.5, 1.0, 3.0]], np.float32)
POSITIVE = np.abs(X) + np.float32(0.25)
INSIDE = X / np.float32(4)
Y = np.array([[2.0, -3.0, 0.5, 1.0], [-0.25, 4.0, 1.0, 2.0]], np.float32)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
LOGICAL = np.array([True, False, True])
OTHER = np.array([True, True, False])
INTEGERS = np.array([[12, 7], [-5, 0]], np.int32)
MORE = np.array([[10, 3], [6, -1]], np.int32)

UNARY = {
    **dict.fromkeys(
        "abs absolute ceil cos cosh erf erfc exp expm1 floor neg negative round sigmoid sign sin sinh square tan tanh trunc".split(), X,
    ),
    **dict.fromkeys("atan arctan asinh deg2rad rad2deg relu relu6 gelu elu selu celu leaky_relu silu mish softsign".split(), X),
    **dict.fromkeys("hardsigmoid hardswish hardshrink softshrink logsigmoid log_softmax softmax softplus".split(), X),
    **dict.fromkeys("log log10 log1p log2 sqrt rsqrt reciprocal lgamma digamma".split(), POSITIVE),
    **dict.fromkeys("asin arcsin acos arccos atanh erfinv".split(), INSIDE),
    **dict.fromkeys("acosh".split(), POSITIVE + np.float32(1)),
    **dict.fromkeys("isfinite isinf isnan".split(), SPECIAL),
    **dict.fromkeys("logical_not".split(), LOGICAL),
    **dict.fromkeys("tensor_exp identity ones_like zeros_like".split(), X),
}
PRIMITIVES = {
    **dict.fromkeys(
        "Abs Ceil Cos Cosh Erf Erfc Exp Expm1 Floor Neg Round Sigmoid Sign Sin Sinh Square Tan Tanh Trunc Atan Asinh".split(), X,
    ),
    **dict.fromkeys("ReLU ReLU6 GeLU Elu SeLU Mish Softsign Softplus HSigmoid HSwish HShrink SoftShrink LogSoftmax Softmax".split(), X),
    **dict.fromkeys("Log Log1p Sqrt Rsqrt Reciprocal Lgamma Digamma".split(), POSITIVE),
    **dict.fromkeys("Asin ACos Atanh Erfinv".split(), INSIDE),
    **dict.fromkeys("Acosh".split(), POSITIVE + np.float32(1)),
    **dict.fromkeys("IsFinite IsInf IsNan".split(), SPECIAL),
    **dict.fromkeys("LogicalNot".split(), LOGICAL),
    **dict.fromkeys("OnesLike ZerosLike Identity".split(), X),
}
BINARY = {
    **dict.fromkeys("add sub subtract mul multiply div divide true_divide floor_div floor_divide maximum minimum".split(), (X, Y)),
    **dict.fromkeys("floor_mod remainder".split(), (X, Y)),
    **dict.fromkeys("tensor_add tensor_sub tensor_mul tensor_div tensor_floordiv tensor_mod".split(), (X, Y)),
    **dict.fromkeys("equal eq not_equal ne greater gt greater_equal ge less lt less_equal le".split(), (X, np.float32(0.5) * X + Y * 0)),
    **dict.fromkeys("tensor_ge tensor_gt tensor_le tensor_lt".split(), (X, Y)),
    **dict.fromkeys("pow tensor_pow".split(), (POSITIVE, Y)),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), (LOGICAL, OTHER)),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), (INTEGERS, MORE)),
}
BINARY_PRIMITIVES = {
    **dict.fromkeys("Add Sub Mul Div RealDiv FloorMod Mod Maximum Minimum Greater GreaterEqual Less LessEqual".split(), (X, Y)),
    **dict.fromkeys("Equal NotEqual".split(), (X, np.abs(X))),
    **dict.fromkeys("Pow".split(), (POSITIVE, Y)),
    **dict.fromkeys("LogicalAnd LogicalOr LogicalXor".split(), (LOGICAL, OTHER)),
    **dict.fromkeys("BitwiseAnd BitwiseOr BitwiseXor".split(), (INTEGERS, MORE)),
}
METHODS = "abs ceil cos exp floor log sqrt tanh sigmoid square isnan".split()


def named(table):
    return {name: (name, *(values if isinstance(values, tuple) else (values,))) for name, values in table.items()}


def answer(function, arrays):
    return {"output": function(*(ms.Tensor(array) for array in arrays)).asnumpy()}


@case(over=named(UNARY), rtol=2e-6, atol=1e-5, graph=True)
def unary(item):
    return answer(getattr(ops, item[0]), item[1:])


@case(over=named(PRIMITIVES), rtol=2e-6, atol=1e-5)
def primitive(item):
    return answer(getattr(ops, item[0])(), item[1:])


@case(over=named(BINARY), rtol=2e-6, atol=1e-5, graph=True)
def binary(item):
    return answer(getattr(ops, item[0]), item[1:])


@case(over=named(BINARY_PRIMITIVES), rtol=2e-6, atol=1e-5)
def binary_primitive(item):
    return answer(getattr(ops, item[0])(), item[1:])


@case(over={name: name for name in METHODS}, rtol=2e-6, atol=1e-5)
def method(name):
    return {"output": getattr(ms.Tensor(POSITIVE), name)().asnumpy()}


@case(over={name: name for name in "add subtract multiply divide floor_mod".split()}, rtol=2e-6)
def integers(name):
    left, right = np.array([7, -7, 9], np.int32), np.array([2, 2, -4], np.int32)
    return answer(getattr(ops, name), (left, right))


@case(over={"f16": np.float16, "i32": np.int32, "u8": np.uint8}, rtol=1e-3)
def unary_dtypes(dtype):
    value = ms.Tensor(np.array([0, 1, 3]).astype(dtype))
    return {name: getattr(ops, name)(value).asnumpy() for name in ("abs", "square", "ones_like", "zeros_like")}


@case(rtol=2e-6, atol=1e-5)
def clamped():
    x = ms.Tensor(X)
    return {
        "clamp": ops.clamp(x, -1.0, 0.5).asnumpy(),
        "clip": ops.clip(x, min=-1.0).asnumpy(),
        "clip_by_value": ops.clip_by_value(x, ms.Tensor(-1.0), ms.Tensor(2.0)).asnumpy(),
        "clip_by_norm": ops.clip_by_norm(x, 1.5).asnumpy(),
        "clip_by_global_norm": ops.clip_by_global_norm((x, x), 1.5)[1].asnumpy(),
        "method": x.clip(-1, 1).asnumpy(),
    }


@case(rtol=2e-6, atol=1e-5)
def with_parameters():
    x = ms.Tensor(X)
    return {
        "elu": ops.elu(x, 1.0).asnumpy(),
        "leaky_relu": ops.leaky_relu(x, 0.3).asnumpy(),
        "prelu": ops.prelu(ms.Tensor(X[:, :2]), ms.Tensor(np.array([0.1, 0.2], np.float32))).asnumpy(),
        "PReLU": ops.PReLU()(ms.Tensor(X[:, :2]), ms.Tensor(np.array([0.1, 0.2], np.float32))).asnumpy(),
        "gelu_tanh": ops.gelu(x, approximate="tanh").asnumpy(),
        "softmax0": ops.softmax(x, axis=0).asnumpy(),
        "Softmax0": ops.Softmax(axis=0)(x).asnumpy(),
        "log_softmax0": ops.log_softmax(x, axis=0).asnumpy(),
        "glu": ops.glu(x, 1).asnumpy(),
        "softplus": ops.softplus(x, 2, 1).asnumpy(),
        "hardshrink": ops.hardshrink(x, 0.4).asnumpy(),
        "softshrink": ops.softshrink(x, 0.4).asnumpy(),
        "celu": ops.celu(x, 2.0).asnumpy(),
        "round": ops.round(ms.Tensor(np.array([0.5, 1.5, 2.5, -0.5], np.float32))).asnumpy(),
    }


@case()
def complex_parts():
    z = ms.Tensor(np.array([1 + 2j, -3j], np.complex64))
    return {"real": ops.real(z).asnumpy(), "imag": ops.imag(z).asnumpy(), "conj": ops.conj(z).asnumpy(),
            "Real": ops.Real()(z).asnumpy(), "Imag": ops.Imag()(z).asnumpy(), "Conj": ops.Conj()(z).asnumpy()}  # fmt: skip


@case()
def casts():
    x = ms.Tensor(np.array([1.9, -1.9, 0.0], np.float32))
    return {"cast": ops.cast(x, ms.int32).asnumpy(), "Cast": ops.Cast()(x, ms.int32).asnumpy(), "astype": x.astype("float64").asnumpy(),
            "to_bool": ops.cast(x, ms.bool_).asnumpy(), "scalar_cast": float(ops.scalar_cast(3, ms.float64)),
            "dtype": str(ops.dtype(x)), "DType": str(ops.DType()(x))}  # fmt: skip
