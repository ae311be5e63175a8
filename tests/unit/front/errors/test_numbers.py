"""What bad calls say: arithmetic, reductions, losses, assignments and creation."""
from __future__ import annotations

import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from support.error_messages import Bad, check


def z(*shape, d=np.float32):
    """Zeros."""
    return Tensor(np.zeros(shape, d))


BAD = {
    "add_shapes": Bad(
        lambda: z(2, 3) + z(2, 4), ValueError,
        "add(input: Float32[2, 3], other: Float32[2, 4])",
        "expected shapes that broadcast, got (2, 3) and (2, 4): on axis 1 they have 3 and 4.",
    ),
    "add_none": Bad(
        lambda: z(2) + None, TypeError,
        "add(input: Float32[2], other: None)",
        "expected Tensors or numbers, got NoneType.",
    ),
    "add_array": Bad(
        lambda: z(2) + np.zeros(2), TypeError,
        "add(input: Float32[2], other: array([0., 0.]))",
        "expected Tensors or numbers, got ndarray.",
        "write Tensor(array) for a NumPy array.",
    ),
    "lt": Bad(
        lambda: z(2) < 'a', TypeError,
        "less(input: Float32[2], other: 'a')",
        "expected Tensors or numbers, got str.",
    ),
    "u32": Bad(
        lambda: Tensor(np.ones(2, np.uint32)) + z(2), TypeError,
        "add(input: UInt32[2], other: Float32[2])",
        "expected one dtype, got UInt32 and Float32.",
        "cast one of them, for example with astype(mindspore.float32).",
    ),
    "u32n": Bad(
        lambda: Tensor(np.ones(2, np.uint32)) + 1.5, TypeError,
        "add(input: UInt32[2], other: 1.5)",
        "expected one dtype, got UInt32 and the number 1.5.",
        "cast the Tensor, for example with astype(mindspore.int64).",
    ),
    "complex_half": Bad(
        lambda: z(2, d=np.float16) * z(2, d=np.complex64), TypeError,
        "mul(input: Float16[2], other: Complex64[2])",
        "expected one dtype, got Float16 and Complex64.",
        "cast one of them, for example with astype(mindspore.float32).",
    ),
    "div": Bad(
        lambda: ops.div(z(2), z(2), rounding_mode='up'), ValueError,
        "div(input: Float32[2], other: Float32[2], rounding_mode: 'up')",
        "expected rounding_mode None, 'floor' or 'trunc'.",
    ),
    "intdiv": Bad(
        lambda: Tensor([1]) // Tensor([0]), ZeroDivisionError,
        "floor_divide(input: Int64[1], other: Int64[1])",
        "integers can't be divided by zero.",
    ),
    "bit": Bad(
        lambda: z(2) & z(2), TypeError,
        "bitwise_and(input: Float32[2], other: Float32[2])",
        "expected another dtype than Float32.",
        "cast it first, for example with astype(mindspore.float32).",
    ),
    "sum_axis": Bad(
        lambda: ops.sum(z(2, 3), 5), ValueError,
        "sum(input: Float32[2, 3], dim: 5)",
        "expected an axis from -2 to 1, got 5.",
    ),
    "sum_axes": Bad(
        lambda: ops.sum(z(2, 3), (0, 0)), ValueError,
        "sum(input: Float32[2, 3], dim: (0, 0))",
        "expected each axis once.",
    ),
    "mean_axis": Bad(
        lambda: z(2).mean(3), ValueError,
        "mean(x: Float32[2], axis: 3)",
        "expected an axis from -1 to 0, got 3.",
    ),
    "max_empty": Bad(
        lambda: ops.amax(z(0)), ValueError,
        "amax(input: Float32[0])",
        "expected at least one element.",
    ),
    "argmax": Bad(
        lambda: ops.argmax(z(2), 5), ValueError,
        "argmax(input: Float32[2], dim: 5)",
        "expected an axis from -1 to 0, got 5.",
    ),
    "reduce_list": Bad(
        lambda: ops.sum([1.0, 2.0]), TypeError,
        "sum(input: [1.0, 2.0])",
        "expected a Tensor as input, got list.",
        "write Tensor(input).",
    ),
    "softmax": Bad(
        lambda: ops.softmax(z(2), 3), ValueError,
        "softmax(input: Float32[2], axis: 3)",
        "expected an axis from -1 to 0, got 3.",
    ),
    "softmax_int": Bad(
        lambda: ops.softmax(z(2, d=np.int32)), TypeError,
        "softmax(input: Int32[2])",
        "expected another dtype than Int32.",
        "cast it first, for example with astype(mindspore.float32).",
    ),
    "cumsum": Bad(
        lambda: ops.cumsum(z(2), 4), ValueError,
        "cumsum(x: Float32[2], axis: 4)",
        "expected an axis from -1 to 0, got 4.",
    ),
    "max keyword": Bad(
        lambda: z(2).max(foo=1), TypeError,
        "Tensor.max(foo=...)", "expected axis, keepdims, initial, where, return_indices.",
    ),
    "topk": Bad(
        lambda: ops.topk(z(2), 5), ValueError,
        "topk(input: Float32[2], k: 5)",
        "expected k up to the length of the axis.",
    ),
    "norm": Bad(
        lambda: ops.norm(z(2, 2), 'x'), ValueError,
        "norm(A: Float32[2, 2], ord: 'x')",
        "expected another ord than x.",
    ),
    "sort": Bad(
        lambda: ops.sort(z(2), 5), ValueError,
        "sort(input_x: Float32[2], axis: 5)",
        "expected an axis from -1 to 0, got 5.",
    ),
    "ce": Bad(
        lambda: ops.cross_entropy(z(2, 3), Tensor([0, 1, 2])), ValueError,
        "cross_entropy(input: Float32[2, 3], target: Int64[3])",
        "expected one label for each row of logits, got shapes (2, 3) and (3,).",
    ),
    "ce_class": Bad(
        lambda: ops.cross_entropy(z(2, 3), Tensor([0, 7])), ValueError,
        "cross_entropy(input: Float32[2, 3], target: Int64[2])",
        "expected classes from 0 to 2, got 7.",
    ),
    "ce_u32": Bad(
        lambda: ops.cross_entropy(z(2, 3), Tensor(np.zeros(2, np.uint32))), TypeError,
        "cross_entropy(input: Float32[2, 3], target: UInt32[2])",
        "expected classes as Int32 or Int64, got UInt32.",
        "write labels.astype(mindspore.int32).",
    ),
    "ce_half": Bad(
        lambda: ops.cross_entropy(z(2, 3, d=np.int32), Tensor([0, 1])), TypeError,
        "cross_entropy(input: Int32[2, 3], target: Int64[2])",
        "expected another dtype than Int32.",
        "cast it first, for example with astype(mindspore.float32).",
    ),
    "mse": Bad(
        lambda: ops.mse_loss(z(2), z(2), 'avg'), ValueError,
        "mse_loss(input: Float32[2], target: Float32[2], reduction: 'avg')",
        "reduction='avg': expected 'mean', 'sum' or 'none'.",
    ),
    "bce": Bad(
        lambda: ops.binary_cross_entropy(z(2), z(3)), ValueError,
        "binary_cross_entropy(logits: Float32[2], labels: Float32[3])",
        "expected equal shapes, got (2,) and (3,).",
    ),
    "bce2": Bad(
        lambda: nn.BCELoss()(Tensor([2.0]), z(1)), ValueError,
        "binary_cross_entropy(logits: Float32[1], labels: Float32[1])",
        "expected probabilities, numbers from 0 to 1.",
        "binary_cross_entropy_with_logits takes logits.",
    ),
    "nll": Bad(
        lambda: ops.nll_loss(z(2, 3), Tensor([0])), ValueError,
        "nll_loss(inputs: Float32[2, 3], target: Int64[1])",
        "expected one label for each row of logits, got shapes (2, 3) and (1,).",
    ),
    "losss": Bad(
        lambda: nn.MSELoss()(z(2), z(3)), ValueError,
        "sub(input: Float32[2], other: Float32[3])",
        "expected shapes that broadcast, got (2,) and (3,): on axis 0 they have 2 and 3.",
    ),
    "assign": Bad(
        lambda: ops.assign(Parameter(z(2), name='p'), z(3)), ValueError,
        "assign(variable: Float32[2], value: Float32[3])",
        "expected a value of the variable's shape (2,), got (3,).",
    ),
    "assign_add": Bad(
        lambda: ops.assign_add(Parameter(z(2), name='p'), z(3)), ValueError,
        "assign_add(variable: Float32[2], value: Float32[3])",
        "expected shapes that broadcast, got (2,) and (3,): on axis 0 they have 2 and 3.",
    ),
    "assign_str": Bad(
        lambda: ops.assign(Parameter(z(2), name='p'), 'a'), TypeError,
        "assign(variable: Float32[2], value: 'a')",
        "Tensor('a'): expected a number, a list, a tuple, a NumPy array or a Tensor, got str.",
        "write Tensor([1.0, 2.0], mindspore.float32).",
    ),
    "arange": Bad(
        lambda: ops.arange(0, 5, 0), ValueError,
        "arange(end: 5, step: 0)",
        "expected a step other than 0.",
    ),
    "ones": Bad(
        lambda: ops.ones((-1,)), ValueError,
        "ones(shape: (-1,))",
        "expected lengths from 0 on, got -1.",
    ),
    "full": Bad(
        lambda: ops.full((2,), 'a'), TypeError,
        "full(size: (2,), fill_value: 'a')",
        "expected a number as fill_value, got str.",
    ),
    "linspace": Bad(
        lambda: ops.linspace(0, 1, -2), ValueError,
        "linspace(start: 0, end: 1, steps: -2)",
        "expected ints from 1 on.",
    ),
    "rand": Bad(
        lambda: ops.rand(-1), ValueError,
        "rand(size[0]: -1)",
        "expected lengths from 0 on, got -1.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str) -> None:
    check(BAD[name], __file__)
