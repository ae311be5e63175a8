"""Which primitives MindSpore is asked about, with which strategies."""
from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from math import prod
from typing import Any


@dataclass
class Group:
    """One primitive with inputs of given shapes, and the strategies that it is asked about."""

    primitive: str
    inputs: list[tuple[tuple[int, ...], str]]
    constants: tuple[str, ...] = ()
    devices: int = 8
    most: int = 60
    extra: list[Any] = field(default_factory=list)
    call: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments by name that stand in `call`."""
    after: str = ""
    """What stands behind the call, such as [0]."""

    def strategies(self) -> list[list[Any]]:
        """Strategies as [in_strategy] or [in_strategy, out_strategy], as JSON writes them: coherent and random ones, and `extra`."""
        shapes = [shape for shape, _ in self.inputs]
        each = [list(_cuts(len(shape), self.devices)) for shape in shapes]
        every = prod(map(len, each))
        if not self.most:
            chosen = []
        elif every <= self.most:
            chosen = [list(map(list, combination)) for combination in itertools.product(*each)]
        else:
            source = random.Random(f"{self.primitive}{self.inputs}")
            chosen = _coherent(shapes, self.devices)[: self.most]
            while len(chosen) < self.most:
                choice = [list(source.choice(part)) for part in each]
                if choice not in chosen:
                    chosen.append(choice)
        return [[strategy] for strategy in chosen] + self.extra

    def facts(self) -> dict[str, Any]:
        """What the record says of the primitive."""
        return {
            "primitive": self.primitive, "inputs": self.inputs, "constants": self.constants, "arguments": self.arguments,
            "devices": self.devices,
        }


def _cuts(rank: int, devices: int) -> Any:
    """All ways to cut `rank` axes by powers of two among at most `devices`."""
    sizes = [2**power for power in range(devices.bit_length()) if 2**power <= devices]
    return (cuts for cuts in itertools.product(sizes, repeat=rank) if prod(cuts) <= devices)


def _coherent(shapes: list[tuple[int, ...]], devices: int) -> list[list[list[int]]]:
    """Strategies that cut axes of equal length, counted from the front or from behind, equally in all inputs; or one input alone."""
    longest = max(shapes, key=len)
    results: list[list[list[int]]] = []
    for cuts in _cuts(len(longest), devices):
        behind = [[cut if size > 1 else 1 for size, cut in zip(shape, cuts[len(longest) - len(shape):])] for shape in shapes]
        before = [[cut if size > 1 else 1 for size, cut in zip(shape, cuts)] for shape in shapes]
        alone = [list(cuts) if shape is longest else [1] * len(shape) for shape in shapes]
        results += [candidate for candidate in (behind, before, alone) if candidate not in results]
    return [candidate for index, candidate in enumerate(results) if candidate not in results[:index]]


F, I, B = "float32", "int32", "bool_"


def _op(primitive: str, *shapes: Any, constants: tuple[str, ...] = (), **more: Any) -> Group:
    return Group(
        primitive, [shape if len(shape) == 2 and isinstance(shape[0], tuple) else (shape, F) for shape in shapes], constants, **more
    )


def _layouts(devices: tuple[int, ...], *maps: tuple[Any, ...], out: Any = None) -> list[Any]:
    names = ("a", "b", "c", "d")[: len(devices)]
    results = [{"devices": devices, "names": names, "maps": maps}]
    return results if out is None else [*results, {"devices": devices, "names": names, "maps": [out]}]


N = "None"
_BINARY = (
    "Add Sub Mul Div RealDiv FloorDiv FloorMod Mod Pow Maximum Minimum SquaredDifference Atan2 DivNoNan TruncateDiv TruncateMod Xdivy "
    "Xlogy Equal NotEqual Greater GreaterEqual Less LessEqual ApproximateEqual MulNoNan Hypot Heaviside NextAfter Zeta Lcm Gcd BitwiseAnd "
    "LogicalAnd LogicalOr AssignAdd AssignSub Assign"
).split()
_UNARY = (
    "Abs Asin Asinh Atan Atanh BesselI0e Ceil Cos Cosh Elu Erf Erfc Exp Expm1 Floor GeLU HSigmoid HSwish Inv Log Log1p LogicalNot Mish "
    "Neg ReLU ReLU6 Rint Round Reciprocal Rsqrt SeLU Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square Tan Tanh ZerosLike IsFinite "
    "FastGeLU SoftShrink Erfinv L2Loss BesselJ0 Lgamma Digamma Trunc IsNan IsInf Identity LogSigmoid"
).split()
_LOGICAL = {"LogicalAnd", "LogicalOr", "LogicalNot"}
_INTEGER_PRIMITIVES = {"BitwiseAnd", "Lcm", "Gcd"}


def _kind(name: str) -> str:
    return B if name in _LOGICAL else I if name in _INTEGER_PRIMITIVES else F


GRID: dict[str, list[Group]] = {
    "matmul": [
        _op("P.MatMul()", (64, 32), (32, 16), most=100, extra=[
            [[[2, 4], [4, 1]], [[2, 1]]], [[[2, 4], [4, 1]], [[8, 1]]], [[[2, 4], [4, 1]], [[4, 2]]], [[[2, 2], [2, 2]], [[4, 2]]],
            [[[2, 2], [2, 2]], [[2, 2]]], [[[2, 2], [2, 1]], [[4, 1]]], [[[2, 2], [2, 1]], [[2, 1]]], [[[1, 4], [4, 2]], [[4, 2]]],
            [[[3, 1], [1, 1]]], [[[16, 1], [1, 1]]], [[[2, 4]]], [
                [[2, 4, 1], [4, 1]],
            ], [[[0, 1], [1, 1]]], [[[-1, 1], [1, 1]]], [[[2, 8], [8, 1]]],
            _layouts((2, 2, 2), ("a", "b"), ("b", "c")), _layouts(
                (2, 2, 2), (("a", "b"), "c"), ("c", N),
            ), _layouts((2, 2, 2), ("c", "b"), ("b", "a")),
            _layouts((2, 2, 2), (("c", "a"), N), (N, "b")), _layouts((2, 4), ("a", "b"), ("b", N)), _layouts((2, 4), ("a", "b"), (N, N)),
            _layouts((2, 4), ("b", N), (N, "a")), _layouts((8,), ("a", N), (N, N)), _layouts((2, 2), ("a", "b"), ("b", N)),
            _layouts((2, 4), ("a", "b"), ("b", N), out=(("a", "b"), N)), _layouts((2, 2, 2), ("a", "b"), ("b", "c"), out=(("a", "b"), "c")),
            _layouts((2, 2, 2), ("a", "b"), ("b", "c"), out=("a", "c")), _layouts((2, 2, 2), ("a", "b"), ("b", "c"), out=("a", ("c", "b"))),
            _layouts((2, 2, 2), ("a", "b"), ("c", N)), _layouts(
                (2, 2, 2), ("a", ("b", "c")), (("b", "c"), N),
            ), _layouts((2, 2, 2), ("a", ("b", "c")), (("c", "b"), N)),
            _layouts((2, 2, 2), ("a", "b"), ("b", "a")),
        ]),
        _op("P.MatMul(transpose_b=True)", (64, 32), (16, 32), most=40),
        _op("P.MatMul(transpose_a=True)", (32, 64), (32, 16), most=40),
        _op("P.BatchMatMul()", (8, 16, 32), (8, 32, 64), most=50),
        _op("P.BatchMatMul(transpose_b=True)", (8, 16, 32, 8), (8, 16, 8, 8), most=40),
        _op("P.BatchMatMul()", (16, 1, 16, 32), (8, 32, 64), most=40),
        _op(
            "P.MatMul()", (6, 24), (24, 12), devices=8, most=1,
            extra=[[[[4, 2], [2, 1]]], [[[2, 2], [2, 1]]], [[[3, 2], [2, 1]]], [[[1, 8], [8, 1]]]],
        ),
    ],
    "gather": [
        _op("P.Gather()", (64, 32), ((16, 8), I), constants=("0",), most=70),
        _op("P.Gather()", (64, 32), ((16, 8), I), constants=("1",), most=40),
        _op("P.Gather()", (64, 32, 16), ((16,), I), constants=("1",), most=40),
        _op("P.Gather()", (64, 32), ((16,), I), constants=("0",), most=30),
        _op("P.Gather()", (64,), ((16, 8), I), constants=("0",), most=30),
        _op("P.GatherD()", (16, 32), ((16, 32), I), most=20, call="self.input0, 1, self.input1", arguments={"dim": 1}),
        _op("P.GatherNd()", (16, 32), ((8, 16, 1), I), most=30),
    ],
    "reduce": [
        *[_op(f"P.Reduce{kind}()", (16, 32, 64), constants=("1",), most=20) for kind in ("Sum", "Mean", "Max", "Min", "Prod")],
        _op("P.ReduceSum(keep_dims=True)", (16, 32, 64), constants=("(0, -1)",), most=20),
        _op("P.ReduceSum()", (16, 32), constants=("()",), most=20),
        _op("P.ReduceMean()", (16, 32), constants=("-1",), most=20),
        *[_op(f"P.{name}()", ((16, 32), B), constants=("1",), most=20) for name in ("ReduceAny", "ReduceAll")],
        _op("P.ArgMaxWithValue(axis=1)", (16, 32, 64), most=20, after="[1]"),
        _op("P.ArgMinWithValue(axis=1, keep_dims=True)", (16, 32, 64), most=20, after="[1]"),
        _op("P.Argmax(axis=1)", (16, 32), most=20),
    ],
    "softmax": [
        _op("P.Softmax()", (16, 32, 64), most=20),
        _op("P.Softmax(axis=1)", (16, 32, 64), most=20),
        _op("P.Softmax(axis=(0, 1))", (16, 32, 64), most=20),
        _op("P.LogSoftmax(axis=1)", (16, 32, 64), most=20),
        _op("P.SoftmaxCrossEntropyWithLogits()", (64, 32), (64, 32), most=60),
        _op("P.SparseSoftmaxCrossEntropyWithLogits()", (64, 32), ((64,), I), most=40),
        _op("P.SigmoidCrossEntropyWithLogits()", (64, 32), (64, 32), most=40),
        _op("P.KLDivLoss(reduction='mean')", (64, 32), (64, 32), most=20),
        _op("P.BinaryCrossEntropy()", (64, 32), (64, 32), (64, 32), most=20),
    ],
    "norm": [
        _op("P.LayerNorm(begin_norm_axis=2, begin_params_axis=2)", (16, 32, 64), (64,), (64,), most=40),
        _op("P.LayerNorm(begin_norm_axis=1, begin_params_axis=1)", (16, 32, 64), (32, 64), (32, 64), most=30),
        _op("P.LayerNorm(begin_norm_axis=-1, begin_params_axis=-1)", (16, 32), (32,), (32,), most=30),
        _op("G.RmsNorm()", (16, 32, 64), (64,), most=40),
        _op("P.BatchNorm(is_training=True)", (16, 32, 8, 8), (32,), (32,), (32,), (32,), most=40),
        _op("P.L2Normalize(axis=1)", (16, 32, 8), most=20),
        _op("G.GroupNorm()", (16, 32, 8, 8), (32,), (32,), call="self.input0, 4, self.input1, self.input2, 1e-5", most=30),
    ],
    "conv": [
        _op("P.Conv2D(16, 3, pad_mode='same')", (16, 8, 32, 32), (16, 8, 3, 3), most=60),
        _op("P.Conv2D(16, 3, pad_mode='valid', stride=2)", (16, 8, 33, 33), (16, 8, 3, 3), most=40),
        _op("P.Conv2D(16, 2, pad_mode='valid', stride=2)", (16, 8, 32, 32), (16, 8, 2, 2), most=40),
        _op("P.Conv2D(16, 1, pad_mode='same', stride=2)", (16, 8, 32, 32), (16, 8, 1, 1), most=40),
        _op("P.Conv2D(16, 3, pad_mode='pad', pad=1, stride=2)", (16, 8, 32, 32), (16, 8, 3, 3), most=40),
        _op("P.Conv2D(16, 3, pad_mode='same', group=2)", (16, 8, 32, 32), (16, 4, 3, 3), most=30),
        _op(
            "P.Conv2DTranspose(8, 4, pad_mode='same', stride=2)", (16, 16, 16, 16), (16, 8, 4, 4), constants=("(16, 8, 32, 32)",), most=40,
        ),
        _op("P.MaxPool(kernel_size=2, strides=2, pad_mode='valid')", (16, 8, 32, 32), most=36),
        _op("P.MaxPool(kernel_size=3, strides=2, pad_mode='same')", (16, 8, 32, 32), most=36),
        _op("P.AvgPool(kernel_size=2, strides=2, pad_mode='valid')", (16, 8, 32, 32), most=36),
        _op("P.BiasAdd()", (16, 32), (32,), most=30),
        _op("P.BiasAdd()", (16, 8, 32, 32), (8,), most=30),
        _op("P.PReLU()", (16, 8, 32, 32), (8,), most=30),
    ],
    "shape": [
        _op("P.Reshape()", (16, 32), constants=("(512,)",), most=10),
        _op("P.Transpose()", (16, 32, 64), constants=("(2, 0, 1)",), most=20),
        _op("P.Concat(1)", (16, 32), (16, 64), call="(self.input0, self.input1)", most=40),
        _op("P.Stack(0)", (16, 32), (16, 32), call="(self.input0, self.input1)", most=40),
        _op("P.Split(1, 4)", (16, 32, 8), most=20),
        _op("P.Unstack(1)", (16, 2, 8), most=20),
        _op("P.StridedSlice()", (16, 32, 8), constants=("(0, 0, 0)", "(16, 16, 8)", "(1, 1, 1)"), most=20),
        _op("P.StridedSlice()", (16, 32, 8), constants=("(0, 0, 0)", "(16, 32, 8)", "(1, 2, 1)"), most=20),
        _op("P.StridedSlice(shrink_axis_mask=1)", (16, 32, 8), constants=("(3, 0, 0)", "(4, 32, 8)", "(1, 1, 1)"), most=20),
        _op("P.Slice()", (16, 32, 8), constants=("(0, 8, 0)", "(16, 8, 8)"), most=20),
        _op("P.Tile()", (16, 32, 8), constants=("(1, 2, 1)",), most=20),
        _op("P.Tile()", (16, 32), constants=("(2, 1, 8)",), most=20, extra=[[[[2, 1, 1]]], [[[2, 2, 2]]], [[[1, 2, 4]]], [[[1, 1, 8]]]]),
        _op("P.ExpandDims()", (16, 32), constants=("1",), most=20),
        _op("P.Squeeze(1)", (16, 1, 32), most=20),
        _op("P.Squeeze()", (16, 1, 32), most=20),
        _op("P.BroadcastTo((8, 16, 32))", (16, 32), most=20),
        _op("P.BroadcastTo((16, 32))", (16, 1), most=20),
        _op("P.Pad(((0, 0), (1, 1)))", (16, 32), most=10),
        _op("P.PadV3()", (16, 32), constants=("ms.Tensor([1, 1])", "ms.Tensor(0.0)"), most=10),
        _op("P.OneHot(axis=-1)", ((16,), I), constants=("32", "ms.Tensor(1.0)", "ms.Tensor(0.0)"), most=1,
             extra=[
                 [[[1, 1], [], []]], [[[8, 1], [], []]], [[[1, 8], [], []]], [[[2, 4], [], []]], [[[2, 2], [], []]], [[[16, 1], [], []]],
                 [[[2], [], []]],
             ]),
        _op("P.OneHot(axis=0)", ((16,), I), constants=("32", "ms.Tensor(1.0)", "ms.Tensor(0.0)"), most=1,
             extra=[[[[1, 1], [], []]], [[[8, 1], [], []]], [[[1, 8], [], []]], [[[2, 4], [], []]]]),
        _op("P.OneHot()", ((16, 8), I), constants=("32", "ms.Tensor(1.0)", "ms.Tensor(0.0)"), most=1,
             extra=[[[[1, 1, 1], [], []]], [[[8, 1, 1], [], []]], [[[2, 2, 2], [], []]], [[[1, 4, 2], [], []]]]),
        _op("P.CumSum()", (16, 32), constants=("1",), most=10),
        _op("P.CumProd()", (16, 32), constants=("1",), most=10),
        _op("P.TopK()", (16, 32), constants=("4",), most=10),
        _op("P.Sort(axis=1)", (16, 32), most=10),
        _op("P.Sort()", (16, 32), most=10),
        _op("P.Select()", ((16, 32), B), (16, 32), (16, 32), most=30),
        _op("P.Dropout(0.5)", (16, 32), most=10),
        _op("P.Cast()", (16, 32), constants=("ms.float16",), most=10),
        _op("P.ReverseV2([1])", (16, 32), most=10),
        _op("P.AddN()", (16, 32), (16, 32), call="(self.input0, self.input1)", most=20),
        _op("P.Flatten()", (16, 8, 4), most=20),
        _op(
            "P.MaskedFill()", (16, 32), ((16, 32), B), constants=("ms.Tensor(1.0)",), most=1,
            extra=[[[[2, 4], [2, 4], []]], [[[2, 2], [2, 1], []]], [[[8, 1], [8, 1], []]]],
        ),
        _op("P.UnsortedSegmentSum()", (16, 32), ((16,), I), constants=("8",), most=30),
        _op("P.UnsortedSegmentMin()", (16, 32), ((16,), I), constants=("8",), most=20),
        _op("P.ScatterUpdate()", (16, 32), ((8,), I), (8, 32), most=40),
        _op("P.ScatterAdd()", (16, 32), ((8,), I), (8, 32), most=20),
        _op("P.TensorScatterUpdate()", (16, 32), ((8, 1), I), (8, 32), most=30),
        _op("P.Lerp()", (16, 32), (16, 32), constants=("0.5",), most=20),
        _op("P.ResizeBilinear((16, 16))", (16, 8, 8, 8), most=20),
        _op("P.ResizeNearestNeighbor((16, 16))", (16, 8, 8, 8), most=20),
    ],
    "attention": [
        _op(
            "G.FlashAttentionScore(8, input_layout='BSH')", ((8, 16, 64), "float16"), ((8, 16, 64), "float16"), ((8, 16, 64), "float16"),
            most=40,
        ),
        _op("G.FlashAttentionScore(8, input_layout='BNSD')", *[((8, 8, 16, 16), "float16")] * 3, most=40),
        _op("G.Dense()", (16, 32), (64, 32), (64,), most=40),
        _op("G.MatMulExt()", (16, 32), (32, 64), most=20),
        _op("G.Swiglu()", (16, 64), constants=("-1",), most=10),
        _op("G.SiLU()", (16, 64), most=10),
    ],
    "elementwise": [
        _op("P.Add()", (16, 32), (16, 32), most=60, extra=[
            _layouts((2, 2, 2), ("a", "b"), ("a", "b")), _layouts(
                (2, 2, 2), (("a", "b"), "c"), (("a", "b"), "c"),
            ), _layouts((2, 2, 2), ("c", "a"), ("c", "a")),
            _layouts((2, 2, 2), ("a", "b"), ("b", "a")), _layouts((2, 4), (("b", "a"), N), (("b", "a"), N)),
        ]),
        _op("P.Mul()", (16, 32), (32,), most=40),
        _op("P.Sub()", (16, 1, 32), (8, 1), most=40),
        _op("P.Add()", (16, 32), constants=("1.0",), most=8),
        _op("P.Mul()", (16, 32), ((), F), most=8),
        *[_op(f"P.{name}()", ((16, 32), _kind(name)), ((16, 32), _kind(name)), most=4) for name in _BINARY],
    ],
    "activation": [_op(f"P.{name}()", ((16, 32), _kind(name)), most=3) for name in _UNARY],
    "windows": [
        Group(f"P.Conv2D(16, {kernel}, pad_mode='{mode}', stride={stride}{more})", [
            ((8, 8, size, size), F), ((16, 8, kernel, kernel), F),
        ], most=0, extra=[
            [[[1, 1, h, w], [o, 1, 1, 1]]] for h, w, o in (
                (2, 1, 1), (1, 2, 1), (4, 1, 1), (1, 8, 1), (2, 2, 2), (2, 4, 1), (1, 2, 4), (8, 1, 1), (1, 4, 2),
            )
        ]) for kernel, mode, stride, size, more in (
            (3, "valid", 1, 32, ""), (3, "same", 2, 32, ""), (5, "same", 1, 16, ""), (3, "same", 3, 24, ""), (
                3, "same", 1, 16, ", dilation=2",
            ),
            (5, "same", 2, 32, ""), (3, "pad", 1, 32, ", pad=1"), (
                3, "pad", 2, 32, ", pad=(0, 1, 0, 1)",
            ), (2, "same", 2, 24, ""), (7, "pad", 2, 32, ", pad=3"),
            (3, "same", 2, 24, ""), (1, "valid", 2, 24, ""), (2, "valid", 4, 32, ""),
        )
    ] + [
        _op("P.Conv2DTranspose(8, 4, pad_mode='same', stride=2)", (16, 16, 16, 16), (16, 8, 4, 4), constants=(
            "(16, 8, 32, 32)",
        ), most=0, extra=[
            [[[1, 2, 1, 1], [2, 1, 1, 1]]], [[[1, 2, 1, 1], [2, 2, 1, 1]]], [[[2, 1, 1, 1], [1, 2, 1, 1]]], [[[2, 2, 1, 1], [2, 2, 1, 1]]],
            [[[2, 1, 1, 2], [1, 2, 1, 1]]], [[[2, 1, 2, 2], [1, 1, 1, 1]]], [[[1, 2, 1, 2], [2, 1, 1, 1]]],
        ]),
        _op("P.MaxPool(kernel_size=2, strides=4, pad_mode='valid')", (16, 8, 32, 32), most=20),
        _op("P.MaxPool(kernel_size=2, strides=2, pad_mode='same')", (16, 8, 24, 24), most=36),
        _op("P.BatchMatMul(transpose_a=True)", (8, 32, 16), (8, 32, 64), most=30),
        _op("P.BatchMatMul()", (8, 16, 32), (8, 32, 64), most=0, extra=[
            [[[2, 2, 2], [2, 2, 1]], [[2, 4, 1]]], [[[2, 2, 2], [2, 2, 1]], [[2, 2, 1]]],
            _layouts((2, 2, 2), ("a", "b", N), ("a", N, "c")), _layouts((2, 2, 2), ("a", "b", "c"), ("a", "c", N)),
        ]),
    ],
    "lookups": [
        _op("P.Gather()", (64, 32), ((16, 8), I), constants=("0",), most=0, extra=[[[list(t), list(i)]] for t in (
            (2, 1), (4, 1), (2, 2), (8, 1), (2, 4),
        )
            for i in ((1, 2), (1, 4), (2, 1), (4, 1), (2, 2), (1, 1)) if t[0] * t[1] * i[0] * i[1] <= 8]),
        _op("P.Gather()", (64, 32), ((16,), I), constants=("0",), most=0, extra=[[[list(t), [i]]] for t in (
            (2, 1), (4, 1), (2, 2), (8, 1), (2, 4), (1, 2),
        )
            for i in (1, 2, 4) if t[0] * t[1] * i <= 8]),
        _op(
            "P.Gather()", (64, 32), ((6,), I), constants=("0",), most=0,
            extra=[[[[2, 1], [1]]], [[[4, 1], [1]]], [[[8, 1], [1]]], [[[2, 4], [1]]]],
        ),
        _op("P.Gather()", (64, 32, 16), ((16, 8), I), constants=("0",), most=0, extra=[[[list(t), list(i)]] for t in (
            (2, 1, 1), (8, 1, 1), (2, 2, 2), (4, 2, 1), (1, 2, 2),
        )
            for i in ((1, 1), (2, 1), (1, 2), (2, 2)) if t[0] * t[1] * t[2] * i[0] * i[1] <= 8]),
        _op("P.Gather()", (64, 32), ((16, 8), I), constants=("0",), most=0, extra=[
            _layouts((2, 4), (N, N), ("a", N)), _layouts((2, 4), ("b", N), ("a", N)), _layouts((8,), ("a", N), (N, N)), _layouts(
                (2, 2, 2), (N, "c"), ("a", "b"),
            ),
            _layouts((2, 4), (N, "b"), ("a", N)),
        ]),
        _op("P.Gather(1)", (16, 64, 32), ((16, 8), I), constants=("1",), most=40),
    ],
    "named": [
        *[_op(f"P.{name}", (16, 32), most=0, extra=[
            _layouts((2, 4), ("a", "b")), _layouts(
                (2, 2, 2), (("a", "b"), "c"),
            ), _layouts((2, 2, 2), (("b", "a"), N)), _layouts((2, 2, 2), ("c", "a")),
            _layouts((2, 4), ("a", N)),
        ]) for name in ("ReLU()", "Softmax()", "GeLU()", "Dropout(0.5)", "Square()", "LogSoftmax()")],
        _op("P.LayerNorm(begin_norm_axis=-1, begin_params_axis=-1)", (16, 32), (32,), (32,), after="[0]", most=0, extra=[
            _layouts((2, 4), ("a", N), (N,), (N,)), _layouts(
                (2, 4), (("a", "b"), N), (N,), (N,),
            ), _layouts((2, 4), ("a", "b"), ("b",), ("b",)),
        ]),
        *[_op(f"P.{name}()", (16, 32), constants=("1",), most=0, extra=[
            _layouts((2, 4), ("a", "b")), _layouts((2, 2, 2), (("a", "b"), "c")), _layouts((2, 4), ("b", N)),
        ]) for name in ("ReduceSum", "ReduceMean", "ReduceMax", "CumSum")],
        _op(
            "P.Transpose()", (16, 32), constants=("(1, 0)",), most=0,
            extra=[_layouts((2, 4), ("a", "b")), _layouts((2, 2, 2), (("a", "b"), "c"))],
        ),
        _op(
            "P.Concat(1)", (16, 32), (16, 64), call="(self.input0, self.input1)", most=0,
            extra=[_layouts((2, 4), ("a", N), ("a", N)), _layouts((2, 4), (("a", "b"), N), (("a", "b"), N))],
        ),
        _op("P.ReLU()", (16, 32), most=0, extra=[[[[2, 4]], [[2, 4]]], [[[2, 4]], [[4, 2]]], [[[2, 4]], [[1, 1]]]]),
        _op("P.Add()", (16, 32), (16, 32), most=0, extra=[[[[2, 4], [2, 4]], [[2, 4]]], [[[2, 4], [2, 4]], [[8, 1]]]]),
        _op("P.ReduceSum()", (16, 32), constants=("1",), most=0, extra=[[[[2, 4]], [[8]]], [[[2, 4]], [[2]]]]),
        _op("P.Cast()", (16, 32), constants=("ms.float16",), most=0, extra=[[[[2, 4]]], [[[2, 4], []]]]),
        _op("P.Lerp()", (16, 32), (16, 32), constants=("ms.Tensor(0.5)",), most=0, extra=[[[[2, 4], [2, 4], []]], [[[2, 4], [2, 1], []]]]),
    ],
}
