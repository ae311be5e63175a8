"""mindspore.numpy: functions of one value or two: values, dtypes, gradients. They run in a Cell, so that Graph mode compiles them."""
import mindspore as ms
import mindspore.numpy as np
import numpy as onp
from parity.case import case

X = onp.array([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]], onp.float32)
POSITIVE = onp.abs(X) + onp.float32(0.5)
INSIDE = X / onp.float32(4.0)
INTEGERS = onp.array([[1, -2, 3], [4, 5, -6]], onp.int32)
MORE = onp.array([[2, 3, -2], [3, 2, 4]], onp.int32)
Y = onp.array([1.5, -0.5, 2.5], onp.float32)
SHORT = onp.array([1, 2], onp.uint8)
LONG = onp.array([1, 2], onp.int64)
LOGICAL = onp.array([True, False])
SPECIAL = onp.array([1.0, onp.nan, onp.inf, -onp.inf, 0.0], onp.float32)

SMOOTH = "arcsinh arctan cbrt cos cosh deg2rad exp exp2 expm1 rad2deg radians sin sinh square tan tanh negative positive abs absolute fabs"
UNARY = {
    **dict.fromkeys((SMOOTH + " ceil fix floor rint sign trunc reciprocal").split(), X),
    **dict.fromkeys("log log10 log1p log2 sqrt".split(), POSITIVE),
    **dict.fromkeys("arccos arcsin arctanh".split(), INSIDE),
    **dict.fromkeys("arccosh".split(), POSITIVE + onp.float32(1)),
    **dict.fromkeys("isfinite isinf isnan isneginf isposinf logical_not signbit".split(), SPECIAL),
    **dict.fromkeys("bitwise_not invert".split(), INTEGERS),
}
SLOPES = (SMOOTH + " log log1p sqrt arccos arcsin arctanh arccosh reciprocal").split()
BINARY = {
    **dict.fromkeys(
        "add arctan2 copysign divide floor_divide fmod heaviside hypot logaddexp2 maximum minimum mod multiply remainder subtract "
        "true_divide equal greater greater_equal less less_equal not_equal logical_and logical_or logical_xor".split(), (X, Y),
    ),
    **dict.fromkeys("power float_power".split(), (POSITIVE, Y)),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor gcd lcm".split(), (INTEGERS, MORE)),
}
INTEGER_NAMES = (
    "add arctan2 copysign divide floor_divide fmod heaviside hypot maximum minimum mod multiply remainder subtract true_divide equal "
    "greater greater_equal less less_equal not_equal logical_and logical_or logical_xor float_power"
).split()
MIXED = [name for name in INTEGER_NAMES if name not in ("copysign", "maximum", "minimum")]


class Net(ms.nn.Cell):
    def __init__(self, function, **keywords):
        super().__init__()
        self.function, self.keywords = function, keywords

    def construct(self, *inputs):
        return self.function(*inputs, **self.keywords)


def answer(name, arrays, **keywords):
    out = Net(getattr(np, name), **keywords)(*(ms.Tensor(array) for array in arrays))
    return {"output": out.asnumpy()}


def slopes(name, arrays):
    inputs = tuple(ms.Tensor(array) for array in arrays)
    gradients = ms.grad(Net(getattr(np, name)), tuple(range(len(inputs))))(*inputs)
    return {f"grad{i}": tensor.asnumpy() for i, tensor in enumerate(gradients if isinstance(gradients, tuple) else (gradients,))}


@case(over={name: name for name in UNARY}, rtol=2e-6, atol=1e-5, graph=True)
def unary(name):
    return answer(name, (UNARY[name],))


@case(over={name: name for name in SLOPES}, rtol=1e-5, atol=1e-5, graph=True)
def unary_gradient(name):
    return slopes(name, (UNARY[name],))


NARROWED = [name for name in UNARY if name not in ("fix", "isneginf", "isposinf", "signbit", "log2", "invert", "bitwise_not")]


@case(over={name: name for name in NARROWED}, rtol=2e-3)
def unary_float16(name):
    return answer(name, (UNARY[name],), dtype=np.float16)


# The 2e-4 is for tanh(5), which is above 1 in MindSpore.
TRIGONOMETRIC = "arctan arcsinh cos cosh sin sinh tan tanh".split()
KEEPING = (
    "abs absolute fabs exp2 negative positive square sqrt ceil trunc fix sign deg2rad rad2deg isfinite logical_not signbit cbrt"
).split()


@case(over={name: name for name in (*TRIGONOMETRIC, *KEEPING)}, rtol=1e-5, atol=2e-4, graph=True)
def unary_integers(name):
    return answer(name, (INTEGERS,))


@case(over={name: name for name in (*TRIGONOMETRIC, "abs", "exp2", "sqrt", "ceil", "square")}, rtol=2e-3, atol=1e-5)
def unary_bytes(name):
    return answer(name, (SHORT,))


LISTED = "cbrt ceil trunc exp2 reciprocal sign sqrt square isnan logical_not exp floor rint isinf".split()


@case(over={name: name for name in LISTED}, rtol=1e-5)
def unary_list(name):
    return {"output": getattr(np, name)([1.0, 2.5]).asnumpy()}


@case(over={name: name for name in (*SMOOTH.split(), "sqrt", "ceil", "floor", "sign", "isnan")}, graph=True)
def unary_empty(name):
    return answer(name, (onp.zeros((0, 3), onp.float32),))


@case(over={name: name for name in BINARY}, rtol=2e-6, atol=1e-5, graph=True)
def binary(name):
    return answer(name, BINARY[name])


SLOPING = "add divide hypot maximum minimum multiply subtract true_divide arctan2 power".split()


@case(over={name: name for name in SLOPING}, rtol=1e-5, graph=True)
def binary_gradient(name):
    return slopes(name, BINARY[name])


@case(over={name: name for name in INTEGER_NAMES}, rtol=1e-5, graph=True)
def binary_integers(name):
    return answer(name, (INTEGERS, MORE))


@case(over={name: name for name in MIXED}, rtol=1e-5, graph=True)
def binary_mixed(name):
    return answer(name, (X, INTEGERS))


@case(over={name: name for name in MIXED}, rtol=2e-3)
def binary_bytes(name):
    return answer(name, (SHORT, SHORT.astype(onp.int8)))


@case(over={name: name for name in MIXED}, rtol=2e-3)
def binary_long(name):
    return answer(name, (LONG, LONG.astype(onp.int32)))


NUMBERED = "add subtract divide floor_divide fmod mod remainder power heaviside hypot equal greater less".split()


@case(over={name: name for name in NUMBERED}, rtol=1e-5)
def binary_number(name):
    function = getattr(np, name)
    return {
        "right": function(ms.Tensor(X), 2).asnumpy(), "left": function(2, ms.Tensor(POSITIVE)).asnumpy(),
        "integers": function(ms.Tensor(INTEGERS), 2).asnumpy(), "raised": function(ms.Tensor(INTEGERS), 0.5).asnumpy(),
        "both": function(7, 3).asnumpy(), "lists": function([1, 2], [3, 4]).asnumpy(),
        "half": function(ms.Tensor(Y).astype(ms.float16), 2.5).asnumpy(),
    }  # fmt: skip


@case(over={name: name for name in "add subtract multiply divide mod maximum equal logical_and hypot".split()}, rtol=2e-3)
def binary_float16(name):
    return answer(name, (X, Y), dtype=np.float16)


@case()
def constants():
    return {"pi": np.pi, "inf": str(np.inf), "nan": str(np.nan), "PINF": str(np.PINF), "NINF": str(np.NINF),
            "float_": str(np.float_), "int_": str(np.int_), "uint": str(np.uint), "numeric_types": np.numeric_types}  # fmt: skip


@case(over={name: name for name in "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()})
def dtypes(name):
    return {"dtype": str(getattr(np, name)), "zeros": np.zeros(2, getattr(np, name)).asnumpy()}


@case(rtol=1e-6)
def random_shapes():
    drawn = {"rand": np.rand(2, 3), "rand1": np.rand(), "rand2": np.rand((2, 2), dtype=np.float16), "randn": np.randn(4),
            "randn1": np.randn(dtype=np.float64), "randint": np.randint(5), "randint1": np.randint(2, 3, (2, 3)),
            "empty": np.empty((2, 3)), "empty1": np.empty(3, np.int32), "empty_like": np.empty_like(ms.Tensor(X))}  # fmt: skip
    return {**{name: [list(array.shape), str(array.dtype)] for name, array in drawn.items()}, "values": drawn["randint1"].asnumpy()}
