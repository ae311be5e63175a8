"""Values put into Parameters and Tensors at indexes, segments, sparse values."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case, raised
from parity.forms import apply_writing, probe

M = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [-1.0, 0.5, 2.0]], np.float32)
ROWS = np.array([2, 0], np.int32)
TWICE = np.array([[1, 3], [1, 0]], np.int32)
NEW = np.array([[0.5, 2.0, -3.0], [4.0, 0.25, 7.0]], np.float32)
MORE = np.arange(1, 13, dtype=np.float32).reshape(2, 2, 3) / 4
POINTS = np.array([[0, 1], [3, 2], [2, 0]], np.int32)
REPEATED = np.array([[0, 1], [0, 1], [2, 0]], np.int32)
VALUES = np.array([9.0, -2.0, 0.5], np.float32)
SORTED = np.array([0, 0, 2, 2], np.int32)
MIXED = np.array([1, 0, 1, -1], np.int32)
ROWS_WRITTEN = "ScatterUpdate ScatterAdd ScatterSub ScatterMul ScatterDiv ScatterMax ScatterMin".split()
POINTS_WRITTEN = "ScatterNdUpdate ScatterNdAdd ScatterNdSub ScatterNdMul ScatterNdDiv ScatterNdMax ScatterNdMin".split()
ROW_FUNCTIONS = "scatter_update scatter_add scatter_mul scatter_div scatter_max scatter_min".split()
POINT_FUNCTIONS = (
    "scatter_nd_update scatter_nd_add scatter_nd_sub scatter_nd_mul scatter_nd_div scatter_nd_max scatter_nd_min"
).split()
COPYING = "TensorScatterSub TensorScatterMul TensorScatterDiv TensorScatterMax TensorScatterMin".split()


def write(name, *arguments, value=M, is_function=False, times=1):
    operator = getattr(ops, name)
    return lambda: apply_writing((lambda: operator) if is_function else operator, value, arguments=arguments, times=times)


PARAMETERS = {
    **{name: write(name, ROWS, NEW) for name in ROWS_WRITTEN},
    **{f"{name}_twice": write(name, TWICE, MORE) for name in ROWS_WRITTEN[1:]},
    **{name: write(name, POINTS, VALUES) for name in POINTS_WRITTEN},
    **{f"{name}_rows": write(name, ROWS[:, None], NEW) for name in POINTS_WRITTEN},
    **{name: write(name, ROWS, NEW, is_function=True, times=2) for name in ROW_FUNCTIONS},
    **{name: write(name, POINTS, VALUES, is_function=True, times=2) for name in POINT_FUNCTIONS},
    **{f"{name}_integers": write(
        name, POINTS, VALUES.astype(np.int32) + 1, value=M.astype(np.int32), is_function=True,
    ) for name in POINT_FUNCTIONS if name not in ("scatter_nd_mul", "scatter_nd_div")},
    "index_add": lambda: apply_writing(lambda: lambda p, i, y: ops.index_add(p, i, y, 0), M, arguments=(ROWS, NEW)),
    "IndexAdd": lambda: apply_writing(lambda: ops.IndexAdd(1), M, arguments=(np.array([2], np.int32), M[:, :1])),
    "inplace_index_add": lambda: apply_writing(lambda: lambda p, i, y: ops.inplace_index_add(p, i, y, 0), M, arguments=(ROWS, NEW)),
    "InplaceIndexAdd": lambda: apply_writing(lambda: ops.InplaceIndexAdd(0), M, arguments=(ROWS, NEW)),
}

COPIES = {
    **{name: (lambda name=name: probe(getattr(ops, name), M, POINTS, VALUES)) for name in (
        "tensor_scatter_sub tensor_scatter_max tensor_scatter_min tensor_scatter_add"
    ).split()},
    **{name: (lambda name=name: probe(getattr(ops, name), M, POINTS, VALUES, by=())) for name in (
        "tensor_scatter_mul tensor_scatter_div"
    ).split()},
    **{name: (lambda name=name: probe(getattr(ops, name)(), M, ROWS[:, None], NEW, by=())) for name in COPYING},
    **{f"{name}_again": (lambda name=name: probe(getattr(ops, name)(), M, REPEATED, VALUES, by=())) for name in COPYING},
    "scatter": lambda: probe(ops.scatter, M, 1, np.array([[0, 2], [1, 0]]), NEW[:, :2], by=()),
    "scatter_axis": lambda: probe(ops.scatter, M, 0, np.array([[0, 2, 3]]), NEW[:1], by=()),
    "tensor_scatter_elements": lambda: probe(ops.tensor_scatter_elements, M, np.array([[0, 2, 3]], np.int32), NEW[:1]),
    "tensor_scatter_elements_add": lambda: probe(
        ops.tensor_scatter_elements, M, np.array([[0, 0], [1, -1]], np.int32), NEW[:, :2], 1, "add",
    ),
    "TensorScatterElements": lambda: probe(ops.TensorScatterElements(0, "add"), M, np.array([[0, 2, 3]]), NEW[:1]),
    "ScatterAddWithAxis": lambda: probe(ops.ScatterAddWithAxis(0), M, np.array([[0, 1, 1]], np.int32), NEW[:1], by=()),
    "index_fill": lambda: probe(ops.index_fill, M, 0, ROWS, 9.0, by=()),
    "IndexFill": lambda: probe(ops.IndexFill(), M, 1, np.array([1], np.int32), np.array(2.0, np.float32), by=(0,)),
    "IndexPut": lambda: probe(ops.IndexPut(0), M, VALUES, [np.array([0, 3, 2]), np.array([1, 2, 0])], by=()),
    "IndexPut_add": lambda: probe(ops.IndexPut(1), M, VALUES, [np.array([0, 0, 2]), np.array([1, 1, 0])], by=()),
    "inplace_add": lambda: probe(ops.inplace_add, M, NEW, (1, 3), by=()),
    "inplace_sub": lambda: probe(ops.inplace_sub, M, NEW[:1], 1, by=()),
    "inplace_update": lambda: probe(ops.inplace_update, M, NEW, (2, 0), by=()),
    "InplaceAdd": lambda: probe(ops.InplaceAdd((0, 1)), M, NEW, by=()),
    "InplaceSub": lambda: probe(ops.InplaceSub((3, 1)), M, NEW, by=()),
    "InplaceUpdate": lambda: probe(ops.InplaceUpdate((0, 1)), M, NEW, by=()),
    "InplaceUpdateV2": lambda: probe(ops.InplaceUpdateV2(), M, (0, 1), NEW, by=()),
    "select_scatter": lambda: probe(ops.select_scatter, M, NEW[0], 0, 1),
    "slice_scatter": lambda: probe(ops.slice_scatter, M, NEW, 0, 1, 3),
    "slice_scatter_step": lambda: probe(ops.slice_scatter, M, M[:, :2] * 2, 1, 0, 3, 2),
    "unsorted_segment_max": lambda: probe(ops.unsorted_segment_max, M, MIXED, 2),
    "unsorted_segment_min": lambda: probe(ops.unsorted_segment_min, M, MIXED, 3),
    "unsorted_segment_prod": lambda: probe(ops.unsorted_segment_prod, M, MIXED, 2, by=()),
    "UnsortedSegmentMax": lambda: probe(ops.UnsortedSegmentMax(), M.astype(np.int32), MIXED, 3, by=()),
    "UnsortedSegmentMin": lambda: probe(
        ops.UnsortedSegmentMin(), M, np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1]], np.int32), 2, by=(),
    ),
    "UnsortedSegmentProd": lambda: probe(ops.UnsortedSegmentProd(), M, MIXED, 2, by=()),
    "SegmentSum": lambda: probe(ops.SegmentSum(), M, SORTED, by=()),
    "SegmentMean": lambda: probe(ops.SegmentMean(), M, SORTED, by=()),
    "SegmentMax": lambda: probe(ops.SegmentMax(), M, SORTED, by=()),
    "SegmentMin": lambda: probe(ops.SegmentMin(), M, SORTED, by=()),
    "SegmentProd": lambda: probe(ops.SegmentProd(), M, SORTED, by=()),
    "sparse_segment_mean": lambda: probe(ops.sparse_segment_mean, M, np.array([0, 1, 1], np.int32), np.array([0, 0, 1], np.int32), by=()),
    "SparseToDense": lambda: probe(ops.SparseToDense(), POINTS, VALUES, (4, 3), by=()),
    "SparseTensorDenseMatmul": lambda: probe(ops.SparseTensorDenseMatmul(), POINTS.astype(np.int64), VALUES, (4, 3), M[:3], by=()),
    "SparseTensorDenseMatmul_adjoint": lambda: probe(
        ops.SparseTensorDenseMatmul(adjoint_st=True), POINTS.astype(np.int64), VALUES, (4, 3), M, by=(),
    ),
    "SparseTensorDenseAdd": lambda: probe(ops.SparseTensorDenseAdd(), POINTS.astype(np.int64), VALUES, np.array([4, 3]), M, by=()),
    "SparseSlice": lambda: probe(
        ops.SparseSlice(), POINTS.astype(np.int64), VALUES, np.array([4, 3]), np.array([0, 0]), np.array([3, 3]), by=(),
    ),
    "coalesce": lambda: probe(ops.coalesce, np.array([[0, 0, 1], [1, 1, 0]]), VALUES, np.array([2, 2]), by=()),
}


@case(over=PARAMETERS, rtol=1e-6, graph=True)
def parameter(ask):
    return ask()


@case(over=COPIES, rtol=1e-6, graph=True)
def copy(ask):
    return ask()


@case()
def refused():
    m, new = ms.Tensor(M), ms.Tensor(NEW)
    return {
        "a list of rows": raised(lambda: ops.inplace_add(m, new, [0, 1])),
        "shape of updates": raised(lambda: ops.tensor_scatter_sub(m, ms.Tensor(POINTS), new)),
        "reduction": raised(lambda: ops.tensor_scatter_elements(m, ms.Tensor([[0]]), ms.Tensor([[1.0]]), 0, "mean")),
    }


METHODS = {
    "index_fill": lambda m: m.index_fill(0, ms.Tensor(ROWS), 3.0),
    "scatter": lambda m: m.scatter(1, ms.Tensor([[0], [1]]), ms.Tensor(NEW[:, :1])),
    "select_scatter": lambda m: m.select_scatter(ms.Tensor(NEW[0]), 0, 1),
    "slice_scatter": lambda m: m.slice_scatter(ms.Tensor(NEW), 0, 1, 3),
    "index_add": lambda m: m.index_add(0, ms.Tensor(ROWS), ms.Tensor(NEW)),
}


@case(over=METHODS)
def method(call):
    return {"output": call(ms.Tensor(M)).asnumpy()}
