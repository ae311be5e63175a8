"""`mindspore.amp`: mixed precision and the scaling of losses."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.text import list_choices, message, short
from torchspore.mindspore import ops
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common import jit_class
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim import server_updates
from torchspore.mindspore.train.amp import (
    build_train_network,
    check_level,
    choose_by_operator,
    get_black_list,
    get_white_list,
    lower_listed,
    lower_precision,
)
from torchspore.mindspore.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from torchspore.public_names import missing

__all__ = [
    "DynamicLossScaleManager", "DynamicLossScaler", "FixedLossScaleManager", "LossScaleManager", "LossScaler", "StaticLossScaler",
    "all_finite", "auto_mixed_precision", "build_train_network", "custom_mixed_precision", "get_black_list", "get_white_list",
]
_each = ops.HyperMap()


def all_finite(inputs: Any) -> Tensor:
    """Returns a bool Tensor: whether all elements of all Tensors in `inputs`, a Tensor or a nested tuple or list, are finite.

    In a parameter server job: whether they are finite on all workers; each worker must call it.
    """
    is_finite = Tensor(True)
    for tensor in _flat(inputs):
        is_finite = ops.logical_and(is_finite, ops.isfinite(tensor).all())
    return server_updates.is_true_on_all(is_finite)


def _flat(inputs: Any) -> list[Tensor]:
    if isinstance(inputs, (tuple, list)):
        return [tensor for item in inputs for tensor in _flat(item)]
    if not isinstance(inputs, Tensor):
        raise TypeError(message(f"all_finite({short(inputs)})", f"Tensors, got {type(inputs).__name__}"))
    return [inputs]


class LossScaler(ABC):
    """The base of loss scalers: `scale` a loss, `unscale` its gradients, `adjust` the scale by whether these were finite."""

    @abstractmethod
    def scale(self, inputs: Any) -> Any:
        """Returns the inputs times the scale."""

    @abstractmethod
    def unscale(self, inputs: Any) -> Any:
        """Returns the inputs divided by the scale."""

    @abstractmethod
    def adjust(self, grads_finite: Any) -> Any:
        """Adjusts the scale, if this scaler does so; `grads_finite` is a bool Tensor."""


def _times(factor: Tensor, inputs: Any) -> Any:
    """Multiply every Tensor in a nested tuple by a number, in its dtype."""
    return _each(lambda x: x * factor.astype(x.dtype), inputs)


def _positive(call: str, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(message(f"{call}({name}={short(value)})", f"a number, got {type(value).__name__}"))
    if not value > 0:
        raise ValueError(message(f"{call}({name}={value})", "a number above 0"))
    return float(value)


@jit_class
class StaticLossScaler(LossScaler):
    """A constant scale. Raises TypeError and ValueError unless it is a number above 0."""

    def __init__(self, scale_value: float) -> None:
        self.scale_value = Parameter(Tensor(_positive("StaticLossScaler", "scale_value", scale_value), mstype.float32), name="scale_value")

    def scale(self, inputs: Any) -> Any:
        return _times(self.scale_value, inputs)

    def unscale(self, inputs: Any) -> Any:
        return _times(ops.reciprocal(self.scale_value), inputs)

    def adjust(self, grads_finite: Any) -> bool:
        """Returns False: the scale never changes."""
        if not isinstance(grads_finite, (Tensor, bool)):
            raise TypeError(message(f"adjust({short(grads_finite)})", f"a Tensor of bool, got {type(grads_finite).__name__}"))
        return False


@jit_class
class DynamicLossScaler(LossScaler):
    """A scale that is divided by `scale_factor`, down to 1, after gradients that were not finite, and multiplied by it after
    `scale_window` consecutive finite ones.

    Raises TypeError and ValueError unless the arguments are numbers above 0 and `scale_window` is an int.
    """

    def __init__(self, scale_value: float, scale_factor: float, scale_window: int) -> None:
        value = _positive("DynamicLossScaler", "scale_value", scale_value)
        check_int_type("DynamicLossScaler", "scale_window", scale_window)
        self.scale_window = int(_positive("DynamicLossScaler", "scale_window", scale_window))
        self.scale_factor = _positive("DynamicLossScaler", "scale_factor", scale_factor)
        self.scale_value = Parameter(Tensor(value, mstype.float32), name="scale_value")
        self.counter = Parameter(Tensor(0, mstype.int32), name="counter")

    def scale(self, inputs: Any) -> Any:
        return _times(self.scale_value, inputs)

    def unscale(self, inputs: Any) -> Any:
        return _times(ops.reciprocal(self.scale_value), inputs)

    def adjust(self, grads_finite: Any) -> Any:
        """Changes scale and counter, depending on whether the last gradients were finite; returns True."""
        counted = self.counter + 1
        is_full = ops.equal(counted, self.scale_window)
        grown = ops.select(is_full, self.scale_value * self.scale_factor, self.scale_value * 1)
        grown = ops.select(ops.isfinite(grown), grown, self.scale_value * 1)
        shrunk = ops.maximum(self.scale_value / self.scale_factor, Tensor(1.0, mstype.float32))
        ops.assign(self.scale_value, ops.select(grads_finite, grown, shrunk))
        ops.assign(self.counter, ops.select(ops.logical_and(grads_finite, ops.logical_not(is_full)), counted, counted * 0))
        return True


class _OutputTo32(Cell):
    """A network that computes in a lower precision and returns float32 Tensors."""

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs: Any, **keywords: Any) -> Any:
        return ops.HyperMap()(_in_float32, self._backbone(*inputs, **keywords))


def _in_float32(value: Any) -> Any:
    is_floating = isinstance(value, Tensor) and value.dtype in (mstype.float16, mstype.bfloat16)
    return value.astype(mstype.float32) if is_floating else value


def auto_mixed_precision(network: Any, amp_level: str = "O0", dtype: Any = mstype.float16) -> Any:
    """Makes the network compute in `dtype`, float16 or bfloat16: 'O0' nowhere, 'O2' except normalization layers, 'O3' everywhere.

    At 'O1' Cells and primitives of the classes in `get_white_list` compute in `dtype`. At 'auto' matrix products and convolutions do; sums,
    powers, norms, losses and similar operators use float32, and all others the dtype of their inputs; a function is allowed, too, and the
    result keeps its dtype. At the other levels it is float32. Raises TypeError unless the network is a Cell (or function, at 'auto'),
    ValueError for another level or dtype.
    """
    check_level("auto_mixed_precision", amp_level)
    is_function = amp_level == "auto" and callable(network) and not isinstance(network, type)
    _check("auto_mixed_precision", network, dtype, is_function)
    if amp_level in ("O2", "O3"):
        return _OutputTo32(lower_precision(network, amp_level, dtype=dtype))
    return choose_by_operator(network, dtype) if amp_level == "auto" else lower_precision(network, amp_level, dtype=dtype)


def custom_mixed_precision(network: Cell, *, white_list: Any = None, black_list: Any = None, dtype: Any = mstype.float16) -> Cell:
    """Makes Cells and primitives of the classes in `white_list`, or all except the Cells of `black_list`, compute in `dtype`.

    The Cells of `black_list` stay in float32. Raises TypeError unless the network is a Cell and the lists contain classes, and for
    a primitive in `black_list`; ValueError for neither or both of the lists, and for another dtype than float16 and bfloat16.
    """
    _check("custom_mixed_precision", network, dtype)
    if (white_list is None) == (black_list is None):
        raise ValueError(message("custom_mixed_precision(...)", "one of white_list and black_list"))
    if white_list is not None:
        return lower_listed(network, _classes("white_list", white_list, (Cell, ops.Primitive)), dtype)
    classes = _classes("black_list", black_list, (Cell,))
    return _OutputTo32(lower_precision(network, "O2", dtype=dtype, float32_classes=tuple(classes)))


def _classes(name: str, classes: Any, bases: tuple[type, ...]) -> list[type]:
    """Return the classes in a list. Raises TypeError unless it is a list of subclasses of `bases`."""
    call_text = f"custom_mixed_precision({name}={short(classes)})"
    if not isinstance(classes, list):
        raise TypeError(message(call_text, f"a list of classes, got {type(classes).__name__}"))
    for kind in classes:
        if not isinstance(kind, type) or not issubclass(kind, bases):
            raise TypeError(message(call_text, f"classes of {' and '.join(base.__name__ for base in bases)}s, got {short(kind)}"))
    return classes


def _check(call: str, network: Any, dtype: Any, is_function: bool = False) -> None:
    if not isinstance(network, Cell) and not is_function:
        raise TypeError(message(f"{call}({short(network)})", f"a Cell, got {type(network).__name__}"))
    if dtype not in (mstype.float16, mstype.bfloat16):
        raise ValueError(message(f"{call}(dtype={short(dtype)})", list_choices(("mindspore.float16", "mindspore.bfloat16"))))


__getattr__ = missing(__name__)
