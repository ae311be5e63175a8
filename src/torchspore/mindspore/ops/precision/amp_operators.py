"""The dtype in which each operator computes at levels O1 and auto of mixed precision, by the names of the functions in this package."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torchspore.engine.execution.precision import (
    ByOperator,
    Otherwise,
    Rule,
    adding_product_in,
    computing_in,
    computing_in_but_for_bias,
    computing_in_widest,
)
from torchspore.engine.tensors import dtypes
from torchspore.mindspore.ops.declaration.declare import OPERATORS

PRODUCTS_WITH_BIAS = {
    "dense_layer": (2, -1), "conv1d": (2, 1), "conv2d": (2, 1), "conv3d": (2, 1), "_conv_transposed": (2, 1), "conv_transpose2d": (2, 1),
}
"""The argument index of the bias, and the axis of the result along which it is added."""

LOWER = (
    "bmm cov dense dot einsum inner linear matmul mm mv prelu _batch_matmul _conv2d _conv3d _conv2d_transpose "
    "_conv3d_transpose _dense _dot_method _einsum _matmul"
).split()
"""Functions that compute in the lower dtype, whatever the dtypes of their inputs."""

FULL = (
    "acos addbmm arccos arcsin asin bidense binary_cross_entropy_with_logits cdist cosh cosine_similarity cross_entropy cumprod cumsum "
    "erfinv exp exp2 expm1 gaussian_nll_loss group_norm gumbel_softmax kl_div layer_norm batch_norm ldexp log "
    "log10 log1p log2 log_softmax logdet logsigmoid logsumexp lp_pool1d lp_pool2d multilabel_soft_margin_loss nll_loss "
    "pdist pow prod reciprocal renorm rsqrt sinh smooth_l1_loss softmax softmin softplus std std_mean sum tan tensor_expm1 "
    "trapz vander var var_mean "
    "vecdot multi_margin_loss soft_margin_loss triplet_margin_loss multilabel_margin_loss _bce_with_logits _cdist _cumprod "
    "_cumsum _reduce_prod _kl_div _layer_norm _log_softmax_ext _multi_margin_loss _multilabel_margin_loss _nll_loss _pdist _renorm "
    "_smooth_l1 _soft_margin_loss _softmax_primitive _softplus _triplet_margin_loss _batch_norm _sum_to_size l1_loss_ext "
    "mse_loss_ext"
).split()
"""Functions that compute in float32."""

WIDEST = (
    "addcdiv addcmul addn bias_add cat concat cross grid_sample _bias_add _concat _cross_primitive _grid_sampler _grid_sampler_3d"
).split()
"""Functions whose inputs are cast to the widest dtype among them."""

PROMOTED = frozenset({
    "Addcdiv", "Addcmul", "Cross", "_PyboostCrossPrim", "Dot", "GridSampler2D", "GridSampler3D", "BiasAdd", "AddN", "Concat",
})
"""MindSpore's names of the primitives that compute in the widest input dtype."""
_ALSO = {
    "BatchMatMul": ("bmm",), "Conv2D": ("conv2d", "conv1d"), "Conv3D": ("conv3d",), "Conv2DTranspose": ("_conv_transposed",),
    "Ger": ("outer", "ger"), "MatMul": ("dense_layer",), "Softmax": ("softmax",), "Concat": ("concat", "cat"),
}
"""Further functions and layers that MindSpore builds from a primitive of the white list, in addition to the one of the same name."""


def automatic(dtype: Any) -> ByOperator:
    """Return the rules of level auto."""
    low = dtypes.to_torch(dtype)
    full_dtype = dtypes.to_torch(dtypes.float32)
    lower, full = computing_in(low), computing_in(full_dtype)
    rules: dict[str, Rule] = {**dict.fromkeys(LOWER, lower), **dict.fromkeys(FULL, full), **dict.fromkeys(WIDEST, computing_in_widest)}
    rules.update(dict.fromkeys(("float_power", "float_power_ext"), computing_in(full_dtype, full_dtype)))
    rules.update(dict.fromkeys(("addmm", "addmv", "baddbmm"), adding_product_in(low)))
    rules.update({name: computing_in_but_for_bias(low, *bias_position) for name, bias_position in PRODUCTS_WITH_BIAS.items()})
    return ByOperator(rules)


def by_primitives(primitives: Iterable[type], dtype: Any) -> ByOperator:
    """Return rules that make the operators of these primitives compute in `dtype` and return float32."""
    low, back = dtypes.to_torch(dtype), dtypes.to_torch(dtypes.float32)
    return ByOperator({
        name: computing_in_but_for_bias(low, *PRODUCTS_WITH_BIAS[name], back) if name in PRODUCTS_WITH_BIAS else computing_in(low, back)
        for primitive in primitives for name in _functions_of(primitive.__name__)
    })


def primitive_names() -> list[str]:
    """Return the names of all primitives."""
    return [operator.primitive.__name__ for operator in OPERATORS.values() if operator.primitive is not None]


def by_names(named: Mapping[str, Any], otherwise: Any = None) -> ByOperator:
    """Return rules for primitives by name.

    Each value is a pair (dtype, indexes of the inputs to cast) or 'widest'. All other operators compute in the dtype `otherwise`, if set.
    """
    rules: dict[str, Rule] = {}
    for name, precision in named.items():
        for function in _functions_of(name):
            if precision == "widest":
                rules[function] = computing_in_widest
            elif function in PRODUCTS_WITH_BIAS:
                rules[function] = computing_in_but_for_bias(dtypes.to_torch(precision[0]), *PRODUCTS_WITH_BIAS[function])
            else:
                rules[function] = computing_in(dtypes.to_torch(precision[0]), None, precision[1])
    return ByOperator(rules if otherwise is None else Otherwise(rules, computing_in(dtypes.to_torch(otherwise))), only_in_graphs=True)


def _functions_of(primitive: str) -> set[str]:
    """Return the names of the functions that implement a primitive."""
    names = {
        operator.name for operator in OPERATORS.values() if operator.primitive is not None and operator.primitive.__name__ == primitive
    }
    return names | set(_ALSO.get(primitive, ()))
