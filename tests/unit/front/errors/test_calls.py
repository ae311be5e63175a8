"""What bad calls say: wrong arguments of operators, primitives and Cells."""
from __future__ import annotations

import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops
from mindspore import numpy as mnp
from mindspore.ops import operations as P
from support.error_messages import Bad, check

from torchspore.errors import NotFinite, WrongKind


def z(*shape, d=np.float32):
    """Zeros."""
    return Tensor(np.zeros(shape, d))


ITSELF: list = []
ITSELF.append(ITSELF)

BAD = {
    "relu_list": Bad(
        lambda: ops.relu([1.0]), TypeError,
        "relu(input: [1.0])",
        "expected a Tensor as input, got list.",
        "write Tensor(input).",
    ),
    "relu_none": Bad(
        lambda: ops.relu(None), TypeError,
        "relu(input: None)",
        "expected a Tensor as input, got NoneType.",
    ),
    "relu_args": Bad(
        lambda: ops.relu(), TypeError,
        "relu()",
        "expected relu(input, inplace=False).",
    ),
    "relu_kw": Bad(
        lambda: ops.relu(z(2), foo=1), TypeError,
        "relu(input: Float32[2], foo: 1)",
        "expected relu(input, inplace=False).",
    ),
    "prim_args": Bad(
        lambda: P.ReLU()(), WrongKind,
        "relu()",
        "expected relu(input, inplace=False).\n\nFor 'S_Prim_ReLU', the size of input should be 1, but got 0.",
    ),
    "prim_many": Bad(
        lambda: P.ReLU()(z(1), z(1), z(1)), WrongKind,
        "relu(input: Float32[1], inplace: Float32[1], argument 2: Float32[1])",
        "expected relu(input, inplace=False).\n\nFor Operator[ReLU], the number of inputs should be less than or equal to 1, but got 3.",
    ),
    "exp_str": Bad(
        lambda: ops.exp('a'), TypeError,
        "exp(input: 'a')",
        "expected a Tensor as input, got str.",
    ),
    "layer": Bad(
        lambda: ops.bincount(nn.Dense(3, 2)), TypeError,
        "bincount(input: Dense(input_channels=3, output_channels=2, has_bias=True))",
        "expected a Tensor as input, got Dense.",
    ),
    "of_a_set": Bad(
        lambda: ops.clip_by_norm({1, 2}, 1.0), TypeError,
        "clip_by_norm(x: {1, 2}, max_norm: 1.0)",
        "expected a Tensor as x, got set.",
        "write Tensor(x).",
    ),
    "of_an_array": Bad(
        lambda: mint.mean(np.float64(3)), TypeError,
        f"mean(input: {np.float64(3)!r})",
        "expected a Tensor as input, got float64.",
    ),
    "too_large_to_be_written": Bad(
        lambda: Tensor(1.0).clamp_(z(2)), ValueError,
        "Tensor.clamp_(Float32[2])",
        "expected a result of the Tensor's own shape (), got (2).",
    ),
    "no_shape": Bad(
        lambda: z(2).new_full(float("nan"), 3), TypeError,
        "Tensor.new_full",
        "expected ints as shape, got float.",
    ),
    "no_list": Bad(
        lambda: ops.communication.recv_object_list(3, 0), TypeError,
        "recv_object_list(3, 0)",
        "object of type 'int' has no len().",
    ),
    "in_itself": Bad(
        lambda: ops.stop_gradient(ITSELF), ValueError,
        "stop_gradient(value: [[...]])",
        "expected values that are nested less deeply and do not contain themselves.",
    ),
    "in_itself_numpy": Bad(
        lambda: mnp.hanning(ITSELF), ValueError,
        "hanning(M: [[...]])",
        "expected values that are nested less deeply and do not contain themselves.",
    ),
    "concat_of_one": Bad(
        lambda: ops.concat(z(2, 3)), TypeError,
        "concat(tensors: Float32[2, 3])",
        "expected a tuple or list of Tensors, got Tensor.",
    ),
    "hstack_of_one": Bad(
        lambda: mint.hstack(z(2, 3)), TypeError,
        "hstack(tensors: Float32[2, 3])",
        "expected a tuple or list of Tensors, got Tensor.",
    ),
    "inv_of_zero": Bad(
        lambda: ops.inv(z(2, d=np.int32)), ZeroDivisionError,
        "inv(x: Int32[2])",
        "integers can't be divided by zero.",
    ),
    "padding_idx": Bad(
        lambda: ops.embedding(z(1, d=np.int32), z(2, 3), 7), ValueError,
        "embedding(input: Int32[1], weight: Float32[2, 3], padding_idx: 7)",
        "expected a padding_idx that is a row of the table.",
    ),
    "not_finite": Bad(
        lambda: ops.CheckNumerics()(Tensor([float("nan")])), NotFinite,
        "CheckNumerics(x: Float32[1])",
        "expected finite numbers, got NaN or infinity.",
    ),
    "clip": Bad(
        lambda: ops.clip_by_norm(Tensor([float("inf")]), 1.0, error_if_nonfinite=True), NotFinite,
        "clip_by_norm(x: Float32[1], max_norm: 1.0, error_if_nonfinite: True)",
        "the norm is not finite.",
        "write error_if_nonfinite=False to scale anyway.",
    ),
    "cast": Bad(
        lambda: ops.cast(z(2), 'float99'), TypeError,
        "cast(input: Float32[2], dtype: 'float99')",
        "dtype 'float99': expected one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, "
        "float64, bfloat16, complex64, complex128, float8_e4m3fn, float8_e5m2.",
    ),
    "cell": Bad(
        lambda: nn.Dense(2, 2)(), TypeError,
        "Dense()",
        "expected Dense.construct(x).",
    ),
    "cell2": Bad(
        lambda: nn.Dense(2, 2)(z(1, 2), z(1, 2)), TypeError,
        "Dense(Float32[1, 2], Float32[1, 2])",
        "expected Dense.construct(x).",
    ),
    "cellkw": Bad(
        lambda: nn.Dense(2, 2)(y=z(1, 2)), TypeError,
        "Dense(y=Float32[1, 2])",
        "expected Dense.construct(x).",
    ),
    "seq": Bad(
        lambda: nn.SequentialCell(nn.Dense(2, 2))(z(1, 2), 1), TypeError,
        "SequentialCell(Float32[1, 2], 1)",
        "expected SequentialCell.construct(input_data).",
    ),
    "loss": Bad(
        lambda: nn.MSELoss()(z(2)), TypeError,
        "MSELoss(Float32[2])",
        "expected MSELoss.construct(logits, labels).",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str) -> None:
    check(BAD[name], __file__)
