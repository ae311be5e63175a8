"""Values put into Parameters and Tensors at indexes, segments, sparse values."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case, raised
from parity.forms import probe, written

M = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [-1.0, 0.5, 2.0]], np.float32)
ROWS = np.array([2, 0], np.int32)
TWICE = np.array([[1, 3], [1, 0]], np.int32)
NEW = np.array([[0.5, 2.0, -3.0], [4.0, 0.25, 7.0]], np.float32)
MORE = np.arange(1, 13, dtype=np.float32).reshape(2, 2, 3) / 4
POINTS = np.array([[0, 1], [3, 2], [2, 0]], np.int32)
AGAIN = np.array([[0, 1], [0, 1], [2, 0]], np.int32)
VALUES = np.array([9.0, -2.0, 0.5], np.float32)
SORTED = np.array([0, 0, 2, 2], np.int32)
MIXED = np.array([1, 0, 1, -1], np.int32)
KINDS = "update add sub mul div max min".split()
SAFE = "add sub mul div max min".split()

PARAMETERS = {
    **{f"Scatter{how}": (lambda how=how: written(getattr(ops, f"Scatter{how.title()}"), M, arguments=(ROWS, NEW))) for how in KINDS},
    **{f"Scatter{how}_twice": (lambda how=how: written(
        getattr(ops, f"Scatter{how.title()}"), M, arguments=(TWICE, MORE),
    )) for how in SAFE},
    **{f"ScatterNd{how}": (lambda how=how: written(
        getattr(ops, f"ScatterNd{how.title()}"), M, arguments=(POINTS, VALUES),
    )) for how in KINDS},
    **{f"ScatterNd{how}_rows": (lambda how=how: written(
        getattr(ops, f"ScatterNd{how.title()}"), M, arguments=(ROWS[:, None], NEW),
    )) for how in KINDS},
    **{f"scatter_{how}": (lambda how=how: written(lambda: getattr(ops, f"scatter_{how}"), M, arguments=(ROWS, NEW), times=2)) for how in (
        "update add mul div max min"
    ).split()},
    **{f"scatter_nd_{how}": (lambda how=how: written(
        lambda: getattr(ops, f"scatter_nd_{how}"), M, arguments=(POINTS, VALUES), times=2,
    )) for how in KINDS},
    **{f"scatter_nd_{how}_integers": (lambda how=how: written(
        lambda: getattr(ops, f"scatter_nd_{how}"), M.astype(np.int32), arguments=(POINTS, VALUES.astype(np.int32) + 1),
    )) for how in "update add sub max min".split()},
    "index_add": lambda: written(lambda: lambda p, i, y: ops.index_add(p, i, y, 0), M, arguments=(ROWS, NEW)),
    "IndexAdd": lambda: written(lambda: ops.IndexAdd(1), M, arguments=(np.array([2], np.int32), M[:, :1])),
    "inplace_index_add": lambda: written(lambda: lambda p, i, y: ops.inplace_index_add(p, i, y, 0), M, arguments=(ROWS, NEW)),
    "InplaceIndexAdd": lambda: written(lambda: ops.InplaceIndexAdd(0), M, arguments=(ROWS, NEW)),
}

COPIES = {
    **{f"tensor_scatter_{how}": (lambda how=how: probe(getattr(ops, f"tensor_scatter_{how}"), M, POINTS, VALUES)) for how in (
        "add sub max min"
    ).split()},
    **{f"tensor_scatter_{how}": (lambda how=how: probe(getattr(ops, f"tensor_scatter_{how}"), M, POINTS, VALUES, by=())) for how in (
        "mul div"
    ).split()},
    **{f"TensorScatter{how}": (lambda how=how: probe(
        getattr(ops, f"TensorScatter{how.title()}")(), M, ROWS[:, None], NEW, by=(),
    )) for how in (
        "sub mul div max min"
    ).split()},
    **{f"TensorScatter{how}_again": (lambda how=how: probe(
        getattr(ops, f"TensorScatter{how.title()}")(), M, AGAIN, VALUES, by=(),
    )) for how in (
        "sub mul div max min"
    ).split()},
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
