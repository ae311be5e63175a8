"""Names in the flags of graph kernels: MindSpore's operators with their ATen operators, passes, and arithmetic rules. No torch."""
from __future__ import annotations

OPERATORS: dict[str, tuple[str, ...]] = {
    "Abs": ("abs",), "Add": ("add",), "AddN": ("add",), "Addcdiv": ("addcdiv",), "Addcmul": ("addcmul",), "BiasAdd": ("add",),
    "Assign": ("clone",), "BatchNorm": ("native_batch_norm",), "BatchNormGrad": ("native_batch_norm_backward",),
    "BitwiseAnd": ("bitwise_and",), "BitwiseNot": ("bitwise_not",), "BitwiseOr": ("bitwise_or",),
    "BroadcastTo": ("expand",), "Cast": ("_to_copy",), "Ceil": ("ceil",), "ClampMax": ("clamp_max",), "ClampMin": ("clamp_min",),
    "ClipByValue": ("clamp",), "Concat": ("cat",), "Cos": ("cos",), "Div": ("div",), "Elu": ("elu",), "EluGrad": ("elu_backward",),
    "Equal": ("eq",), "Erf": ("erf",), "Exp": ("exp",), "ExpandDims": ("unsqueeze",), "Expm1": ("expm1",), "Fills": ("fill",),
    "Floor": ("floor",), "FloorMod": ("remainder",), "Mod": ("fmod",), "GeLU": ("gelu",), "GeLUGrad": ("gelu_backward",),
    "Greater": ("gt",), "GreaterEqual": ("ge",), "GroupNorm": ("native_group_norm",), "GroupNormGrad": ("native_group_norm_backward",),
    "HSigmoid": ("hardsigmoid",), "HSwish": ("hardswish",), "HSwishGrad": ("hardswish_backward",), "IsInf": ("isinf",),
    "IsNan": ("isnan",), "LayerNorm": ("native_layer_norm",), "LayerNormGrad": ("native_layer_norm_backward",),
    "LeakyReLU": ("leaky_relu",), "LeakyReLUGrad": ("leaky_relu_backward",), "Lerp": ("lerp",), "Less": ("lt",), "LessEqual": ("le",),
    "Log": ("log",), "Log1p": ("log1p",), "LogSoftmax": ("_log_softmax",), "LogSoftmaxGrad": ("_log_softmax_backward_data",),
    "LogicalAnd": ("logical_and",), "LogicalNot": ("logical_not",), "LogicalOr": ("logical_or",), "MaskedFill": ("masked_fill",),
    "Maximum": ("maximum",), "Minimum": ("minimum",), "Mish": ("mish",), "Mul": ("mul",), "Neg": ("neg",), "NotEqual": ("ne",),
    "OnesLike": ("ones_like", "ones"), "Pad": ("constant_pad_nd",), "PadV3": ("constant_pad_nd",), "Pow": ("pow",),
    "RealDiv": ("div",), "Reciprocal": ("reciprocal",), "ReduceMax": ("amax",), "ReduceMean": ("mean",), "ReduceMin": ("amin",),
    "ReduceSum": ("sum",), "ReduceStd": ("var", "var_mean"), "ReLU": ("relu",), "ReLU6": ("hardtanh",),
    "ReLU6Grad": ("hardtanh_backward",), "ReluGrad": ("threshold_backward",), "Reshape": ("view", "_unsafe_view", "reshape"),
    "Round": ("round",), "Rsqrt": ("rsqrt",), "Select": ("where",), "SiLU": ("silu",), "SiLUGrad": ("silu_backward",),
    "Sigmoid": ("sigmoid",), "SigmoidGrad": ("sigmoid_backward",), "Sign": ("sign",), "Sin": ("sin",), "Softmax": ("_softmax",),
    "SoftmaxGrad": ("_softmax_backward_data",), "Softplus": ("softplus",), "SoftplusGrad": ("softplus_backward",), "Sqrt": ("sqrt",),
    "Square": ("square", "pow"), "Squeeze": ("squeeze",), "Stack": ("stack",), "StridedSlice": ("slice",), "Sub": ("sub",),
    "Tanh": ("tanh",), "TanhGrad": ("tanh_backward",), "Transpose": ("permute", "transpose", "t"), "Trunc": ("trunc",),
    "ZerosLike": ("zeros_like", "zeros"),
}
"""MindSpore's names of the operators that a generated kernel can compute, and their names in a captured graph."""

PASSES = {
    "arithmetic_simplify": "rules such as x * 1 = x",
    "graph_kernel_cse": "equal values are computed once",
    "graph_kernel_cluster": "neighbouring operators become one kernel",
    "graph_kernel_recompute": "cheap values are recomputed where they are read",
    "parallel_fusion": "independent small kernels of the same shape become one",
    "horizontal_fusion": "independent kernels that read the same value become one",
    "stitch_fusion": "a reduction and its consumers become one kernel",
}
"""The passes that `enable_pass` and `disable_pass` accept, with descriptions."""

EXPRESSIONS = {
    "add_zero": "x + 0 and x - 0 are x (a zero may lose its sign)",
    "mul_one": "x * 1 and x / 1 are x",
    "mul_minus_one": "x * -1 is -x",
    "neg_neg": "-(-x) is x",
    "add_neg": "x + (-y) is x - y, x - (-y) is x + y",
    "pow_one": "x ** 1 is x",
    "pow_two": "x ** 2 is x * x",
    "div_power_of_two": "x / 4 is x * 0.25",
    "mul_powers_of_two": "x * 2 * 4 is x * 8",
    "relu_relu": "relu(relu(x)) is relu(x)",
    "abs_abs": "abs(abs(x)) and abs(-x) are abs(x)",
    "where_same": "where(c, x, x) is x",
    "cast_same": "a cast to the current dtype is removed",
    "view_same": "a view or broadcast to the current shape is removed",
    "view_view": "of two successive reshapes the last one is sufficient",
}
"""The rules that `enable_simplify_exprs_only` and `disable_simplify_exprs` accept, with descriptions."""


def operator_name(opname: str) -> str:
    """Return MindSpore's name of an ATen operator, or the ATen name capitalised if there is none."""
    return _NAMES.get(opname) or "".join(word.capitalize() for word in opname.strip("_").split("_"))


_FIRST = {"add": "Add", "div": "RealDiv", "pow": "Pow", "constant_pad_nd": "PadV3", "clone": "Assign", "var": "ReduceStd"}
_NAMES = {opname: name for name, opnames in reversed(OPERATORS.items()) for opname in opnames} | _FIRST | {
    "mm": "MatMul", "addmm": "MatMul", "linear": "Dense", "matmul": "BatchMatMul", "bmm": "BatchMatMul", "convolution": "Conv2D",
    "embedding": "Gather",
}
