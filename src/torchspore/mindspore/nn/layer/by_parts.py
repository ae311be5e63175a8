"""Layers computed from their primitives: if one of them has a strategy and a graph is split, or if one was replaced."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.layer.parts import Part
from torchspore.mindspore.ops.declaration.split_capture import is_split
from torchspore.mindspore.ops.images import conv
from torchspore.mindspore.ops.random_draws import dropouts


def is_part(cell: Any, name: str) -> bool:
    """Return whether the attribute is one of the layer's primitives."""
    return isinstance(getattr(type(cell), name, None), Part)


def make_parts(cell: Any) -> None:
    """Create all parts of the layer, so that no capture sees one being created."""
    for name in dir(type(cell)):
        if is_part(cell, name):
            getattr(cell, name)


def composed(cell: Any) -> Callable[..., Any] | None:
    """Return the function that computes this layer from its parts; None for a custom construct and for classes without such a form."""
    owner = next(cls for cls in type(cell).__mro__ if "construct" in cls.__dict__)
    if not owner.__module__.startswith("torchspore."):
        return None
    if owner.__name__ in _ALONE:
        return functools.partial(_alone, _ALONE[owner.__name__])
    return _COMPOSED.get(owner.__name__)


def composes_loss(cell: Any) -> bool:
    """Return whether the loss weighs and reduces as LossBase does; `get_loss` then calls its parts from now on."""
    loss_by_parts = getattr(cell, "_loss_by_parts_", None)
    if loss_by_parts is None or not type(cell).get_loss.__module__.startswith("torchspore."):
        return False
    make_parts(cell)
    cell.get_loss = loss_by_parts
    return True


def computed(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the layer's result: from its parts in a split graph or if one was replaced, else from its class's construct."""
    form = composed(cell) if "_replaced" in cell.__dict__ or is_split() else None
    return type(cell).construct(cell, *args, **kwargs) if form is None else form(cell, *args, **kwargs)


def _laid(part: Any, call: Callable[..., Any], *tensors: Any) -> Any:
    """Call a function with Tensors and results in the layouts of the part's strategy, for parts with a better direct operator."""
    from torchspore.distributed.shard import strategy_calls

    return strategy_calls.laid_out(part, call, tensors, {})


def _alone(name: str, cell: Any, x: Any) -> Any:
    """Compute a layer that is one primitive."""
    return getattr(cell, name)(x)


def _dense(cell: Any, x: Any) -> Any:
    shape = x.shape
    if len(shape) != 2:
        x = cell.reshape(x, (-1, shape[-1]))
    x = _biased(cell, cell.matmul(x, cell.weight))
    if cell.activation is not None:
        x = cell.activation(x)
    return x if len(shape) == 2 else cell.reshape(x, (*shape[:-1], x.shape[-1]))


def _biased(cell: Any, x: Any) -> Any:
    return x if cell.bias is None else cell.bias_add(x, cell.bias)


def _conv1d(cell: Any, x: Any) -> Any:
    return cell.squeeze(_biased(cell, cell.conv2d(cell.expand_dims(x, 2), cell.weight)))


def _conv2d(cell: Any, x: Any) -> Any:
    if cell.data_format != "NHWC":
        return _biased(cell, cell.conv2d(x, cell.weight))
    settings = (cell.stride, cell.pad_mode, cell.padding, cell.dilation, cell.group)

    def convolved(x: Any, weight: Any) -> Any:
        return ops.transpose(ops.conv2d(ops.transpose(x, (0, 3, 1, 2)), weight, None, *settings), (0, 2, 3, 1))

    return _biased(cell, _laid(cell.conv2d, convolved, x, cell.weight))


def _conv3d(cell: Any, x: Any) -> Any:
    return _biased(cell, cell.conv3d(x, cell.weight))


def _conv2d_transpose(cell: Any, x: Any) -> Any:
    settings = (cell.stride, cell.pad_mode, cell.padding, 0, cell.dilation, cell.group)
    out = _laid(cell.conv2d_transpose, lambda x, weight: conv._conv_transposed(x, weight, None, *settings), x, cell.weight)
    return cell._padded_(_biased(cell, out))


def _batch_norm(cell: Any, x: Any) -> Any:
    if x.ndim not in cell._ndims_:
        return type(cell).construct(cell, x)            # it raises the error
    batch = cell.training if cell.use_batch_statistics is None else cell.use_batch_statistics
    part = cell.bn_train if batch else cell.bn_infer
    return part(x, cell.gamma, cell.beta, cell.moving_mean, cell.moving_variance)[0]


def _layer_norm(cell: Any, x: Any) -> Any:
    return cell.layer_norm(x, cell.gamma, cell.beta)[0]


def _embedding(cell: Any, ids: Any) -> Any:
    flat = cell.reshape_flat(ids, (-1,))
    if cell.use_one_hot:
        on, off = Tensor(1.0, cell.dtype), Tensor(0.0, cell.dtype)
        rows = cell.array_mul(cell.one_hot(flat, cell.vocab_size, on, off), cell.embedding_table)
    else:
        rows = cell.gather(cell.embedding_table, flat, 0)
    return cell.reshape(rows, (*ids.shape, cell.embedding_size))


def _prelu(cell: Any, x: Any) -> Any:
    return cell.prelu(x, cell.w)


def _pool(part: str, cell: Any, x: Any) -> Any:
    if "_replaced" in cell.__dict__:
        return getattr(cell, part)(x)
    return _laid(getattr(cell, part), functools.partial(type(cell).construct, cell), x)


def _dropout(cell: Any, x: Any) -> Any:
    drop = cell.p if cell.p is not None else 1 - cell.keep_prob
    if not cell.training or drop == 0:
        return x
    return cell.dropout(x)[0] if "_replaced" in cell.__dict__ else _laid(
        cell.dropout, lambda x: dropouts._layer_dropout(x, drop, cell._stream_), x,          # the layer's stream, as in an unsplit graph
    )


def _cross_entropy(cell: Any, logits: Any, labels: Any) -> Any:
    if cell.sparse and cell.reduction == "mean":
        return cell.sparse_softmax_cross_entropy(logits, labels)
    if cell.sparse:
        on, off = Tensor(1.0, logits.dtype), Tensor(0.0, logits.dtype)
        labels = cell.one_hot(labels, logits.shape[-1], on, off)
    return cell._loss_by_parts_(cell.softmax_cross_entropy(logits, labels)[0])


def _norm(cell: Any, x: Any) -> Any:
    return cell.sqrt(cell.reduce_sum(ops.square(x), cell.axis))


def _one_hot(cell: Any, indices: Any) -> Any:
    return cell.onehot(indices, cell.depth, Tensor(cell.on_value, cell.dtype), Tensor(cell.off_value, cell.dtype))


def weighed(cell: Any, x: Any, weights: Any) -> Any:
    """Compute a loss with weighted elements and its reduction from the primitives of the layer."""
    dtype = x.dtype
    if weights is not None:
        x = cell.cast(cell.mul(cell.cast(weights, dtypes.float32) if isinstance(weights, Tensor) else Tensor(weights, dtypes.float32),
                               cell.cast(x, dtypes.float32)), dtype)
    if not cell.reduce:
        return x
    return (cell.reduce_mean if cell.average else cell.reduce_sum)(x, cell.get_axis(x))


_ALONE = {
    "ReLU": "relu", "ReLU6": "relu6", "Sigmoid": "sigmoid", "Tanh": "tanh", "HSigmoid": "hsigmoid", "HSwish": "hswish", "SeLU": "selu",
    "Mish": "mish", "Softsign": "softsign", "FastGelu": "fast_gelu", "ELU": "elu", "Softmax": "softmax", "LogSoftmax": "log_softmax",
    "CELU": "celu", "HShrink": "hshrink", "SoftShrink": "softshrink",
}
_COMPOSED: dict[str, Callable[..., Any]] = {
    "Dense": _dense, "Conv1d": _conv1d, "Conv2d": _conv2d, "Conv3d": _conv3d, "Conv2dTranspose": _conv2d_transpose,
    "_BatchNorm": _batch_norm, "LayerNorm": _layer_norm, "Embedding": _embedding, "PReLU": _prelu, "Dropout": _dropout,
    "MaxPool2d": functools.partial(_pool, "max_pool"), "AvgPool2d": functools.partial(_pool, "avg_pool"),
    "SoftmaxCrossEntropyWithLogits": _cross_entropy, "Norm": _norm, "OneHot": _one_hot,
}
