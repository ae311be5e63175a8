"""`thor`: steps along gradients that are straightened by how a layer's inputs and gradients vary (arXiv 2106.02925)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.base.text import message, short
from torchspore.engine.core import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.sparse_tensor import RowTensorInner
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim.optimizer import Optimizer

BLOCK = 128
"""Matrices are inverted in blocks of this size along their diagonal, as MindSpore does."""


class Thor(Optimizer):
    """(A + √λ I)⁻¹ ⊗ (s² G + √λ I)⁻¹ times the gradient of each dense or convolutional layer's weight, then momentum; s is the batch size.

    While its flag `thor` is set the matrices are inverted anew; else the last ones serve.
    """

    _updates_by_rows_ = False

    def __init__(self, net: Cell, learning_rate: Tensor, damping: Tensor, momentum: float, given: dict[str, Any]) -> None:
        params = [p for p in net.get_parameters() if p.requires_grad]
        super().__init__(learning_rate, params, 0.0, given["loss_scale"])
        self.rates = Parameter(ops.cast(learning_rate, dtypes.float32), name="thor_learning_rate", requires_grad=False)
        self.damping = Parameter(ops.cast(damping, dtypes.float32), name="damping", requires_grad=False)
        self.momentum, self.decay, self.batch_size = float(momentum), float(given["weight_decay"]), float(given["batch_size"])
        self.use_nesterov, self.frequency, self.thor = given["use_nesterov"], given["frequency"], False
        self.moving = self.parameters.clone(prefix="moments", init="zeros")
        self.decays = tuple(given["decay_filter"](p) for p in self.parameters)
        places = {id(p): place for place, p in enumerate(self.parameters)}
        layers = [cell for _, cell in net.cells_and_names() if hasattr(cell, "matrix_g") and hasattr(cell, "save_gradient")]
        weights = [getattr(cell, "embedding_table", None) if cell.matrix_a.ndim == 1 else cell.weight for cell in layers]
        self.places = tuple(places.get(id(weight), -1) for weight in weights)
        self.matrix_a, self.matrix_g = (tuple(getattr(cell, name) for cell in layers) for name in ("matrix_a", "matrix_g"))
        self.inverse_a, self.inverse_g = (ParameterTuple([
            Parameter(Tensor(m.value().asnumpy() * 0, dtypes.float32), name=f"{name}_inv_{place}", requires_grad=False)
            for place, m in enumerate(matrices)
        ]) for name, matrices in (("matrix_a", self.matrix_a), ("matrix_g", self.matrix_g)))

    def construct(self, gradients: Any) -> bool:
        """Updates the Parameters by their gradients."""
        last = self.rates.shape[0] - 1
        step = ops.reshape(ops.minimum(self.global_step, Tensor(last, dtypes.int32)), ())
        rate, small = ops.gather(self.rates, step, 0), ops.sqrt(ops.gather(self.damping, step, 0))
        if self.thor:
            for number in range(len(self.places)):
                ops.assign(self.inverse_a[number], _inverse(self.matrix_a[number], small))
                scale = (self.batch_size / self.loss_scale) ** 2
                ops.assign(self.inverse_g[number], _inverse(self.matrix_g[number] * scale, small))
        numbers = {place: number for number, place in enumerate(self.places)}
        for place, (parameter, moved) in enumerate(zip(self.parameters, self.moving)):
            gradient = ops.cast(_whole(gradients[place]), dtypes.float32) / self.loss_scale
            if place in numbers:
                gradient = self._straight(gradient, numbers[place])
            if self.decay and self.decays[place]:
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


def _whole(gradient: Any) -> Any:
    """A gradient of single rows as one of the whole table."""
    if not isinstance(gradient, RowTensorInner):
        return gradient
    table = ops.zeros(gradient.dense_shape, gradient.values.dtype)
    return ops.tensor_scatter_add(table, ops.reshape(gradient.indices, (-1, 1)), gradient.values)


def _inverse(matrix: Any, small: Any) -> Any:
    """(matrix + small I)⁻¹ in blocks along the diagonal; of a vector, the diagonal, its own inverse."""
    if matrix.ndim == 1:
        return 1.0 / (matrix + small)
    size = matrix.shape[0]
    found = ops.zeros_like(matrix)
    for start in range(0, size, BLOCK):
        end = min(start + BLOCK, size)
        one = ops.inverse(matrix[start:end, start:end] + ops.eye(end - start, end - start, dtypes.float32) * small)
        found = ops.pad(one, ((start, size - end, start, size - end))) + found
    return found


def thor(
    net: Cell, learning_rate: Tensor, damping: Tensor, momentum: float, weight_decay: float = 0.0, loss_scale: float = 1.0,
    batch_size: int = 32, use_nesterov: bool = False, decay_filter: Callable[[Any], bool] = lambda parameter: parameter is not None,
    split_indices: Any = None, enable_clip_grad: bool = False, frequency: int = 100,
) -> Thor:
    """The optimizer of second order THOR for `net`, whose dense, convolutional and embedding layers become those that it needs, in place.

    `learning_rate` and `damping` hold a value for each step. `frequency` is kept for `ConvertModelUtils`, which sets the flag `thor` of net
    and optimizer every so many steps. `split_indices` groups messages between processes, and one sends none; `enable_clip_grad` is refused.
    Raises TypeError and ValueError for what does not fit.
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
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(message(f"thor({name}={short(count)})", f"an int, got {type(count).__name__}"))
        if count < least:
            raise ValueError(message(f"thor({name}={count})", f"an int from {least} on"))
    if not isinstance(use_nesterov, bool):
        raise TypeError(message(f"thor(use_nesterov={short(use_nesterov)})", f"True or False, got {type(use_nesterov).__name__}"))
    if split_indices is not None and not isinstance(split_indices, (list, tuple)):
        raise TypeError(message(f"thor(split_indices={short(split_indices)})", f"a list or None, got {type(split_indices).__name__}"))
    if enable_clip_grad is not False:
        raise ValueError(message(f"thor(enable_clip_grad={short(enable_clip_grad)})", "False", hint="clip gradients in your own step"))
    from torchspore.mindspore.train.train_thor import ConvertNetUtils

    ConvertNetUtils().convert_to_thor_net(net)
    given = {
        "weight_decay": weight_decay, "loss_scale": loss_scale, "batch_size": batch_size, "use_nesterov": use_nesterov,
        "decay_filter": decay_filter, "frequency": frequency,
    }
    return Thor(net, learning_rate, damping, momentum, given)
