"""`precision_mode` in PyNative: rules that make single operators compute in another dtype.

The policies are those of graphs (graph/passes/precision/policy.py), by the names of the front end's operators. An operator casts
its inputs and casts its result back, so that a program sees the dtypes that it requested.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from torchspore.engine.execution.precision import Rule, computing_from
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import dtypes
from torchspore.mindspore.ops.declaration.declare import OPERATORS
from torchspore.mindspore.ops.precision.amp_operators import LOWER, PRODUCTS_WITH_BIAS

_PRODUCTS = frozenset({*LOWER, *PRODUCTS_WITH_BIAS, "addmm", "addmv", "addbmm", "baddbmm", "outer"} - {"prelu", "cov"})
"""Products and convolutions."""
_MIXED = _PRODUCTS | {"relu", "prelu"}
"""Operators that the mixed policies compute in 16 bits. Others have float32 inputs here and compute in float32."""
_PURE_MODULES = (
    "arrays.pads", "elementwise.activation", "elementwise.arithmetic", "elementwise.binary", "elementwise.special", "elementwise.unary",
    "images.conv", "images.conv_primitives", "images.pooling", "images.resize", "layers.normalization", "linear_algebra.matrices",
    "linear_algebra.matrix_products", "linear_algebra.products", "losses.loss", "losses.more_losses", "reductions.cumulative",
    "reductions.extremes", "reductions.histograms", "reductions.norms", "reductions.reduction", "reductions.statistics",
)
"""Modules of operators whose results depend only on their inputs: no state, no random numbers, no writes."""
_STATEFUL = frozenset({"batch_norm", "_batch_norm", "_instance_norm", "_instance_norm_layer"})


def _every_operator() -> frozenset[str]:
    modules = {f"torchspore.mindspore.ops.{name}" for name in _PURE_MODULES}
    return frozenset(name for name, operator in OPERATORS.items() if operator.body.__module__ in modules) - _STATEFUL


@functools.cache
def rules(mode: str) -> Mapping[str, Rule] | None:
    """Return the rules of a `precision_mode` by the names of operators, or None if it changes no dtype."""
    half, brain, single = (dtypes.to_torch(dtype) for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32))
    policies: dict[str, tuple[Callable[[], frozenset[str]], Any, tuple[Any, ...]]] = {
        "force_fp16": (_every_operator, half, (single,)),
        "force_fp32": (lambda: _PRODUCTS, single, (half, brain)),
        "allow_fp32_to_fp16": (lambda: _PRODUCTS, half, (single,)),
        "allow_fp32_to_bf16": (lambda: _PRODUCTS, brain, (single,)),
        "allow_mix_precision": (lambda: _MIXED, half, (single,)),
        "allow_mix_precision_fp16": (lambda: _MIXED, half, (single,)),
        "allow_mix_precision_bf16": (lambda: _MIXED, brain, (single,)),
    }
    if mode not in policies:
        return None
    names, dtype, sources = policies[mode]
    return dict.fromkeys(names(), computing_from(frozenset(sources), dtype))


FRONT.precision_rules = rules
