"""`thor`: steps along gradients that are preconditioned by the covariances of a layer's inputs and gradients (arXiv 2106.02925)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.text import message, short
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.sparse_tensor import RowTensorInner
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim.optimizer import Optimizer

BLOCK = 128
"""Matrices are inverted in diagonal blocks of this size, as in MindSpore."""


class Thor(Optimizer):
    """(A + √λ I)⁻¹ ⊗ (s² G + √λ I)⁻¹ times the gradient of each dense or convolutional layer's weight, then momentum; s is the batch size.

    While its flag `thor` is set, the matrices are inverted again; otherwise the last inverses are used.
    """

    _updates_by_rows_ = _updates_by_group_ = False
    _server_refusal_ = "another optimizer: THOR reads statistics of the layers, which are on the workers"

    def __init__(self, net: Cell, learning_rate: Tensor, damping: Tensor, momentum: float, options: dict[str, Any]) -> None:
        params = [p for p in net.get_parameters() if p.requires_grad]
        super().__init__(learning_rate, params, 0.0, options["loss_scale"])
        self.rates = Parameter(ops.cast(learning_rate, dtypes.float32), name="thor_learning_rate", requires_grad=False)
        self.damping = Parameter(ops.cast(damping, dtypes.float32), name="damping", requires_grad=False)
        self.momentum, self.decay, self.batch_size = float(momentum), float(options["weight_decay"]), float(options["batch_size"])
        self.use_nesterov, self.frequency, self.thor = options["use_nesterov"], options["frequency"], False
        self.moving = self.parameters.clone(prefix="moments", init="zeros")
        self.decays = tuple(options["decay_filter"](p) for p in self.parameters)
        indexes = {id(p): index for index, p in enumerate(self.parameters)}
        layers = [cell for _, cell in net.cells_and_names() if hasattr(cell, "matrix_g") and hasattr(cell, "save_gradient")]
        weights = [getattr(cell, "embedding_table", None) if cell.matrix_a.ndim == 1 else cell.weight for cell in layers]
        self.indexes = tuple(indexes.get(id(weight), -1) for weight in weights)
        self.matrix_a, self.matrix_g = (tuple(getattr(cell, name) for cell in layers) for name in ("matrix_a", "matrix_g"))
        self.inverse_a, self.inverse_g = (ParameterTuple([
            Parameter(Tensor(m.value().asnumpy() * 0, dtypes.float32), name=f"{name}_inv_{index}", requires_grad=False)
            for index, m in enumerate(matrices)
        ]) for name, matrices in (("matrix_a", self.matrix_a), ("matrix_g", self.matrix_g)))

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        last = self.rates.shape[0] - 1
        step = ops.reshape(ops.minimum(self.global_step, Tensor(last, dtypes.int32)), ())
        rate, small = ops.gather(self.rates, step, 0), ops.sqrt(ops.gather(self.damping, step, 0))
        if self.thor:
            for number in range(len(self.indexes)):
                ops.assign(self.inverse_a[number], _inverse(self.matrix_a[number], small))
                scale = (self.batch_size / self.loss_scale) ** 2
                ops.assign(self.inverse_g[number], _inverse(self.matrix_g[number] * scale, small))
        numbers = {index: number for number, index in enumerate(self.indexes)}
        for index, (parameter, moved) in enumerate(zip(self.parameters, self.moving)):
            gradient = ops.cast(_dense_gradient(gradients[index]), dtypes.float32) / self.loss_scale
            if index in numbers:
                gradient = self._straight(gradient, numbers[index])
            if self.decay and self.decays[index]:
                gradient = gradient + self.decay * parameter
            now = moved * self.momentum + gradient
            ops.assign(moved, now)
            ops.assign(parameter, parameter - rate * (gradient + self.momentum * now if self.use_nesterov else now))
        ops.assign(self.global_step, self.global_step + 1)
        return True

    def _straight(self, gradient: Any, number: int) -> Any:
        before, after = self.inverse_g[number], self.inverse_a[number]
        if after.ndim == 1:
            return ops.matmul(ops.reshape(after, (-1, 1)) * gradient, before)
        flat = ops.reshape(gradient, (gradient.shape[0], -1))
        return ops.reshape(ops.matmul(ops.matmul(before, flat), after), gradient.shape)


def _dense_gradient(gradient: Any) -> Any:
    """Return a row gradient as a dense one."""
    if not isinstance(gradient, RowTensorInner):
        return gradient
    table = ops.zeros(gradient.dense_shape, gradient.values.dtype)
    return ops.tensor_scatter_add(table, ops.reshape(gradient.indices, (-1, 1)), gradient.values)


def _inverse(matrix: Any, small: Any) -> Any:
    """Return (matrix + small I)⁻¹ in diagonal blocks; for a vector, which is a diagonal, the element-wise inverse."""
    if matrix.ndim == 1:
        return 1.0 / (matrix + small)
    size = matrix.shape[0]
    inverse = ops.zeros_like(matrix)
    for start in range(0, size, BLOCK):
        end = min(start + BLOCK, size)
        block = ops.inverse(matrix[start:end, start:end] + ops.eye(end - start, end - start, dtypes.float32) * small)
        inverse = ops.pad(block, ((start, size - end, start, size - end))) + inverse
    return inverse


def thor(
    net: Cell, learning_rate: Tensor, damping: Tensor, momentum: float, weight_decay: float = 0.0, loss_scale: float = 1.0,
    batch_size: int = 32, use_nesterov: bool = False, decay_filter: Callable[[Any], bool] = lambda parameter: parameter is not None,
    split_indices: Any = None, enable_clip_grad: bool = False, frequency: int = 100,
) -> Thor:
    """Return the second-order optimizer THOR for `net`, whose dense, convolutional and embedding layers are replaced in place.

    `learning_rate` and `damping` contain a value for each step. `frequency` is stored for `ConvertModelUtils`, which periodically sets the
    flag `thor` of net and optimizer. `split_indices` groups messages between processes, of which one sends none; `enable_clip_grad` is
    refused. Raises TypeError and ValueError for arguments that do not fit.
    """
    for name, value in (("learning_rate", learning_rate), ("damping", damping)):
        if not isinstance(value, Tensor) or value.ndim != 1:
            raise TypeError(message(f"thor({name}={short(value)})", f"a Tensor with a value for each step, got {type(value).__name__}"))
    for name, number, low in (("momentum", momentum, 0), ("weight_decay", weight_decay, 0), ("loss_scale", loss_scale, None)):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise TypeError(message(f"thor({name}={short(number)})", f"a number, got {type(number).__name__}"))
        if number < 0 or (low is None and number == 0):
            raise ValueError(message(f"thor({name}={number})", "a number from 0 on" if low == 0 else "a number above 0"))
    for name, count, least in (("batch_size", batch_size, 1), ("frequency", frequency, 2)):
        check_int_type("thor", name, count)
        if count < least:
            raise ValueError(message(f"thor({name}={count})", f"an int from {least} on"))
    if not isinstance(use_nesterov, bool):
        raise TypeError(message(f"thor(use_nesterov={short(use_nesterov)})", f"True or False, got {type(use_nesterov).__name__}"))
    if split_indices is not None and not isinstance(split_indices, (list, tuple)):
        raise TypeError(message(f"thor(split_indices={short(split_indices)})", f"a list or None, got {type(split_indices).__name__}"))
    if enable_clip_grad is not False:
        raise ValueError(message(f"thor(enable_clip_grad={short(enable_clip_grad)})", "False", hint="clip gradients in your own step"))
    from torchspore.mindspore.nn.layer.thor_conversion import ConvertNetUtils

    ConvertNetUtils().convert_to_thor_net(net)
    options = {
        "weight_decay": weight_decay, "loss_scale": loss_scale, "batch_size": batch_size, "use_nesterov": use_nesterov,
        "decay_filter": decay_filter, "frequency": frequency,
    }
    return Thor(net, learning_rate, damping, momentum, options)
