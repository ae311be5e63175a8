"""`mindspore.ops`: operators as functions and as primitives."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore.ops import composite, primitive
from torchspore.mindspore.ops.arrays import (
    array,
    creation,
    diagonals,
    joining,
    pads,
    scattering,
    search,
    segments,
    selection,
    sequences,
    table_lookups,
)
from torchspore.mindspore.ops.collectives import collective, map_parameters, neighbours, parameter_server
from torchspore.mindspore.ops.collectives.collective import ReduceOp
from torchspore.mindspore.ops.declaration import declare
from torchspore.mindspore.ops.declaration.declare import OPERATORS
from torchspore.mindspore.ops.declaration.older_keywords import split_of_older_releases
from torchspore.mindspore.ops.declaration.primitive import Primitive, PrimitiveWithCheck, PrimitiveWithInfer, prim_attr_register
from torchspore.mindspore.ops.elementwise import activation, arithmetic, binary, special, unary
from torchspore.mindspore.ops.gradients import grad_images, grad_primitives, grad_structures, grad_sums
from torchspore.mindspore.ops.gradients.gradient import GradOperation, get_grad, grad, value_and_grad
from torchspore.mindspore.ops.gradients.transforms import derivative, jacfwd, jacrev, jet, jvp, linearize, vjp, vmap
from torchspore.mindspore.ops.images import (
    boxes,
    conv,
    conv_primitives,
    deformable,
    fractional_pools,
    image_windows,
    pooling,
    rearrange,
    region_pooling,
    resize,
    sampling,
)
from torchspore.mindspore.ops.layers import (
    expert_layers,
    expert_routing,
    experts,
    flash_attention,
    inference_attention,
    layer_math,
    normalization,
    recurrent,
    recurrent_primitives,
)
from torchspore.mindspore.ops.linear_algebra import cosine_transforms, fourier, grouped_products, matrices, matrix_products, products
from torchspore.mindspore.ops.losses import ctc, loss, more_losses
from torchspore.mindspore.ops.optimizers import row_updates, state, updates
from torchspore.mindspore.ops.precision import pynative_precision
from torchspore.mindspore.ops.program import (
    ext_primitives,
    inner_primitives,
    legacy,
    replay_buffers,
    reporting,
    sequence_primitives,
    structures,
)
from torchspore.mindspore.ops.program.composite import (
    ControlDepend,
    HyperMap,
    Map,
    MultitypeFuncGraph,
    Partial,
    add_flags,
    augassign_add,
    augassign_div,
    augassign_floordiv,
    augassign_mod,
    augassign_mul,
    augassign_sub,
    clip_by_global_norm,
    clip_by_norm,
    control_depend,
    core,
    env_get,
    environ_add,
    environ_create,
    environ_get,
    environ_set,
    hyper_add,
    iter_converter,
    mixed_precision_cast,
    ms_hasnext,
    ms_next,
    partial,
    ref_to_embed,
)
from torchspore.mindspore.ops.program.custom import (
    AiCPURegOp,
    AkgAscendRegOp,
    AkgGpuRegOp,
    CpuRegOp,
    Custom,
    CustomRegOp,
    DataType,
    TBERegOp,
    custom_info_register,
    kernel,
    ms_kernel,
    op_info_register,
)
from torchspore.mindspore.ops.program.data_queue import GetNext
from torchspore.mindspore.ops.program.loops import ForiLoop, Morph, PyFunc, Reusing, Scan, WhileLoop
from torchspore.mindspore.ops.program.reporting import Assert, HookBackward, InsertGradientOf
from torchspore.mindspore.ops.quantization import quantized, quantized_products
from torchspore.mindspore.ops.random_draws import candidate_samplers, distribution_draws, draws, dropouts, weighted_draws
from torchspore.mindspore.ops.reductions import cumulative, extremes, histograms, norms, reduction, statistics
from torchspore.mindspore.ops.sparse_formats import coo_primitives, csr_matrices, csr_primitives, sets_and_ragged, sparse_tensors
from torchspore.mindspore.ops.tensor_methods import in_place, methods

ALIASES = {
    "tensor_add": "add", "multiply": "mul", "divide": "div",
    "tensor_mul": "mul", "tensor_sub": "sub", "tensor_pow": "pow", "tensor_exp": "exp", "tensor_gt": "greater", "tensor_lt": "less",
    "tensor_ge": "greater_equal", "tensor_le": "less_equal", "gt": "greater", "lt": "less", "ge": "greater_equal", "le": "less_equal",
    "eq": "equal",
    "ne": "not_equal", "tensor_floordiv": "floor_divide", "absolute": "abs",
    "negative": "neg", "arccos": "acos", "arctan": "atan", "moveaxis": "movedim",
    "arctan2": "atan2", "floordiv": "floor_divide", "floormod": "floor_mod", "pows": "pow", "tensor_range": "range",

    "accumulate_n": "addn", "tensor_muls": "mul", "reshape_": "reshape", "det": "matrix_determinant",
}
"""Aliases of operators."""

PRIMITIVE_ALIASES = {"AddV2": "Add", "FastGelu": "FastGeLU", "Gelu": "GeLU", "TensorAdd": "Add"}
"""Aliases of primitives."""


def _names() -> dict[str, Any]:
    members: dict[str, Any] = {}
    for operator in OPERATORS.values():
        if not operator.name.startswith("_"):
            members[operator.name] = operator.function
        if operator.primitive is not None:
            members[operator.primitive.__name__] = operator.primitive
    members.update({collective_class.__name__: collective_class for collective_class in (*collective.PRIMITIVES, *neighbours.PRIMITIVES)})
    members["split"] = split_of_older_releases(members["split"])
    members.update({alias: members[name] for alias, name in ALIASES.items() if name in members})
    members.update(Pull=parameter_server.Pull, Push=parameter_server.Push)
    members.update(sparse_tensors.FUNCTIONS)
    members.update({alias: members[name] for alias, name in PRIMITIVE_ALIASES.items() if name in members})
    return members


globals().update(_names())
methods.attach()
_OTHERS = (
    "AiCPURegOp", "AkgAscendRegOp", "AkgGpuRegOp", "Assert", "ControlDepend", "CpuRegOp", "Custom", "CustomRegOp", "DataType",
    "ForiLoop", "GetNext", "GradOperation", "HookBackward", "HyperMap", "InsertGradientOf", "Map", "Morph", "MultitypeFuncGraph",
    "Partial", "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "PyFunc", "ReduceOp", "Reusing", "Scan", "TBERegOp",
    "WhileLoop", "add_flags", "augassign_add", "augassign_div", "augassign_floordiv", "augassign_mod", "augassign_mul", "augassign_sub",
    "clip_by_global_norm", "clip_by_norm", "control_depend", "core", "custom_info_register", "derivative", "env_get", "environ_add",
    "environ_create", "environ_get", "environ_set", "get_grad", "grad", "hyper_add", "iter_converter", "jacfwd", "jacrev", "jet", "jvp",
    "kernel", "linearize", "mixed_precision_cast", "ms_hasnext", "ms_kernel", "ms_next", "op_info_register", "partial",
    "prim_attr_register", "ref_to_embed", "value_and_grad", "vjp", "vmap",
)
"""Public names other than operators."""
__all__ = sorted({*_names(), *_OTHERS})
