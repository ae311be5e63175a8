"""Operators whose Tensors must have one dtype, as in MindSpore 2.10: torch would promote some of them, or cast updates to the target."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.base.function_parameters import parameters_of
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase

_BOXES, _BOUNDS = ("anchor_boxes", "gt_boxes"), ("start", "end")
_SCATTER = ("input_x", "updates")
_LOGITS = ("logits", "labels")

GROUPS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("_allclose", "isclose"), ("input", "other")),
    **dict.fromkeys([f"tensor_scatter_{name}" for name in ("add", "div", "max", "min", "mul", "sub", "update")], _SCATTER),
    **dict.fromkeys(("scatter", "select_scatter", "slice_scatter"), ("input", "src")),
    **dict.fromkeys(("inplace_add", "inplace_sub", "inplace_update", "_inplace_update", "_inplace_update_v2"), ("x", "v")),
    **dict.fromkeys(("_inplace_add", "_inplace_sub"), ("x", "input_v")),
    **dict.fromkeys(("_lower_bound", "_upper_bound"), ("sorted_x", "values")),
    **dict.fromkeys(("_logspace", "logspace"), _BOUNDS),
    **dict.fromkeys(("_matrix_diag", "_matrix_diag_part", "matrix_diag", "matrix_diag_part"), ("x", "padding_value")),
    **dict.fromkeys(("_one_hot", "one_hot"), ("on_value", "off_value")),
    **dict.fromkeys(("_iou_primitive", "iou"), _BOXES),
    **dict.fromkeys(("_bounding_box_decode", "bounding_box_decode"), ("anchor_box", "deltas")),
    **dict.fromkeys(("_bounding_box_encode", "bounding_box_encode"), ("anchor_box", "groundtruth_box")),
    **dict.fromkeys(("_kl_div", "kl_div", "_softmax_cross_entropy"), _LOGITS),
    **dict.fromkeys(("_binary_cross_entropy", "binary_cross_entropy"), (*_LOGITS, "weight")),
    **dict.fromkeys(("addcdiv", "addcmul"), ("input", "tensor1", "tensor2")),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), ("input", "other")),
    "_betainc": ("a", "b", "x"),
    "_compare_and_bitpack": ("x", "threshold"),
    "_deformable_offsets": ("x", "offsets"),
    "_equal_count": ("x", "y"),
    "_ger": ("x1", "x2"),
    "_index_put": ("x1", "x2"),
    "_index_put_method": ("input", "values"),
    "_left_shift": ("x1", "x2"),
    "_lin_space": ("start", "stop"),
    "_list_diff": ("x", "y"),
    "_non_max_suppression_with_overlaps": ("overlaps", "scores", "overlap_threshold", "score_threshold"),
    "_orgqr": ("x", "tau"),
    "_ragged_range": ("starts", "limits", "deltas"),
    "_right_shift": ("input_x", "input_y"),
    "_sigmoid_cross_entropy": ("logits", "label"),
    "_sparse_add": ("x1_values", "x2"),
    "_sparse_matmul": ("values", "dense"),
    "_square_sum_all": ("x", "y"),
    "_triangular_solve": ("matrix", "rhs"),
    "_tridiagonal_matmul": ("superdiag", "maindiag", "subdiag", "rhs"),
    "_unravel_index": ("indices", "dims"),
    "addr": ("vec1", "vec2"),
    "baddbmm": ("input", "batch1", "batch2"),
    "cosine_embedding_loss": ("input1", "input2"),
    "deformable_conv2d": ("x", "offsets"),
    "fractional_max_pool3d": ("input", "_random_samples"),
    "ger": ("input", "vec2"),
    "margin_ranking_loss": ("input1", "input2", "target"),
    "orgqr": ("input", "input2"),
    "sparse_segment_mean": ("indices", "segment_ids"),
}
"""By the name of an operator, the parameters whose Tensors have one dtype. Numbers have no dtype of their own."""

MINT: dict[str, tuple[str, ...]] = {
    "allclose": ("input", "other"), "binary_cross_entropy": ("input", "target", "weight"), "scatter": ("input", "src"),
}
"""The same by the name of a function of `mint`."""

NUMPY: dict[str, tuple[str, ...]] = {"correlate": ("a", "v"), "isclose": ("a", "b")}
"""The same by the name of a function of `mindspore.numpy`."""

SEQUENCES: dict[str, str] = {
    "_choose": "choices", "_index_put": "indices", "_index_put_method": "indices", "_parallel_concat": "values", "_stack": "input_x",
    "addn": "x", "stack": "tensors",
}
"""By the name of an operator, the parameter with a sequence of Tensors of one dtype."""

Check = Callable[[tuple[Any, ...], dict[str, Any]], None]


def check_of(body: Callable[..., Any], group: tuple[str, ...], sequence: str | None) -> Check | None:
    """Return a check of the arguments of a call, or None if no Tensors of the operator must have one dtype."""
    parameters = parameters_of(body).names if group or sequence else ()
    positions = [(key, parameters.index(key)) for key in group if key in parameters]
    sequence_position = parameters.index(sequence) if sequence in parameters else None
    if not positions and sequence_position is None:
        return None

    last = max((position for _, position in positions), default=0)

    def check(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        count = len(arguments)
        if positions and not (count > last and _are_alike([arguments[position] for _, position in positions])):
            check_one_dtype({key: arguments[position] if position < count else keywords.get(key) for key, position in positions})
        if sequence_position is not None:
            values = arguments[sequence_position] if sequence_position < count else keywords.get(str(sequence))
            if isinstance(values, (tuple, list)) and not _are_alike(values):
                check_one_dtype(dict(enumerate(values)))

    return check


def _are_alike(values: Sequence[Any]) -> bool:
    """Return whether all values are torch tensors of one dtype."""
    dtype = None
    for value in values:
        if value.__class__ is not torch.Tensor or (dtype is not None and value.dtype is not dtype):
            return False
        dtype = value.dtype
    return True


def check_one_dtype(values: dict[Any, Any]) -> None:
    """Raises TypeError if the Tensors among the values have several dtypes."""
    dtypes = {key: _dtype(value) for key, value in values.items() if isinstance(value, (torch.Tensor, TensorBase))}
    if len(set(dtypes.values())) > 1:
        raise TypeError(f"expected one dtype, got {' and '.join(str(FROM_TORCH[dtype]) for dtype in dtypes.values())}.")


def _dtype(value: Any) -> torch.dtype:
    dtype: torch.dtype = value.dtype if isinstance(value, torch.Tensor) else value._t.dtype
    return dtype
