"""`mindspore.scipy`: linear algebra, cosine transforms, optimization."""
from functools import partial

import mindspore as ms
import mindspore.scipy as sp
import numpy as np
from mindspore.scipy import fft, linalg, optimize
from parity.case import case, raised

T = ms.Tensor
draw = np.random.default_rng(3)
ANY = draw.normal(size=(2, 4, 4)).astype(np.float32)
POSITIVE = (ANY @ ANY.transpose(0, 2, 1) + 2 * np.eye(4)).astype(np.float32)
TALL = draw.normal(size=(5, 1)).astype(np.float32)
RIGHT = draw.normal(size=(2, 4, 3)).astype(np.float32)
WIDE = draw.normal(size=(3, 5)).astype(np.float32)

LINEAR = {
    "block_diag": lambda: linalg.block_diag(T(ANY[0]), T([1.0, 2.0]), T([[1], [2]])),
    "block_diag_of_nothing": lambda: linalg.block_diag(),
    "inv": lambda: linalg.inv(T(ANY[0])),
    "inv_of_integers": lambda: linalg.inv(T([[4, 1], [1, 3]])),
    "cholesky": lambda: linalg.cholesky(T(POSITIVE[0])),
    "cholesky_lower": lambda: linalg.cholesky(T(POSITIVE[0]), lower=True),
    "cho_factor": lambda: linalg.cho_factor(T(POSITIVE[0]), lower=True)[0],
    "cho_solve": lambda: linalg.cho_solve(linalg.cho_factor(T(POSITIVE[0])), T(RIGHT[0])),
    "cho_solve_lower": lambda: linalg.cho_solve(linalg.cho_factor(T(POSITIVE[0]), True), T(RIGHT[0, :, 0])),
    "eigh_values": lambda: linalg.eigh(T(POSITIVE[0]), eigvals_only=True),
    "eigh_vectors": lambda: linalg.eigh(T(POSITIVE[0]))[1].abs(),
    "eigh_upper": lambda: linalg.eigh(T(ANY[0]), lower=False)[0],
    "lu_factor": lambda: linalg.lu_factor(T(ANY[0])),
    "lu": lambda: linalg.lu(T(ANY[1])),
    "lu_wide": lambda: linalg.lu(T(WIDE)),
    "det": lambda: linalg.det(T(ANY[0])),
    "lstsq": lambda: linalg.lstsq(T(WIDE.T), T(RIGHT[0, :3].repeat(2, 0)[:5])),
    "lstsq_of_a_vector": lambda: linalg.lstsq(T(WIDE.T), T(WIDE[0])),
    "lstsq_gelsd": lambda: linalg.lstsq(T(WIDE.T), T(TALL), driver="gelsd"),
    **{
        "solve_triangular_" + "_".join(map(str, options)): partial(linalg.solve_triangular, T(POSITIVE), T(RIGHT), *options)
        for options in ((0, False, False), ("T", True, False), (1, False, True), ("C", False, False), ("N", True, True))
    },
    "solve_triangular_vector": lambda: linalg.solve_triangular(T(POSITIVE[0]), T(RIGHT[0, :, 0]), lower=True),
    **{
        f"{name}_{label}": partial(getattr(fft, name), T(WIDE), **keywords)
        for name in ("dct", "idct")
        for label, keywords in {"plain": {}, "cut": {"n": 3}, "longer": {"n": 7}, "axis": {"axis": 0, "norm": "ortho"}}.items()
    },
    **{
        f"{name}_{label}": partial(getattr(fft, name), T(WIDE), **keywords)
        for name in ("dctn", "idctn") for label, keywords in {"plain": {}, "one": {"axes": (0,)}, "lengths": {"s": (4,)}}.items()
    },
    "dct_of_integers": lambda: fft.dct(T([1, 2])),
    "assignment": lambda: optimize.linear_sum_assignment(T(WIDE), False),
    "assignment_largest": lambda: optimize.linear_sum_assignment(T(WIDE.T), True),
    "assignment_limited": lambda: optimize.linear_sum_assignment(T(WIDE), False, T(2)),
}


@case(rtol=2e-5, atol=2e-6, graph=True, over=LINEAR)
def linear(call):
    result = call()
    return {f"{n}": tensor.asnumpy() for n, tensor in enumerate(result if isinstance(result, (tuple, list)) else [result])}


GRADIENTS = {
    "inv": (lambda a: linalg.inv(a).sum(), POSITIVE[0]),
    "solve_triangular": (lambda a: linalg.solve_triangular(a, T(RIGHT[0])).sum(), POSITIVE[0]),
    "solve_triangular_lower": (lambda a: linalg.solve_triangular(a, T(RIGHT[0]), lower=True, trans="T").sum(), POSITIVE[0]),
}


@case(rtol=1e-4, atol=1e-5, graph=True, over=GRADIENTS)
def gradient(arguments):
    function, at = arguments
    return {"gradient": ms.grad(function)(T(at)).asnumpy()}


def rosenbrock(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def himmelblau(p):
    x, y = p
    return (x**2 + y - 11.0) ** 2 + (x + y**2 - 7.0) ** 2


@case(rtol=1e-3, atol=1e-3, over=["BFGS", "LBFGS", "lbfgs"])
def minimum(method):
    result = optimize.minimize(rosenbrock, T([0.5, 0.5]), method=method, options={"gtol": 1e-6})
    other = optimize.minimize(himmelblau, T([0.0, 0.0]), method=method, options={"maxiter": None, "gtol": 1e-6})
    return {"x": result.x.asnumpy(), "of": other.x.asnumpy(), "fields": sorted(result._fields)}


@case(rtol=1e-5)
def step_along_a_line():
    result = optimize.line_search(lambda x: x[0] ** 2 - x[1] ** 3, T([1.0, 1.0]), T([-1.0, -1.0]))
    return {
        "length": float(result.a_k), "value": np.float32(result.f_k), "failed": bool(result.failed),
        "types": [type(result.a_k).__name__, type(result.f_k).__name__, type(result.failed).__name__],
    }


BAD = {
    "three_axes": lambda: linalg.block_diag(T(ANY)),
    "no_square": lambda: linalg.inv(T(WIDE)),
    "half": lambda: linalg.inv(T(ANY[0], ms.float16)),
    "no_tensor": lambda: linalg.cholesky(ANY[0]),
    "no_switch": lambda: linalg.cholesky(T(POSITIVE), lower=1),
    "generalized": lambda: linalg.eigh(T(POSITIVE[0]), T(POSITIVE[0])),
    "trans": lambda: linalg.solve_triangular(T(POSITIVE), T(RIGHT), "X"),
    "two_dtypes": lambda: linalg.solve_triangular(T(POSITIVE), T(RIGHT, ms.float64)),
    "lengths": lambda: linalg.solve_triangular(T(POSITIVE[0]), T([1.0, 2.0])),
    "other_type": lambda: fft.dct(T(WIDE), type=3),
    "other_norm": lambda: fft.dct(T(WIDE), norm="forward"),
    "maximize": lambda: optimize.linear_sum_assignment(T(WIDE), T(True)),
    "no_solver": lambda: optimize.minimize(rosenbrock, T([0.5, 0.5])),
    "unknown_solver": lambda: optimize.minimize(rosenbrock, T([0.5, 0.5]), method="cg"),
}


@case(over=BAD)
def bad(call):
    return {"error": raised(call), "module": sp.__name__.rsplit(".", 1)[-1]}
