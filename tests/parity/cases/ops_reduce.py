"""Operators that reduce, sort, search or accumulate along axes."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case

X = np.array([[[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]], [[2.0, 2.5, -3.5], [1.0, 0.0, 6.0]]], np.float32)
B = np.array([[True, False], [True, True]])


def tensor(array=X):
    return ms.Tensor(array)


@case(over={name: name for name in "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd".split()}, rtol=2e-6)
def reduce_primitive(name):
    operator = getattr(ops, name)
    return {
        "all": operator()(tensor()).asnumpy(),
        "axis": operator()(tensor(), 1).asnumpy(),
        "axes_kept": operator(keep_dims=True)(tensor(), (0, 2)).asnumpy(),
    }


@case(over={name: name for name in "ReduceAll ReduceAny".split()})
def reduce_logical(name):
    operator = getattr(ops, name)
    return {"all": operator()(tensor(B)).asnumpy(), "axis": operator(keep_dims=True)(tensor(B), 1).asnumpy()}


@case(over={name: name for name in "mean prod sum std var amax amin".split()}, rtol=5e-6, graph=True)
def reduce_function(name):
    function = getattr(ops, name)
    return {"all": function(tensor()).asnumpy(), "axis": function(tensor(), 1).asnumpy()}


@case(over={name: name for name in "mean sum max min std var prod".split()}, rtol=5e-6)
def reduce_method(name):
    method = getattr(tensor(), name)
    return {"all": method().asnumpy(), "axis": method(1).asnumpy() if name not in ("max", "min") else method(axis=1).asnumpy()}


@case(graph=True)
def logical():
    x = tensor(B)
    return {
        "all": ops.all(x).asnumpy(), "any": ops.any(x, axis=0).asnumpy(), "method": x.all(axis=1).asnumpy(),
        "any_method": x.any().asnumpy(),
    }


@case()
def extremes():
    values, indexes = ops.max(tensor(), axis=1)
    least, indices = ops.min(tensor(), axis=2, keepdims=True)
    return {
        "max": values.asnumpy(), "max_index": indexes.asnumpy(), "min": least.asnumpy(), "min_index": indices.asnumpy(),
        "argmax": ops.argmax(tensor(), dim=1).asnumpy(), "argmin": ops.argmin(tensor(), axis=1).asnumpy(),
        "argmax_all": ops.argmax(tensor()).asnumpy(), "Argmax": ops.Argmax(axis=1)(tensor()).asnumpy(),
        "Argmin": ops.Argmin(axis=2)(tensor()).asnumpy(), "method": tensor().argmax(axis=0).asnumpy(),
        "ArgMaxWithValue": ops.ArgMaxWithValue(axis=1)(tensor())[0].asnumpy(),
        "ArgMinWithValue": ops.ArgMinWithValue(axis=1, keep_dims=True)(tensor())[1].asnumpy(),
    }  # fmt: skip


@case(rtol=2e-6)
def accumulated():
    return {
        "cumsum": ops.cumsum(tensor(), 1).asnumpy(), "CumSum": ops.CumSum(exclusive=True)(tensor(), 2).asnumpy(),
        "method": tensor().cumsum(axis=0).asnumpy(), "logsumexp": ops.logsumexp(tensor(), 1).asnumpy(),
        "norm": ops.norm(tensor()).asnumpy(), "norm_axis": ops.norm(tensor(), ord=2, dim=1).asnumpy(),
        "count_nonzero": ops.count_nonzero(tensor()).asnumpy(), "L2Normalize": ops.L2Normalize(axis=1)(tensor(X[0])).asnumpy(),
    }  # fmt: skip


@case()
def ordered():
    values, indexes = ops.topk(tensor(), 2)
    top, indices = ops.TopK(sorted=True)(tensor(), 2)
    up, order = ops.sort(tensor(), axis=1)
    down, backwards = ops.Sort(axis=-1, descending=True)(tensor())
    return {
        "topk": values.asnumpy(), "topk_index": indexes.asnumpy(), "TopK": top.asnumpy(), "TopK_index": indices.asnumpy(),
        "sort": up.asnumpy(), "sort_index": order.asnumpy(), "Sort": down.asnumpy(), "Sort_index": backwards.asnumpy(),
        "argsort": ops.argsort(tensor(), axis=1).asnumpy(),
    }  # fmt: skip


@case(over={"i32": np.int32, "i64": np.int64, "u8": np.uint8, "f16": np.float16, "f64": np.float64, "bool": np.bool_}, rtol=1e-3)
def dtypes_of_sum_and_max(dtype):
    x = ms.Tensor(np.array([[1, 0, 3], [1, 2, 0]]).astype(dtype))
    results = {"sum": ops.sum(x).asnumpy()}
    if dtype is not np.bool_:
        results["max"] = x.max().asnumpy()
    if dtype in (np.float16, np.float64):
        results["mean"] = x.mean().asnumpy()
    return results
