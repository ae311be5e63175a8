"""What gradient transforms and functions over functions say of bad arguments."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops
from support.error_messages import Bad, check


def z(*shape, d=np.float32):
    return Tensor(np.zeros(shape, d))


def graph(x):
    result = ops.MultitypeFuncGraph("found")

    @result.register("Tensor")
    def _of_tensor(t):
        return t
    return result(x)


BAD = {
    "not_callable": Bad(lambda: ms.grad(3), TypeError, "grad(3)", "expected a function or a Cell."),
    "nothing": Bad(
        lambda: ms.grad(lambda x: x, None), ValueError,
        "grad(grad_position=None, weights=None)",
        "expected something to differentiate by.",
        "write weights=net.trainable_params().",
    ),
    "position": Bad(
        lambda: ms.grad(lambda x: x, "a"), TypeError,
        "grad(grad_position='a')",
        "expected None, an int from 0 on or a tuple of them.",
        "write grad_position=(0, 1).",
    ),
    "position_negative": Bad(
        lambda: ms.grad(lambda x: x, -1), TypeError,
        "grad(grad_position=-1)",
        "expected None, an int from 0 on or a tuple of them.",
        "write grad_position=(0, 1).",
    ),
    "weights": Bad(
        lambda: ms.grad(lambda x: x, 0, [z(1)]), TypeError,
        "grad(weights=...)",
        "expected Parameters.",
        "write weights=net.trainable_params().",
    ),
    "has_aux": Bad(lambda: ms.grad(lambda x: x, has_aux=1), TypeError, "grad(has_aux=1)", "expected a bool, got int."),
    "return_ids": Bad(
        lambda: ms.value_and_grad(lambda x: x, return_ids=1), TypeError,
        "value_and_grad(return_ids=1)",
        "expected a bool, got int.",
    ),
    "far": Bad(
        lambda: ms.grad(lambda x: x, 3)(z(1)), ValueError,
        "grad(grad_position=3)",
        "expected a position from 0 to 0; the call has 1 arguments.",
    ),
    "get_grad": Bad(
        lambda: ms.get_grad((0, z(1)), 5), RuntimeError,
        "get_grad(5)",
        "Can not find the gradient for position or Parameter 5.",
        "differentiate with return_ids=True.",
    ),
    "operation": Bad(lambda: ops.GradOperation(get_all=1), TypeError, "GradOperation(get_all=1)", "expected a bool, got int."),
    "multitype": Bad(
        lambda: graph("a"), TypeError,
        "MultitypeFuncGraph 'found'",
        "no function is registered for (str).",
        "@found.register(str).",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str) -> None:
    check(BAD[name])
