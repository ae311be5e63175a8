"""Mathematics of two operands, special functions, and what is asked of single numbers."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case, raised
from parity.forms import probe

X = np.array([[-2.5, -1.0, -0.5, 0.25], [0.75, 0.5, 1.5, 3.0]], np.float32)
Y = np.array([[2.0, -3.0, 0.5, 1.0], [-0.25, 4.0, 1.0, 2.0]], np.float32)
P = np.abs(X) + np.float32(0.25)
Q = np.abs(Y) + np.float32(0.5)
I = np.array([12, 7, -5], np.int32)
J = np.array([8, 21, 3], np.int32)
SMALL = np.array([1, 2, 3], np.int32)
NUMBERS = np.array([np.nan, np.inf, -np.inf, -2.0, 0.0, 3.5], np.float32)
Z = (X + 1j * Y).astype(np.complex64)
EMPTY = np.zeros((0, 3), np.float32)

TWO = {
    "atan2": lambda: probe(ops.atan2, X, Y), "arctan2": lambda: probe(ops.arctan2, X, Y), "Atan2": lambda: probe(ops.Atan2(), X, Y),
    "atan2_wide": lambda: probe(ops.atan2, X.astype(np.float64), Y.astype(np.float64)),
    "atan2_spread": lambda: probe(ops.atan2, X, Y[0]), "hypot": lambda: probe(ops.hypot, X, Y), "Hypot": lambda: probe(ops.Hypot(), X, Y),
    "fmax": lambda: probe(ops.fmax, X, Y, by=()), "Fmax": lambda: probe(ops.Fmax(), X, Y, by=()),
    "gcd": lambda: probe(ops.gcd, I, J), "Gcd": lambda: probe(ops.Gcd(), I, J), "lcm": lambda: probe(ops.lcm, I, J),
    "Lcm": lambda: probe(ops.Lcm(), I, J), "logaddexp": lambda: probe(ops.logaddexp, X, Y),
    "logaddexp2": lambda: probe(ops.logaddexp2, X, Y), "heaviside": lambda: probe(ops.heaviside, X, Y, by=()),
    "Heaviside": lambda: probe(ops.Heaviside(), X, Y, by=()), "copysign": lambda: probe(ops.copysign, X, Y, by=()),
    "copysign_integers": lambda: probe(ops.copysign, I, -1), "xdivy": lambda: probe(ops.xdivy, X, Y), "Xdivy": lambda: probe(
        ops.Xdivy(), X, Y,
    ),
    "xlogy": lambda: probe(ops.xlogy, X, P), "Xlogy": lambda: probe(ops.Xlogy(), X, P), "xlogy_number": lambda: probe(ops.xlogy, I, 2),
    "DivNoNan": lambda: probe(ops.DivNoNan(), X, np.round(Y)), "MulNoNan": lambda: probe(ops.MulNoNan(), X, Y),
    "DivNoNan_zero": lambda: probe(ops.DivNoNan(), X, Y * 0), "SquaredDifference": lambda: probe(ops.SquaredDifference(), X, Y),
    "SquaredDifference_spread": lambda: probe(ops.SquaredDifference(), X, Y[:1]),
    "truncate_div": lambda: probe(ops.truncate_div, X, Y, by=()), "TruncateDiv": lambda: probe(ops.TruncateDiv(), I, J),
    "truncate_mod": lambda: probe(ops.truncate_mod, X, Y, by=()), "TruncateMod": lambda: probe(ops.TruncateMod(), I, J),
    "bitwise_left_shift": lambda: probe(ops.bitwise_left_shift, I, SMALL), "LeftShift": lambda: probe(ops.LeftShift(), I, SMALL),
    "bitwise_right_shift": lambda: probe(ops.bitwise_right_shift, I, SMALL), "RightShift": lambda: probe(ops.RightShift(), I, SMALL),
    "left_shift_number": lambda: probe(ops.bitwise_left_shift, I, 2), "ldexp": lambda: probe(ops.ldexp, X, Y),
    "float_power": lambda: probe(ops.float_power, X, 2), "float_power_integers": lambda: probe(ops.float_power, I, 2),
    "exp2": lambda: probe(ops.exp2, X), "exp2_integers": lambda: probe(ops.exp2, I), "lerp": lambda: probe(ops.lerp, X, Y, 0.25),
    "lerp_tensor": lambda: probe(ops.lerp, X, Y, P), "Lerp": lambda: probe(ops.Lerp(), X, Y, P),
    "addcmul": lambda: probe(ops.addcmul, X, Y, P, 0.5), "addcdiv": lambda: probe(ops.addcdiv, X, Y, P, 2.0),
    "Addcmul": lambda: probe(ops.Addcmul(), X, Y, P, np.array(0.5, np.float32), by=(0, 1, 2)),
    "Addcdiv": lambda: probe(ops.Addcdiv(), X, Y, P, np.array(2.0, np.float32), by=(0, 1, 2)),
    "isclose": lambda: probe(ops.isclose, X, np.where(X > 0, X, Y)), "IsClose": lambda: probe(ops.IsClose(0.5, 0.1), X, Y),
    "isclose_integers": lambda: probe(ops.isclose, I, J), "isclose_nan": lambda: probe(ops.isclose, NUMBERS, NUMBERS, equal_nan=True),
    "approximate_equal": lambda: probe(ops.approximate_equal, X, X + 1e-6), "ApproximateEqual": lambda: probe(
        ops.ApproximateEqual(0.7), X, Y,
    ),
    "EqualCount": lambda: probe(ops.EqualCount(), X, np.abs(X), by=()), "SquareSumAll": lambda: probe(ops.SquareSumAll(), X, Y),
    "Complex": lambda: probe(ops.Complex(), X, Y), "polar": lambda: probe(ops.polar, P, X), "Polar": lambda: probe(ops.Polar(), P, X),
    "CompareAndBitpack": lambda: probe(
        ops.CompareAndBitpack(), np.arange(16, dtype=np.float32).reshape(2, 8) % 3, np.array(0.5, np.float32),
    ),
    "igamma": lambda: probe(ops.igamma, P, Q, by=()), "Igamma": lambda: probe(ops.Igamma(), P, Q, by=()),
    "igammac": lambda: probe(ops.igammac, P, Q, by=()), "Igammac": lambda: probe(ops.Igammac(), P, Q, by=()),
    "zeta": lambda: probe(ops.zeta, P + 1, Q, by=()), "Zeta": lambda: probe(ops.Zeta(), P + 1, Q, by=()),
    "floordiv": lambda: probe(ops.floordiv, X, Y, by=()), "floormod": lambda: probe(ops.floormod, X, Y, by=()),
    "empty": lambda: probe(ops.hypot, EMPTY, EMPTY, by=()), "xlogy_f16": lambda: probe(
        ops.xlogy, X.astype(np.float16), P.astype(np.float16),
    ),
}  # fmt: skip

SINGLE_INPUT = {
    **{name: (lambda name=name: probe(getattr(ops, name), P)) for name in (
        "bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1"
    ).split()},
    **{name: (lambda name=name: probe(getattr(ops, name)(), P)) for name in (
        "BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1"
    ).split()},
    **{name + "_negative": (lambda name=name: probe(getattr(ops, name), X)) for name in "bessel_i0 bessel_i1 bessel_j0 bessel_j1".split()},
    "i0": lambda: probe(ops.i0, X), "sinc": lambda: probe(ops.sinc, X), "sinc_integers": lambda: probe(ops.sinc, I),
    "Sinc": lambda: probe(ops.Sinc(), X), "sgn": lambda: probe(ops.sgn, X, by=()), "signbit": lambda: probe(ops.signbit, X),
    "isneginf": lambda: probe(ops.isneginf, NUMBERS), "isposinf": lambda: probe(ops.isposinf, NUMBERS),
    "isreal": lambda: probe(ops.isreal, Z), "positive": lambda: probe(ops.positive, X), "angle": lambda: probe(ops.angle, Z),
    "Angle": lambda: probe(ops.Angle(), Z), "arccosh": lambda: probe(ops.arccosh, P + 1), "arcsinh": lambda: probe(ops.arcsinh, X),
    "arctanh": lambda: probe(ops.arctanh, X / 4), "tensor_expm1": lambda: probe(ops.tensor_expm1, X),
    "ComplexAbs": lambda: probe(ops.ComplexAbs(), Z), "frac": lambda: probe(ops.frac, X, by=()),
    "Rint": lambda: probe(ops.Rint(), X * 2, by=()), "inv": lambda: probe(ops.inv, X), "Inv": lambda: probe(ops.Inv(), X),
    "inv_integers": lambda: probe(ops.inv, np.array([1, -1, 5], np.int32)), "invert": lambda: probe(ops.invert, I),
    "Invert": lambda: probe(ops.Invert(), I), "population_count": lambda: probe(ops.population_count, I.astype(np.int16)),
    "PopulationCount": lambda: probe(ops.PopulationCount(), np.array([255, 7], np.uint8)), "eps": lambda: probe(ops.eps, X, by=()),
    "Eps": lambda: probe(ops.Eps(), X, by=()), "nan_to_num": lambda: probe(ops.nan_to_num, NUMBERS, by=()),
    "nan_to_num_given": lambda: probe(ops.nan_to_num, NUMBERS, 1.0, 2.0, 3.0, by=()),
    "NanToNum": lambda: probe(ops.NanToNum(1.0, 2.0, 3.0), NUMBERS, by=()), "logit": lambda: probe(ops.logit, P / 5),
    "logit_eps": lambda: probe(ops.logit, P, 0.1), "Logit": lambda: probe(ops.Logit(0.2), P), "polygamma": lambda: probe(
        ops.polygamma, np.array(2, np.int32), P, by=(1,),
    ),
    "Polygamma": lambda: probe(ops.Polygamma(), np.array(1, np.int32), P, by=(1,)), "mvlgamma": lambda: probe(ops.mvlgamma, P + 3, 2),
    "Mvlgamma": lambda: probe(ops.Mvlgamma(3), P + 3), "Betainc": lambda: probe(ops.Betainc(), P, Q, np.abs(X) / 4, by=(2,)),
    "view_as_real": lambda: probe(ops.view_as_real, Z), "CheckNumerics": lambda: probe(ops.CheckNumerics(), X),
    "IdentityN": lambda: probe(ops.IdentityN(), (X, Y)), "DataFormatDimMap": lambda: probe(ops.DataFormatDimMap(), np.array(
        [0, 1, 2, 3], np.int32,
    )),
    "DataFormatVecPermute": lambda: probe(ops.DataFormatVecPermute(), np.array([1, 2, 3, 4], np.int32)),
    "logspace": lambda: probe(ops.logspace, np.array(0.0, np.float32), np.array(2.0, np.float32), 5, by=()), "LogSpace": lambda: probe(
        ops.LogSpace(5, 2), np.array(0.0, np.float32), np.array(3.0, np.float32), by=(),
    ),
    "numel": lambda: probe(ops.numel, X, by=()), "is_nonzero": lambda: probe(ops.is_nonzero, np.array(2.0, np.float32), by=()),
    "empty": lambda: probe(ops.exp2, EMPTY, by=()),
}


@case(over=TWO, rtol=1e-5, atol=2e-6, graph=True)
def two(ask):
    return ask()


@case(over=SINGLE_INPUT, rtol=2e-5, atol=2e-6, graph=True)
def one(ask):
    return ask()


@case()
def kinds():
    x, z, i = ms.Tensor(X), ms.Tensor(Z), ms.Tensor(I)
    return {"complex": [ops.is_complex(v) for v in (x, z, i)], "real": [ops.is_floating_point(v) for v in (x, z, i)]}


@case()
def refused():
    x, i = ms.Tensor(X), ms.Tensor(I)
    return {
        "atan2 of texts": raised(lambda: ops.atan2(x, "1")),        "invert of reals": raised(lambda: ops.invert(x)),
        "logit of a text": raised(lambda: ops.logit("x")),
        "float to gcd": raised(lambda: ops.gcd(i, 1.5)), "lerp of a text": raised(lambda: ops.lerp(x, x, "1")),
    }


@case(over={"f16": np.float16, "f64": np.float64}, rtol=2e-3, atol=1e-3)
def other_floats(dtype):
    x, y, p = (ms.Tensor(v.astype(dtype)) for v in (X, Y, P))
    return {
        "logaddexp": ops.logaddexp(x, y).asnumpy(), "xdivy": ops.xdivy(x, y).asnumpy(),
        "sinc": ops.sinc(x).asnumpy(), "exp2": ops.exp2(x).asnumpy(), "frac": ops.frac(x).asnumpy(), "inv": ops.inv(y).asnumpy(),
        "eps": ops.eps(p).asnumpy(),
    }


METHODS = {
    "atan2": lambda x, y, p: x.atan2(y), "hypot": lambda x, y, p: x.hypot(y), "logaddexp": lambda x, y, p: x.logaddexp(y),
    "logaddexp2": lambda x, y, p: x.logaddexp2(y), "heaviside": lambda x, y, p: x.heaviside(y), "copysign": lambda x, y, p: x.copysign(y),
    "xdivy": lambda x, y, p: x.xdivy(y), "xlogy": lambda x, y, p: x.xlogy(p), "ldexp": lambda x, y, p: x.ldexp(y),
    "float_power": lambda x, y, p: x.float_power(2), "lerp": lambda x, y, p: x.lerp(y, 0.5),
    "addcmul": lambda x, y, p: x.addcmul(x, y), "isclose": lambda x, y, p: x.isclose(y),
    "sinc": lambda x, y, p: x.sinc(), "sgn": lambda x, y, p: x.sgn(), "signbit": lambda x, y, p: x.signbit(),
    "isneginf": lambda x, y, p: x.isneginf(), "isposinf": lambda x, y, p: x.isposinf(), "isreal": lambda x, y, p: x.isreal(),
    "positive": lambda x, y, p: x.positive(), "frac": lambda x, y, p: x.frac(), "nan_to_num": lambda x, y, p: x.nan_to_num(),
    "logit": lambda x, y, p: x.logit(0.1), "igamma": lambda x, y, p: p.igamma(p), "igammac": lambda x, y, p: p.igammac(p),
    "mvlgamma": lambda x, y, p: (p + 3).mvlgamma(2), "i0": lambda x, y, p: x.i0(), "arccosh": lambda x, y, p: (p + 1).arccosh(),
    "arcsinh": lambda x, y, p: x.arcsinh(), "arctanh": lambda x, y, p: (x / 4).arctanh(), "numel": lambda x, y, p: ms.Tensor(x.numel()),
}


@case(over=METHODS, rtol=1e-5, atol=1e-6)
def method(call):
    return {"output": call(ms.Tensor(X), ms.Tensor(Y), ms.Tensor(P)).asnumpy()}
