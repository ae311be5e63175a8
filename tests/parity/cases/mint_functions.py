"""Functions of mindspore.mint: values, dtypes, gradients, both modes. What MindSpore's CPU lacks is in tests/unit/front/test_mint.py."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import mint
from parity.case import case, raised

X = np.array([[-2.5, -1.0, -0.5, 0.0], [0.25, 0.5, 1.0, 3.0]], np.float32)
Y = np.array([[2.0, -3.0, 0.5, 1.0], [-0.25, 4.0, 1.0, 2.0]], np.float32)
P = np.abs(X) + np.float32(0.25)
INSIDE = X / np.float32(4)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
BOOLS = np.array([[True, False, True], [False, False, True]])
OTHERS = np.array([[True, True, False], [False, True, True]])
NUMBERS = np.array([[12, 7, -3], [-5, 0, 9]], np.int32)
MORE = np.array([[10, 3, 2], [6, -1, 4]], np.int32)
L = np.array([3, 1, 2, 1], np.int64)
A = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 4.0]], np.float32)
B = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0], [2.0, 0.5, 1.0]], np.float32)
V = np.array([1.0, -2.0, 0.5], np.float32)
W = np.array([0.5, 3.0, -1.0], np.float32)
BATCH = np.stack([A, B])
INDEX = np.array([[1, 0, 1, 0]], np.int64)
PICK = np.array([1, 0], np.int64)
EMPTY = np.zeros((0, 3), np.float32)


def table():
    """(label, name, arguments, options) of every call."""
    calls = []

    def add(names, *arguments, label="", **options):
        for name in names.split():
            calls.append((f"{name}{'-' + label if label else ''}", name, arguments, options))

    add("abs ceil cos cosh erf erfc exp exp2 expm1 fix floor frac neg negative round sigmoid sign sin sinc sinh square tan tanh trunc", X)
    add("atan arctan asinh arcsinh clone real imag t ravel isneginf isfinite isinf isnan nonzero", X)
    add("log log10 log1p log2 sqrt rsqrt reciprocal", P)
    add("asin arcsin acos arccos atanh arctanh erfinv", INSIDE)
    add("acosh arccosh", P + np.float32(1))
    add("isfinite isinf isnan isneginf nan_to_num", SPECIAL, label="special")
    add("nan_to_num", SPECIAL, 1.0, 2.0, -2.0, label="values")
    add("exp sin sqrt abs neg sign square floor ceil trunc", np.abs(NUMBERS), label="int")
    add("abs neg sin exp floor", EMPTY, label="empty")
    add("add sub mul div divide maximum minimum eq ne not_equal ge greater_equal gt greater le less_equal lt less", X, Y)
    add("add sub mul div maximum minimum eq gt lt floor_divide remainder fmod", NUMBERS, np.where(MORE == 0, 1, MORE), label="int")
    add("add sub mul div", X, 2, label="number")
    add("add sub mul div gt", NUMBERS, 1.5, label="float")
    add("add sub", X, Y, label="alpha", alpha=2)
    add("add sub", NUMBERS, MORE, label="alphaint", alpha=3)
    add("add mul maximum", X, Y[:1], label="stretched")
    add("div divide", X, Y, label="floor", rounding_mode="floor")
    add("div divide", X, Y, label="trunc", rounding_mode="trunc")
    add("floor_divide remainder fmod atan2 arctan2 logaddexp logaddexp2 xlogy isclose allclose", X, Y)
    add("remainder fmod floor_divide", X, 2, label="number")
    add("pow float_power", P, Y)
    add("pow float_power", X, 2, label="number")
    add("logical_and logical_or logical_xor", BOOLS, OTHERS)
    add("logical_not bitwise_not", BOOLS)
    add("bitwise_and bitwise_or bitwise_xor gcd", NUMBERS, MORE)
    add("equal allclose", X, X, label="same")
    add("equal", X, Y)
    add("bitwise_not", NUMBERS, label="int")
    add("lerp", X, Y, 0.25)
    add("lerp", X, Y, INSIDE, label="tensor")
    add("addcdiv addcmul", X, Y, P)
    add("addcdiv addcmul", X, Y, P, label="value", value=2.0)
    add("clamp clip", X, -1.0, 1.0)
    add("clamp clip", X, label="low", min=0.0)
    add("clamp", X, Y - np.float32(1), Y + np.float32(1), label="tensors")
    add("where", X > 0, X, Y)
    add("where", X > 0, X, 0.0, label="number")
    add("where", X > 0, label="places")
    add("masked_select", X, X > 0)
    add("softmax", X, 1)
    add("softmax", X, 0, label="first")
    add("round", X, label="decimals", decimals=1)
    add("sum mean prod all any amax amin max min median argmax argmin std var std_mean var_mean count_nonzero nansum norm", X)
    add("sum mean prod all any amax amin max min median argmax argmin", X, label="dim", dim=1)
    add("std var std_mean var_mean count_nonzero nansum", X, label="dim", dim=1)
    add("sum mean prod amax amin max min median argmax argmin std var logsumexp", X, label="keepdim", dim=0, keepdim=True)
    add("sum mean amax amin all any", X, label="axes", dim=(0, 1))
    add("sum prod mean cumsum cumprod", NUMBERS, label="int", dim=1)
    add("sum prod mean", X, label="dtype", dtype=ms.float64)
    add("max min", X, Y, label="pair")
    add("max min", X, 1, label="place")
    add("nansum", SPECIAL[[0, 3]], label="nan")
    add("cumsum cumprod cummax cummin", X, 1)
    add("cumsum cumprod cummax cummin", X, 0, label="first")
    add("cumprod", P, 1, label="positive")
    add("logsumexp", X, 1)
    add("sort argsort unique_consecutive unique", X)
    add("sort", X, label="down", dim=0, descending=True)
    add("argsort", X, label="down", dim=0, descending=True)
    add("unique", L, label="inverse", return_inverse=True)
    add("unique_consecutive", L, label="inverse", return_inverse=True, return_counts=True)
    add("topk", X, 2)
    add("topk", X, 1, label="small", dim=0, largest=False)
    add("kthvalue", X, 2)
    add("histc", X, label="bins", bins=4, min=-2, max=2)
    add("bincount", L)
    add("searchsorted", np.array([1.0, 2.0, 3.0], np.float32), V)
    add("trace inverse", A)
    add("nonzero", X, label="tuple", as_tuple=True)
    add("norm", X, label="order", p=1, dim=1)
    add("reshape", X, (4, 2))
    add("reshape", X, (-1,), label="flat")
    add("flatten", BATCH)
    add("flatten", BATCH, label="from", start_dim=1)
    add("squeeze", X[None], 0)
    add("squeeze", X[None], 1, label="longer")
    add("unsqueeze", X, 1)
    add("unsqueeze", X, -1, label="last")
    add("transpose swapaxes", BATCH, 0, 2)
    add("transpose", BATCH, -1, 1, label="negative")
    add("permute", BATCH, (2, 0, 1))
    add("t", V, label="vector")
    add("narrow", X, 1, 1, 2)
    add("select", X, 1, 2)
    add("select", X, 0, -1, label="last")
    add("cat concat", (X, Y))
    add("cat concat", (X, Y), label="last", dim=1)
    add("cat", (NUMBERS, V[None]), label="mixed")
    add("stack hstack dstack", (X, Y))
    add("stack", [X, Y], label="last", dim=-1)
    add("chunk", X, 3, label="last", dim=1)
    add("chunk split", X, 1)
    add("split", X, [1, 3], label="sizes", dim=1)
    add("split", X, 3, label="uneven", dim=1)
    add("unbind", X)
    add("unbind", X, 1, label="last")
    add("tile", X, (2, 1))
    add("tile", X, (2, 1, 2), label="more")
    add("broadcast_to", V, (2, 3))
    add("repeat_interleave", X, 2)
    add("repeat_interleave", X, 2, label="dim", dim=1)
    add("roll", X, 1, label="dim", dims=1)
    add("roll", X, 1)
    add("flip", X, (0, 1))
    add("meshgrid", V, W)
    add("meshgrid", V, W, label="xy", indexing="xy")
    add("tril triu", A)
    add("tril triu", A, label="above", diagonal=1)
    add("tril triu", A, label="below", diagonal=-1)
    add("diag", V)
    add("diff", X)
    add("diff", X, label="twice", n=2, dim=1)
    add("gather", X, 0, INDEX)
    add("index_select", X, 1, PICK)
    add("index_add", X, 0, PICK.astype(np.int32), Y)
    add("scatter", X, 0, INDEX, Y[:1])
    add("scatter", X, 0, INDEX, 9.0, label="number")
    add("scatter_add", X, 0, INDEX, Y[:1])
    add("take", X, PICK)
    add("matmul mm cross", A, B)
    add("matmul", BATCH, A, label="batch")
    add("matmul", A, V, label="vector")
    add("bmm", BATCH, BATCH)
    add("mv", A, V)
    add("dot outer vdot", V, W)
    add("addmm", A, A, B)
    add("addmm", A, A, B, label="scaled", beta=2, alpha=0.5)
    add("addmv", V, A, W)
    add("baddbmm", BATCH, BATCH, BATCH)
    add("baddbmm", BATCH, BATCH, BATCH, label="scaled", beta=2, alpha=0.5)
    add("addbmm", A, BATCH, BATCH)
    add("cdist", A, B)
    add("cdist", A, B, label="one", p=1.0)
    add("einsum", "ij,kj->ik", A, B)
    add("triangular_solve", A, np.triu(A))
    add("polar", P, X)
    add("conv2d", BATCH[None], BATCH[:, None][:, [0, 0]])
    add("zeros ones", (2, 3))
    add("zeros ones", (2,), label="dtype", dtype=ms.int32)
    add("zeros_like ones_like", X)
    add("zeros_like ones_like", NUMBERS, label="dtype", dtype=ms.float32)
    add("full", (2,), 3)
    add("full", (2,), 1.5, label="float")
    add("full_like", X, 2)
    add("eye", 3)
    add("eye", 2, 3, ms.int32, label="wide")
    add("arange", 1, 7, 2)
    add("arange", 5.0, label="float")
    add("linspace", 0.0, 1.0, 5)
    add("item", np.array([2.5], np.float32))
    return calls


CALLS = {label: (name, arguments, options) for label, name, arguments, options in table()}
ELSEWHERE = frozenset(
    (
        "exp2 frac atan arctan asinh arcsinh clone isneginf log10 log2 asin arcsin acos arccos acosh arccosh isneginf-special exp-int "
        "sin-int floor-int ceil-int atan2 arctan2 logaddexp logaddexp2 floor_divide-number bitwise_not bitwise_or bitwise_xor equal-same "
        "equal bitwise_not-int addcdiv addcmul addcdiv-value addcmul-value where-places round-decimals median argmax argmin std var "
        "std_mean var_mean count_nonzero norm median-dim argmax-dim argmin-dim std-dim var-dim std_mean-dim var_mean-dim "
        "count_nonzero-dim nansum-dim median-keepdim argmax-keepdim argmin-keepdim std-keepdim var-keepdim logsumexp-keepdim any-axes "
        "cumsum-int cumsum cummin cumsum-first cummin-first logsumexp sort argsort unique sort-down argsort-down unique-inverse topk "
        "topk-small kthvalue histc-bins bincount trace inverse nonzero-tuple norm-order cat-mixed stack stack-last repeat_interleave "
        "repeat_interleave-dim roll-dim roll tril tril-above tril-below diag index_select scatter_add take mm mv dot outer vdot addmm "
        "addmm-scaled addmv baddbmm baddbmm-scaled addbmm einsum triangular_solve conv2d zeros_like ones_like zeros_like-dtype "
        "ones_like-dtype full full-float full_like arange arange-float linspace"
    ).split(),
)
"""What MindSpore 2.10 has on Ascend only."""
WITHOUT_GRADIENT = frozenset(
    (
        "isfinite isinf isnan isfinite-special isinf-special isnan-special eq ne not_equal ge greater_equal gt greater le less_equal lt "
        "less isclose allclose allclose-same all any all-dim any-dim all-axes cummax cummax-first unique_consecutive select select-last "
        "unbind unbind-last polar item "
        "real cumprod cumprod-first"
    ).split(),
)
"""What has no gradient on MindSpore's CPU, or one that divides 0 by 0 (cumprod) or is complex for a real input (real)."""
HERE = {label: call for label, call in CALLS.items() if label not in ELSEWHERE}


def differentiable(call):
    arguments = call[1]
    return bool(arguments) and isinstance(arguments[0], np.ndarray) and arguments[0].dtype == np.float32 and arguments[0].size > 0


def tensors(value):
    if isinstance(value, np.ndarray):
        return ms.Tensor(value)
    if isinstance(value, (tuple, list)) and value and isinstance(value[0], np.ndarray):
        return type(value)(ms.Tensor(each) for each in value)
    return value


def plain(out):
    """The arrays of an answer, and what else it is."""
    if isinstance(out, (tuple, list)):
        return {f"output{index}": each.asnumpy() for index, each in enumerate(out)}
    return {"output": out.asnumpy() if isinstance(out, ms.Tensor) else out}


@case(over=HERE, rtol=1e-5, atol=1e-6, graph=True)
def forward(call):
    name, arguments, options = call
    return plain(getattr(mint, name)(*map(tensors, arguments), **options))


@case(over={label: call for label, call in HERE.items() if differentiable(call) and label not in WITHOUT_GRADIENT}, rtol=1e-5, atol=1e-5)
def gradient(call):
    name, arguments, options = call
    rest = [tensors(each) for each in arguments[1:]]

    def total(x):
        out = getattr(mint, name)(x, *rest, **options)
        out = out[0] if isinstance(out, (tuple, list)) else out
        return (out * out).sum()

    return {"gradient": ms.grad(total)(ms.Tensor(arguments[0])).asnumpy()}


REFUSED = {
    "cat_shapes": lambda: mint.cat((ms.Tensor(X), ms.Tensor(A))).asnumpy(),
    "reshape_sizes": lambda: mint.reshape(ms.Tensor(X), (3, 3)).asnumpy(),
    "sum_axis": lambda: mint.sum(ms.Tensor(X), 5).asnumpy(),
    "squeeze_nothing": lambda: mint.squeeze(ms.Tensor(X)),
    "softmax_without_axis": lambda: mint.softmax(ms.Tensor(X)),
    "unknown_option": lambda: mint.abs(ms.Tensor(X), axis=1),
    "permute_short": lambda: mint.permute(ms.Tensor(BATCH), (0, 1)).asnumpy(),
    "add_text": lambda: mint.add(ms.Tensor(X), "x"),
    "eye_text": lambda: mint.eye("x"),
}


@case(over=REFUSED)
def refused(call):
    return {"raised": raised(call)}
