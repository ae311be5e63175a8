"""Methods of Tensors under both spellings of their keywords, and indexes of every kind, read and written."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor
from parity.case import case

BOX = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
I, B = np.array([1, 0]), np.array([True, False])
METHODS = {
    "sum_axis": lambda x: x.sum(axis=(0, 1)), "sum_dim": lambda x: x.sum(dim=0), "sum_keep": lambda x: x.sum(0, True),
    "sum_dtype": lambda x: x.sum(dtype=ms.float16), "mean_dim": lambda x: x.mean(dim=0, keepdim=True),
    "mean_keep": lambda x: x.mean(0, True),
    "prod": lambda x: x.prod(0, True), "argmax_dim": lambda x: x.argmax(dim=0), "argmax_keep": lambda x: x.argmax(axis=0, keepdims=True),
    "argmin": lambda x: x.argmin(axis=0), "max": lambda x: x.max(), "max_position": lambda x: x.max(0),
    "max_position_keep": lambda x: x.max(0, True),
    "max_dim": lambda x: x.max(dim=1), "max_axis": lambda x: x.max(axis=0, keepdims=True), "max_axes": lambda x: x.max(axis=(0, 1)),
    "min_position": lambda x: x.min(1, False), "min_dim": lambda x: x.min(dim=1, keepdim=True), "min_axis": lambda x: x.min(axis=2),
    "min_indices": lambda x: x.min(axis=0, return_indices=True), "std": lambda x: x.std(axis=0, ddof=1, keepdims=True),
    "std_dim": lambda x: x.std(dim=0),
    "var": lambda x: x.var(0, 0), "all": lambda x: x.all(axis=0, keep_dims=True), "any": lambda x: x.any(),
    "cumsum": lambda x: x.cumsum(axis=1),
    "cumsum_dim": lambda x: x.cumsum(dim=1), "sort": lambda x: x.sort(axis=1, descending=True), "sort_dim": lambda x: x.sort(dim=1),
    "argsort": lambda x: x.argsort(axis=1), "split": lambda x: x.split(1, axis=1), "split_dim": lambda x: x.split(1, dim=1),
    "take": lambda x: x.take(Tensor(I)), "take_axis": lambda x: x.take(Tensor(I), axis=2), "take_far": lambda x: x.take(Tensor([30])),
    "ptp": lambda x: x.ptp(), "ptp_axis": lambda x: x.ptp(axis=0), "fill": lambda x: x.fill(3), "gather": lambda x: x.gather(Tensor(I), 0),
    "gather_dim": lambda x: x.gather(1, Tensor([[[0]]])), "add_alpha": lambda x: x.add(1, alpha=2),
    "sub_alpha": lambda x: x.sub(x, alpha=2),
    "diag": lambda x: x[0].diag(), "fmod": lambda x: x.fmod(3), "softmax": lambda x: x.softmax(axis=1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 0),
}
READ = {
    "int": lambda x: x[-1], "two": lambda x: x[0, 1], "three": lambda x: x[0, 1, 2], "dots": lambda x: x[..., 0],
    "none": lambda x: x[:, None],
    "slice": lambda x: x[::2, 1:3], "empty": lambda x: x[5:], "tensor": lambda x: x[Tensor(I)],
    "tensors": lambda x: x[Tensor(I), Tensor(I)],
    "middle": lambda x: x[:, Tensor(I)], "apart": lambda x: x[Tensor(I), :, Tensor(I)], "int_apart": lambda x: x[1, :, Tensor(I)],
    "scalar_apart": lambda x: x[Tensor(1), :, Tensor(I)], "int_beside": lambda x: x[:, 1, Tensor(I)], "list": lambda x: x[[1, 0]],
    "lists": lambda x: x[[[0, 1], [1, 0]]], "list_of_tensors": lambda x: x[[Tensor(I), Tensor(I)]],
    "list_of_slice": lambda x: x[[slice(0, 1), 0]],
    "mask": lambda x: x[Tensor(B)], "mask_list": lambda x: x[[True, False]], "compared": lambda x: x[x > 5], "true": lambda x: x[True],
    "scalar": lambda x: x[Tensor(1)], "mask_apart": lambda x: x[Tensor(B), :, Tensor(I)],
}
WRITES = {
    "int": (0, 5), "two": ((0, 1), np.arange(4, dtype=np.float32)), "column": ((slice(None), 0), 1), "list": ([1], 0),
    "dots": (Ellipsis, 3),
    "step": ((slice(None), slice(None, None, 2)), 7), "none": (None, 1), "element": ((0, 0, 0), 9), "truth": (0, True),
}


@case(over=METHODS, graph=True)
def method(call):
    result = call(Tensor(BOX))
    return {str(i): part.asnumpy() for i, part in enumerate(result if isinstance(result, tuple) else [result])}


@case(over=READ, graph=True)
def read(call):
    return {"part": call(Tensor(BOX)).asnumpy()}


@case(over=WRITES, graph=True)
def written(pair):
    index, value = pair
    x = Tensor(BOX)
    x[index] = Tensor(value) if isinstance(value, np.ndarray) else value
    return {"whole": x.asnumpy()}


@case()
def gradients_at_ties():
    tied = Tensor(np.array([1.0, 1.0], np.float32))
    odd = Tensor(np.array([3.5], np.float32))
    return {
        "max_axis": ms.grad(lambda a: a.max(axis=0))(tied).asnumpy(), "max": ms.grad(lambda a: a.max())(tied).asnumpy(),
        "floor_divide": ms.grad(lambda a: a // 2.0)(odd).asnumpy(), "floor_div": ms.grad(lambda a: ms.ops.floor_div(a, 2.0))(odd).asnumpy(),
        "trunc": ms.grad(lambda a: ms.ops.trunc(a))(odd).asnumpy(), "sign": ms.grad(lambda a: ms.ops.sign(a))(odd).asnumpy(),
    }


@case()
def parameters_of_numbers():
    return {str(value): str(ms.Parameter(value, name="p").dtype) for value in (3, 3.0, [1, 2], [1.0])}
