"""COOTensor and CSRTensor, and the operators on them."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import COOTensor, CSRTensor, ops
from parity.case import case, raised

AT = np.array([[0, 1], [1, 2], [2, 0]], np.int32)
VALUES = np.array([0.25, -0.5, 0.75], np.float32)
STARTS = np.array([0, 1, 3, 4], np.int32)
COLUMNS = np.array([1, 0, 2, 3], np.int32)
ELEMENTS = np.array([0.5, -0.25, 0.75, 2.0], np.float32)
DENSE = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
EVERY = (
    "abs acos asin asinh atan atanh ceil cos cosh exp expm1 floor inv isfinite isinf isnan neg relu relu6 round sigmoid sin sinh softsign "
    "square tan tanh"
).split()


def coo(values=VALUES):
    return COOTensor(ms.Tensor(AT), ms.Tensor(values), (3, 4))


def csr(values=ELEMENTS):
    return CSRTensor(ms.Tensor(STARTS), ms.Tensor(COLUMNS), ms.Tensor(values), (3, 4))


def parts(sparse):
    results = {"values": sparse.values.asnumpy(), "indices": sparse.indices.asnumpy(), "shape": list(sparse.shape)}
    return results | ({"indptr": sparse.indptr.asnumpy()} if isinstance(sparse, CSRTensor) else {})


ELEMENT = {
    **{f"coo_{name}": f"coo_{name}" for name in EVERY}, **{f"csr_{name}": f"csr_{name}" for name in EVERY},
    **{name: name for name in "coo_sqrt coo_log coo_log1p coo_acosh csr_sqrt csr_log csr_log1p csr_acosh".split()},
}


@case(over=ELEMENT, rtol=1e-5, atol=1e-6)
def element(name):
    low = name.split("_")[1] in ("acos", "asin", "atanh")
    high = name.split("_")[1] in ("sqrt", "log", "log1p", "acosh")
    make, values = (coo, VALUES) if name.startswith("coo") else (csr, ELEMENTS)
    return parts(getattr(ops, name)(make(np.abs(values) + 1 if high else values / 4 if low else values)))


NAMES = (
    "coo_abs coo_acos coo_asin coo_asinh coo_atan coo_atanh coo_ceil coo_cos coo_cosh coo_exp coo_expm1 coo_floor coo_inv coo_isfinite "
    "coo_isinf coo_isnan coo_neg coo_relu coo_relu6 coo_round coo_sigmoid coo_sin coo_sinh coo_softsign coo_square coo_tan coo_tanh "
    "csr_abs csr_acos csr_asin csr_asinh csr_atan csr_atanh csr_ceil csr_cos csr_cosh csr_exp csr_expm1 csr_floor csr_inv csr_isfinite "
    "csr_isinf csr_isnan csr_neg csr_relu csr_relu6 csr_round csr_sigmoid csr_sin csr_sinh csr_softsign csr_square csr_tan csr_tanh"
)


@case()
def all_names_are_there():
    return {"all": [callable(getattr(ops, name)) for name in NAMES.split()]}


SPARSE = {
    "coo_add": lambda: parts(ops.coo_add(*(
        COOTensor(ms.Tensor(AT.astype(np.int64)), ms.Tensor(v), (3, 4)) for v in (VALUES, VALUES * 2)
    ), ms.Tensor(
        0.8, ms.float32,
    ))),
    "csr_add": lambda: parts(ops.csr_add(csr(), csr(ELEMENTS * 3), ms.Tensor(1.0, ms.float32), ms.Tensor(2.0, ms.float32))),
    "csr_to_coo": lambda: parts(ops.csr_to_coo(csr())),
    "coo_concat": lambda: parts(ops.coo_concat([
        COOTensor(ms.Tensor(AT.astype(np.int64)), ms.Tensor(v), (3, 4)) for v in (VALUES, VALUES * 2)
    ], 1)),
    "csr_negative": lambda: parts(-csr()),
    "coo_negative": lambda: parts(-coo()),
    "coo_times": lambda: parts(coo() * ms.Tensor(DENSE)),
    "coo_over": lambda: parts(coo() / ms.Tensor(DENSE)),
    "csr_abs_method": lambda: parts(csr().abs()),
    "csr_astype": lambda: parts(csr().astype(ms.float64)),
    "coo_coalesce": lambda: parts(COOTensor(ms.Tensor(AT[[0, 0, 2]].astype(np.int64)), ms.Tensor(VALUES), (3, 4)).coalesce()),
}


@case(over=SPARSE, rtol=1e-5)
def sparse(ask):
    return ask()


@case()
def described():
    item = csr()
    return {
        "size": [item.size, item.itemsize, item.ndim, list(item.shape), str(item.dtype)], "tuple": len(item.to_tuple()), "copy": list(
            CSRTensor(csr_tensor=item).shape
        ),
        "refused": [raised(lambda: CSRTensor(ms.Tensor(STARTS), ms.Tensor(COLUMNS), ms.Tensor(ELEMENTS), (5, 4))), raised(
            lambda: CSRTensor(ms.Tensor(STARTS))
        ), raised(lambda: ops.csr_abs(1))],
    }  # fmt: skip
