"""What bad calls say: wrong arguments of operators, primitives and Cells."""
from __future__ import annotations

import numpy as np
import pytest
from messages import Bad, check
from mindspore import Tensor, nn, ops
from mindspore.ops import operations as P


def z(*shape, d=np.float32):
    """Zeros."""
    return Tensor(np.zeros(shape, d))


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
        lambda: P.ReLU()(), TypeError,
        "relu()",
        "expected relu(input, inplace=False).",
    ),
    "prim_many": Bad(
        lambda: P.ReLU()(z(1), z(1), z(1)), TypeError,
        "relu(input: Float32[1], inplace: Float32[1], argument 2: Float32[1])",
        "expected relu(input, inplace=False).",
    ),
    "exp_str": Bad(
        lambda: ops.exp('a'), TypeError,
        "exp(input: 'a')",
        "expected a Tensor as input, got str.",
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
