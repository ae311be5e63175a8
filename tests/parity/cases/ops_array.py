"""Operators that move, join, pick, place or make elements."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
M = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)
INDEX = np.array([[0, 2], [1, 1]], np.int32)


def tensor(array=X):
    return ms.Tensor(array)


SHAPES = {
    "reshape": lambda x: ops.reshape(x, (4, -1)),
    "Reshape": lambda x: ops.Reshape()(x, (3, 8)),
    "transpose": lambda x: ops.transpose(x, (2, 0, 1)),
    "Transpose": lambda x: ops.Transpose()(x, (1, 0, 2)),
    "permute": lambda x: ops.permute(x, (2, 1, 0)),
    "swapaxes": lambda x: ops.swapaxes(x, 0, 2),
    "swapdims": lambda x: ops.swapdims(x, 0, 1),
    "movedim": lambda x: ops.movedim(x, 0, 2),
    "moveaxis": lambda x: ops.moveaxis(x, 1, 0),
    "expand_dims": lambda x: ops.expand_dims(x, 1),
    "ExpandDims": lambda x: ops.ExpandDims()(x, -1),
    "unsqueeze": lambda x: ops.unsqueeze(x, 0),
    "squeeze": lambda x: ops.squeeze(ops.expand_dims(x, 1)),
    "Squeeze": lambda x: ops.Squeeze(1)(ops.ExpandDims()(x, 1)),
    "squeeze_longer": lambda x: ops.squeeze(ops.expand_dims(x, 1), (0, 1)),
    "Squeeze_longer": lambda x: ops.Squeeze((0, 1))(ops.expand_dims(x, 1)),
    "flatten": lambda x: ops.flatten(x),
    "Flatten": lambda x: ops.Flatten()(x),
    "ravel": lambda x: ops.ravel(x),
    "broadcast_to": lambda x: ops.broadcast_to(x, (2, 2, 3, 4)),
    "BroadcastTo": lambda x: ops.BroadcastTo((2, 2, 3, 4))(x),
    "expand_as": lambda x: ops.expand_as(x, ops.zeros((2, 2, 3, 4))),
    "tile": lambda x: ops.tile(x, (1, 2, 1)),
    "Tile": lambda x: ops.Tile()(x, (2, 1, 1, 1)),
    "flip": lambda x: ops.flip(x, (1,)),
    "ReverseV2": lambda x: ops.ReverseV2(axis=[0, 2])(x),
    "repeat_interleave": lambda x: ops.repeat_interleave(x, 2, 1),
    "narrow": lambda x: ops.narrow(x, 2, 1, 2),
    "slice": lambda x: ops.slice(x, (0, 1, 1), (1, 2, 3)),
    "Slice": lambda x: ops.Slice()(x, (0, 0, 1), (2, 1, 2)),
    "strided_slice": lambda x: ops.strided_slice(x, (0, 0, 0), (2, 3, 4), (1, 2, 3)),
    "StridedSlice": lambda x: ops.StridedSlice()(x, (0, 0, 0), (2, 3, 4), (1, 1, 2)),
    "diagonal": lambda x: ops.diagonal(x, 0, 1, 2),
    "tril": lambda x: ops.tril(x),
    "triu": lambda x: ops.triu(x, 1),
    "Tril": lambda x: ops.Tril()(x),
    "Triu": lambda x: ops.Triu()(x),
    "method_view": lambda x: x.view(6, 4),
    "method_transpose": lambda x: x.transpose(0, 2, 1),
    "method_T": lambda x: x.T,
    "index": lambda x: x[1, ::2, -1],
    "index_new_axis": lambda x: x[:, None, ..., 1:3],
    "index_list": lambda x: x[[1, 0], [0, 2]],
    "index_tensor": lambda x: x[ms.Tensor([1, 1, 0])],
    "index_mask": lambda x: x[x > 12],
}


@case(over=SHAPES, graph=True)
def shaped(function):
    return {"output": function(tensor()).asnumpy()}


@case()
def sizes():
    x = tensor()
    return {"shape": list(ops.shape(x)), "Shape": list(ops.Shape()(x)), "rank": ops.rank(x), "Rank": ops.Rank()(x), "size": ops.size(x),
            "Size": ops.Size()(x), "ndim": x.ndim, "tensor_size": x.size, "strides": list(x.strides), "itemsize": x.itemsize}  # fmt: skip


@case(graph=True)
def joined_and_parted():
    x = tensor()
    parts, halves = ops.split(x, 2, axis=2), ops.chunk(x, 2, axis=2)
    parts_of_primitive = ops.Split(2, 2)(x)
    return {
        "concat": ops.concat((x, x), 1).asnumpy(), "cat": ops.cat((x, x)).asnumpy(), "Concat": ops.Concat(2)((x, x)).asnumpy(),
        "stack": ops.stack((x, x), 1).asnumpy(), "Stack": ops.Stack(axis=-1)((x, x)).asnumpy(),
        "split": parts[1].asnumpy(), "Split": parts_of_primitive[1].asnumpy(), "chunk": halves[0].asnumpy(),
        "unbind": ops.unbind(x, 1)[2].asnumpy(), "unstack": ops.unstack(x, 0)[1].asnumpy(), "Unstack": ops.Unstack(axis=1)(x)[0].asnumpy(),
        "count": [len(parts), len(parts_of_primitive), len(halves)],
    }  # fmt: skip


@case(graph=True)
def picked():
    x, index = tensor(M), tensor(INDEX)
    return {
        "gather": ops.gather(x, ms.Tensor([1, 0]), 0).asnumpy(), "Gather": ops.Gather()(x, ms.Tensor([2, 0]), 1).asnumpy(),
        "gather_d": ops.gather_d(x, 1, index).asnumpy(), "GatherD": ops.GatherD()(x, 1, index).asnumpy(),
        "gather_elements": ops.gather_elements(x, 1, index).asnumpy(), "gather_nd": ops.gather_nd(x, index * 0 + 1).asnumpy(),
        "GatherNd": ops.GatherNd()(x, ms.Tensor([[0, 2], [1, 0]])).asnumpy(),
        "index_select": ops.index_select(x, 1, ms.Tensor([2, 1])).asnumpy(),
        "select": ops.select(x > 0, x, x * 0).asnumpy(), "Select": ops.Select()(x > 0, x, ops.zeros_like(x)).asnumpy(),
        "where": ops.where(x > 0, x, ms.Tensor(-1.0)).asnumpy(),
        "masked_fill": ops.masked_fill(x, x < 0, 9.0).asnumpy(), "MaskedFill": ops.MaskedFill()(x, x < 0, ms.Tensor(9.0)).asnumpy(),
    }  # fmt: skip


@case()
def picked_by_value():
    x = tensor(M)
    return {"masked_select": ops.masked_select(x, x > 0).asnumpy(), "nonzero": ops.nonzero(x > 0).asnumpy()}


@case(graph=True)
def placed():
    x = tensor(M)
    where = ms.Tensor([[0, 1], [1, 2]])
    values = ms.Tensor(np.array([10.0, 20.0], np.float32))
    return {
        "one_hot": ops.one_hot(ms.Tensor([1, 0, 2]), 3, ms.Tensor(1.0), ms.Tensor(0.0)).asnumpy(),
        "OneHot": ops.OneHot()(ms.Tensor([1, 0]), 3, ms.Tensor(1.0), ms.Tensor(0.0)).asnumpy(),
        "scatter_nd": ops.scatter_nd(where, values, (2, 3)).asnumpy(), "ScatterNd": ops.ScatterNd()(where, values, (2, 3)).asnumpy(),
        "tensor_scatter_add": ops.tensor_scatter_add(x, where, values).asnumpy(),
        "TensorScatterAdd": ops.TensorScatterAdd()(x, where, values).asnumpy(),
        "tensor_scatter_update": ops.tensor_scatter_update(x, where, values).asnumpy(),
        "TensorScatterUpdate": ops.TensorScatterUpdate()(x, where, values).asnumpy(),
        "unsorted_segment_sum": ops.unsorted_segment_sum(x, ms.Tensor([1, 0]), 2).asnumpy(),
        "UnsortedSegmentSum": ops.UnsortedSegmentSum()(x, ms.Tensor([0, 0]), 2).asnumpy(),
        "diag": ops.diag(ms.Tensor(np.array([1.0, 2.0], np.float32))).asnumpy(),
    }  # fmt: skip


@case()
def written():
    x = tensor(M.copy())
    x[0, 1] = 5
    x[1] = ms.Tensor(np.array([7.0, 8.0, 9.0], np.float32))
    y = tensor(M.copy())
    y[y < 0] = 0
    z = tensor(X.copy())
    z[:, 1:, ::2] = 1.5
    return {"x": x.asnumpy(), "y": y.asnumpy(), "z": z.asnumpy()}


@case()
def made():
    return {
        "zeros": ops.zeros((2, 3), ms.int32).asnumpy(), "ones": ops.ones((2,), ms.float16).asnumpy(), "full": ops.full(
            (2, 2), 3.5, dtype=ms.float32,
        ).asnumpy(),
        "Zeros": ops.Zeros()((2,), ms.float32).asnumpy(), "Ones": ops.Ones()((2,), ms.int64).asnumpy(),
        "fill": ops.fill(ms.float32, (2,), 4).asnumpy(), "Fill": ops.Fill()(ms.float32, (2, 2), 1).asnumpy(),
        "full_like": ops.full_like(tensor(M), 2).asnumpy(), "eye": ops.eye(2, 3, ms.float32).asnumpy(),
        "Eye": ops.Eye()(2, 2, ms.int32).asnumpy(),
        "arange": ops.arange(1, 7, 2).asnumpy(), "range": ops.range(0, 5, 2).asnumpy(),
        "Range": ops.Range()(ms.Tensor(0), ms.Tensor(4), ms.Tensor(1)).asnumpy(),
        "linspace": ops.linspace(0.0, 1.0, 5).asnumpy(),
        "meshgrid": ops.meshgrid(ms.Tensor([1, 2]), ms.Tensor([3, 4, 5]))[0].asnumpy(),
    }  # fmt: skip


@case(rtol=1e-5, graph=True)
def multiplied():
    a, b = tensor(M), tensor(M.T.copy())
    batch = tensor(X)
    return {
        "matmul": ops.matmul(a, b).asnumpy(), "MatMul": ops.MatMul(transpose_b=True)(a, a).asnumpy(), "mm": ops.mm(a, b).asnumpy(),
        "BatchMatMul": ops.BatchMatMul(transpose_b=True)(batch, batch).asnumpy(), "bmm": ops.bmm(batch, batch.transpose(0, 2, 1)).asnumpy(),
        "dot": ops.dot(a, b).asnumpy(), "outer": ops.outer(a[0], a[1]).asnumpy(), "dense": ops.dense(a, a).asnumpy(),
        "bias_add": ops.bias_add(a, a[0]).asnumpy(), "BiasAdd": ops.BiasAdd()(a, a[1]).asnumpy(), "dunder": (a @ b).asnumpy(),
        "trace": ops.trace(ops.matmul(a, b)).asnumpy(), "t": ops.t(a).asnumpy(),
        "inverse": ops.inverse(tensor(np.array([[2.0, 1.0], [1.0, 3.0]], np.float32))).asnumpy(),
    }  # fmt: skip


@case(graph=True)
def padded():
    x = tensor(M)
    return {"pad": ops.pad(x, (1, 2), value=9.0).asnumpy(), "Pad": ops.Pad(((1, 0), (0, 2)))(x).asnumpy(),
            "MirrorPad": ops.MirrorPad(mode="REFLECT")(x, ms.Tensor([[1, 1], [2, 0]])).asnumpy()}  # fmt: skip
