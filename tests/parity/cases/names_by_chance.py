"""Names without a case that were chosen by chance, in spellings of 1.x and 2.x: their answers, and what they refuse."""
from __future__ import annotations

import mindspore as ms
import mindspore.dataset as ds
import mindspore.numpy as mnp
import mindspore.ops.operations as P
import numpy as np
from mindspore import Parameter, Tensor, mutable, nn, ops
from parity.case import case

RANDOM = np.random.RandomState(3)
A = RANDOM.randn(3, 4).astype(np.float32)
IMAGES = RANDOM.rand(2, 3, 6, 6).astype(np.float32)
BLOCKS = RANDOM.rand(4, 1, 2, 2).astype(np.float32)
COLUMNS = RANDOM.rand(1, 2, 4, 9).astype(np.float32)
T = Tensor


def csr():
    return ms.CSRTensor(T([0, 1, 3, 4], ms.int32), T([0, 1, 3, 2], ms.int32), T([1.0, 2.0, 3.0, 4.0], ms.float32), (3, 4))


def coo():
    return ms.COOTensor(T([[0, 1], [2, 3]], ms.int32), T([1.5, -2.0], ms.float32), (3, 4))


def numbers(*values, **options):
    return ds.NumpySlicesDataset(list(values), shuffle=False, **options)


def rows(dataset):
    return [[part.tolist() for part in row] for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def lengths():
    for length in (1, 2, 5, 6, 3):
        yield (np.arange(length),)


class Summed(nn.LossBase):
    """A loss that a program defines."""

    def construct(self, x, y):
        return self.get_loss(ops.abs(x - y))


class Empty(nn.Cell):
    """A Cell without Parameters."""

    def construct(self, x):
        return x


TENSORS = {
    "AdaptiveAvgPool2D": lambda: P.AdaptiveAvgPool2D((2, None))(T(IMAGES)),
    "AvgPool": lambda: P.AvgPool(kernel_size=2, strides=2, pad_mode="valid")(T(IMAGES)),
    "MaxPool": lambda: P.MaxPool(kernel_size=3, strides=2, pad_mode="same")(T(IMAGES)),
    "MaxPoolWithArgmax": lambda: P.MaxPoolWithArgmax(kernel_size=2, strides=2)(T(IMAGES)),
    "batch_to_space_nd": lambda: ops.batch_to_space_nd(T(BLOCKS), [2, 2], [[0, 0], [0, 0]]),
    "Col2Im": lambda: P.Col2Im(kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[2, 2])(T(COLUMNS), T([6, 6], ms.int32)),
    "col2im": lambda: ops.col2im(T(COLUMNS), T([6, 6], ms.int32), [2, 2], [1, 1], [0, 0], [2, 2]),
    "Im2Col": lambda: P.Im2Col(ksizes=2, strides=2)(T(IMAGES)),
    "count_nonzero": lambda: ops.count_nonzero(T([[0.0, 1, 2], [0, 0, 3]], ms.float32), axis=[0, 1], keep_dims=True, dtype=ms.int32),
    "EmbeddingLookup": lambda: P.EmbeddingLookup()(T(A), T([[3, 1], [2, 9]], ms.int32), 1),
    "Expand": lambda: P.Expand()(T(A[:, :1]), T([3, 4], ms.int32)),
    "ExtractGlimpse": lambda: P.ExtractGlimpse(centered=True, normalized=False, uniform_noise=False, noise="zero")(
        T(IMAGES[:, :1].transpose(0, 2, 3, 1).copy()), T([3, 3], ms.int32), T([[1.0, 1], [2, 2]], ms.float32)),
    "fmax": lambda: ops.fmax(T([1, np.nan, 3], ms.float32), T([2, 2, np.nan], ms.float32)),
    "lerp": lambda: ops.lerp(T(A), T(A + 1), 0.25),
    "nextafter": lambda: ops.nextafter(T([0.0, 1], ms.float32), T([1.0, 0], ms.float32)),
    "padding": lambda: ops.padding(T(A[:, :1]), 4),
    "ResizeNearestNeighbor": lambda: P.ResizeNearestNeighbor((4, 9), True)(T(IMAGES)),
    "ResizeBilinearV2": lambda: ops.ResizeBilinearV2(False, True)(T(IMAGES), (3, 5)),
    "ResizeNearestNeighborV2": lambda: ops.ResizeNearestNeighborV2(False, True)(T(IMAGES), T([3, 5], ms.int32)),
    "fmod": lambda: ops.fmod(T([-5.0, 5, 3.5], ms.float32), 3),
    "csr_to_dense": lambda: ops.csr_to_dense(csr()),
    "csr_softmax": lambda: ops.csr_softmax(csr(), ms.float32).values,
    "dense_to_sparse_coo": lambda: ops.dense_to_sparse_coo(T([[1, 0], [0, 2]], ms.float32)).indices,
    "dense_to_sparse_csr": lambda: ops.dense_to_sparse_csr(T([[1, 0], [0, 2]], ms.float32)).indptr,
    "coo_tensor_get_values": lambda: ops.coo_tensor_get_values(coo()),
    "coo_tensor_get_indices": lambda: ops.coo_tensor_get_indices(coo()),
    "csr_tensor_get_indptr": lambda: ops.csr_tensor_get_indptr(csr()),
    "csr_tensor_get_indices": lambda: ops.csr_tensor_get_indices(csr()),
    "csr_tensor_get_values": lambda: ops.csr_tensor_get_values(csr()),
    "COOTensor.astype": lambda: coo().astype(ms.float16).values,
    "CSRTensor.abs": lambda: csr().abs().values,
    "bucketize": lambda: ops.bucketize(T(A), [-0.5, 0.0, 0.5], right=True),
    "take": lambda: T(A).take(T([0, 5, -1], ms.int32), mode="wrap"),
    "type_as": lambda: T(A).type_as(T([1], ms.int32)),
    "tuple_to_array": lambda: ops.tuple_to_array((1, 2, 3)),
    "conv3d_transpose": lambda: ops.conv3d_transpose(T(IMAGES[:1, :2, :3, :3, None]), T(np.ones((2, 1, 2, 2, 2), np.float32))),
    "stop_gradient": lambda: ops.stop_gradient(T(A)),
    "from_numpy": lambda: ms.from_numpy(A),
    "frombuffer": lambda: ms.frombuffer(bytearray(A.tobytes()), dtype=ms.float32, count=3, offset=4),
    "divmod": lambda: mnp.divmod(T(A), T([0.5, 1, 2, 3], ms.float32)),
    "all_finite": lambda: ms.amp.all_finite((T(A), T([np.inf], ms.float32))),
    "LossBase": lambda: Summed("sum")(T(A), T(A * 2)),
    "ScalarAffine": lambda: nn.probability.bijector.ScalarAffine(2.0, 3.0).forward(T([1.0, 2], ms.float32)),
    "Normal.log_prob": lambda: nn.probability.distribution.Normal(1.0, 2.0, dtype=ms.float32).log_prob(T([1.0, 2], ms.float32)),
    "Dropout(keep_prob)": lambda: nn.Dropout(keep_prob=1.0).set_train()(T(A)),
    "zeros_like": lambda: ops.composite.multitype_ops.zeros_like(T(A)),
    "loss scale cells": lambda: (
        T([nn.FixedLossScaleUpdateCell(128).get_loss_scale()]), T([nn.DynamicLossScaleUpdateCell(2**8, 2, 1000).get_loss_scale()])),
}


@case(over=TENSORS, rtol=1e-5, atol=1e-6, graph=True)
def tensor(call):
    result = call()
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return {f"{index} {part.dtype}": part.asnumpy() for index, part in enumerate(parts)}


def set_seed():
    ms.set_seed(7)
    return ms.get_seed()


def algorithm():
    ms.set_algo_parameters(fully_use_devices=False)
    value = ms.get_algo_parameters("fully_use_devices")
    ms.reset_algo_parameters()
    return value


VALUES = {
    "CSRTensor": lambda: [csr().shape, str(csr().dtype), csr().size, csr().itemsize, csr().ndim],
    "COOTensor": lambda: [coo().shape, str(coo().dtype), coo().size, coo().itemsize, coo().ndim],
    "coo_tensor_get_dense_shape": lambda: ops.coo_tensor_get_dense_shape(coo()),
    "csr_tensor_get_dense_shape": lambda: ops.csr_tensor_get_dense_shape(csr()),
    "get_metrics": lambda: sorted(nn.get_metrics({"accuracy", "loss"})),
    "names": lambda: sorted(ms.train.names()),
    "dtype_to_pytype": lambda: [str(ms.dtype_to_pytype(t)) for t in (ms.int8, ms.float16, ms.bool_, ms.list_, ms.tuple_)],
    "pytype_to_dtype": lambda: [str(ms.pytype_to_dtype(t)) for t in (int, float, bool, np.int16, np.float64)],
    "get_py_obj_dtype": lambda: [str(ms.get_py_obj_dtype(value)) for value in (
        1, 1.5, True, "a", (1,), [1], None, T(A), Parameter(T(A), name="w"), ms.int32, rows, ops.ReLU(), Empty())],
    "get_seed": set_seed,
    "dtypes": lambda: [str(t) for t in (ms.complex128, ms.complex64, ms.number, ms.int_, ms.uint, ms.list_)],
    "mutable": lambda: [mutable((1, 2)), mutable([1]), mutable({"a": 1}), mutable(3)],
    "hal": lambda: [ms.hal.is_available("CPU"), ms.hal.device_count("CPU"), ms.hal.get_device_name(0, "CPU")],
    "hal properties": lambda: [ms.hal.get_device_properties(0, "CPU"), ms.hal.get_device_capability(0, "CPU"), ms.hal.get_arch_list("CPU")],
    "Event": lambda: ms.hal.Event().query(),
    "pipeline": lambda: rows(numbers(*range(7)).skip(1).take(5).filter(lambda x: x % 2 == 1).repeat(2).batch(2, drop_remainder=True)),
    "project and rename": lambda: [sorted(row) for row in ds.NumpySlicesDataset({"a": [1, 2], "b": [3, 4]}, shuffle=False).rename(
        "a", "c").project(["c"]).create_dict_iterator(num_epochs=1)],
    "zip and concat": lambda: rows(ds.zip((numbers(1, 2, column_names=["a"]), numbers(3, 4, column_names=["b"])))
                                   + ds.NumpySlicesDataset({"a": [5], "b": [6]}, shuffle=False)),
    "bucket_batch_by_length": lambda: rows(ds.GeneratorDataset(lengths, ["x"], shuffle=False).bucket_batch_by_length(
        ["x"], [3, 5], [2, 1, 1], pad_info={"x": ([None], -1)}, pad_to_bucket_boundary=False,
        element_length_function=lambda x: x.shape[0])),
    "serialize": lambda: sorted(ds.serialize(numbers(1, 2).repeat(3).skip(1))),
    "fans": lambda: ms.common.initializer._calculate_fan_in_and_fan_out((3, 4, 2, 2)),
    "gains": lambda: [ms.common.initializer._calculate_gain("leaky_relu", 0.2), ms.common.initializer._calculate_gain("tanh")],
    "get_auto_parallel_context": lambda: [ms.get_auto_parallel_context(key) for key in ("parallel_mode", "device_num", "gradients_mean")],
    "get_algo_parameters": algorithm,
    "Layout": lambda: ms.Layout((2, 2), ("a", "b"))("a", "b").to_dict()["tensor_map"],
    "default_collate": lambda: [part.tolist() for part in ds.dataloader.default_collate([(1, 2.5), (3, 4.5)])],
    "TensorDataset": lambda: [[part.asnumpy().tolist() for part in batch] for batch in ds.dataloader.DataLoader(
        ds.dataloader.TensorDataset(T([[1, 5], [4, 2]]), T([7, 8])), batch_size=1)],
}


@case(over=VALUES)
def value(call):
    return {"value": call()}
