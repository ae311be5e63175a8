"""Methods of Tensor beside the operators' own, and operators that write into their Tensor."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -1.5], [4.0, 2.0, 1.0]], np.float32)
POSITIVE = np.abs(X) + np.float32(0.5)
SPD = X @ X.T + 3 * np.eye(3, dtype=np.float32)
I = np.array([2, 0, 1], np.int32)
POINTS = np.array([[0, 1], [2, 2]], np.int32)
VALUES = np.array([5.0, -1.0], np.float32)


def t(value):
    return ms.Tensor(value)


def arrays(value):
    values = value if isinstance(value, (tuple, list)) else (value,)
    return {f"output{i}": number.asnumpy() if isinstance(number, ms.Tensor) else number for i, number in enumerate(values)}


METHODS = {
    "ger": lambda: t(X[0]).ger(t(X[1])),
    "adjoint": lambda: t(X).adjoint(),
    "approximate_equal": lambda: t(X).approximate_equal(t(X + 0.1), 0.5),
    "matrix_determinant": lambda: t(SPD).matrix_determinant(),
    "log_matrix_determinant": lambda: t(SPD).log_matrix_determinant(),
    "matrix_power": lambda: t(X).matrix_power(2),
    "lstsq": lambda: t(SPD).lstsq(t(X)),
    "invert": lambda: t(I).invert(),
    "reverse": lambda: t(X).reverse([1]),
    "reverse_sequence": lambda: t(X).reverse_sequence(t(np.array([2, 3, 1])), 1),
    "top_k": lambda: t(X).top_k(2),
    "unique_with_pad": lambda: t(I).unique_with_pad(9),
    "unsorted_segment_max": lambda: t(X).unsorted_segment_max(t(I), 3),
    "unsorted_segment_min": lambda: t(X).unsorted_segment_min(t(I), 3),
    "unsorted_segment_prod": lambda: t(X).unsorted_segment_prod(t(I), 3),
    "scatter_sub": lambda: t(X).scatter_sub(t(POINTS), t(VALUES)),
    "scatter_mul": lambda: t(X).scatter_mul(t(POINTS), t(VALUES)),
    "scatter_div": lambda: t(X).scatter_div(t(POINTS), t(VALUES)),
    "scatter_max": lambda: t(X).scatter_max(t(POINTS), t(VALUES)),
    "scatter_min": lambda: t(X).scatter_min(t(POINTS), t(VALUES)),
    "scatter_add": lambda: t(X).scatter_add(t(POINTS), t(VALUES)),
    "inplace_update": lambda: t(X).inplace_update(t(X[:1] * 2), 1),
    "cholesky_solve": lambda: t(X).cholesky_solve(t(np.linalg.cholesky(SPD).astype(np.float32))),
    "lu_solve": lambda: t(X).lu_solve(t(SPD), t(np.array([1, 2, 3], np.int32))),
    "allclose": lambda: t(X).allclose(t(X)),
    "argmax_with_value": lambda: t(X).argmax_with_value(1),
    "argmin_with_value": lambda: t(X).argmin_with_value(0, True),
    "choose": lambda: t(np.array([2, 0, 1, 5])).choose([t(np.arange(4)), t(np.arange(4) + 10), t(np.arange(4) + 20)]),
    "choose_wrap": lambda: t(np.array([2, 0, 1, 5])).choose([t(np.arange(4)), t(np.arange(4) + 10), t(np.arange(4) + 20)], "wrap"),
    "sum_to_size": lambda: t(X).sum_to_size((1, 3)),
    "resize": lambda: t(X).resize(2, 6),
    "select": lambda: t(X).select(1, 2),
    "select_where": lambda: t(X).select(t(X > 0), t(X * 2)),
    "index_put": lambda: t(X).index_put((t(np.array([0, 1])), t(np.array([2, 0]))), t(VALUES)),
    "index_put_add": lambda: t(X).index_put((t(np.array([0, 0])), t(np.array([2, 2]))), t(VALUES), True),
    "mH": lambda: t(X).mH,
    "H": lambda: t(X).H,
    "data": lambda: t(X).data,
    "get_bytes": lambda: t(np.frombuffer(t(X).get_bytes(), np.float32)),
    "exp_": lambda: t(X).exp_(),
    "remainder_": lambda: t(X).remainder_(2.0),
    "floor_divide_": lambda: t(X).floor_divide_(2.0),
    "view_as": lambda: ops.view_as(t(X), t(X.reshape(1, 9))),
    "diff_ext": lambda: ops.diff_ext(t(X)),
    "isnan_ext": lambda: ops.isnan_ext(t(X)),
    "float_power_ext": lambda: ops.float_power_ext(t(X), 2),
}


@case(over=METHODS, rtol=1e-4, atol=1e-5, graph=True)
def method(call):
    return arrays(call())
