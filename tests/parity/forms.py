"""What tables of parity cases ask of an operator: its outputs, and the gradients by its real inputs, through a Cell.

    @case(over={"atan2": lambda: probe(ops.atan2, X, Y), ...}, graph=True)
    def maths(ask):
        return ask()

Through a Cell, so that `graph=True` compiles both.
"""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np


def probe(function: Any, *arguments: Any, by: tuple[int, ...] | None = None, **keywords: Any) -> dict[str, Any]:
    """The outputs of `function` as output0, output1, …, and as gradient0, … the gradients of a weighted sum of its real outputs.

    Arrays among the arguments, also in lists and tuples, become Tensors; gradients are by all real arrays, or by those that `by` counts.
    """
    arrays: list[np.ndarray] = []
    shape = [_without_arrays(argument, arrays) for argument in arguments]
    names = sorted(keywords)
    more = [_without_arrays(keywords[name], arrays) for name in names]

    def call(*tensors):
        return function(*[_with(item, tensors) for item in shape], **{name: _with(item, tensors) for name, item in zip(names, more)})

    class Net(ms.nn.Cell):
        def construct(self, *tensors):
            return call(*tensors)

    results = dict(_outputs(Net()(*[ms.Tensor(array) for array in arrays])))
    real = tuple(i for i, array in enumerate(arrays) if array.dtype.kind == "f") if by is None else by
    if not real or not any(value.dtype.kind in "fc" for value in results.values() if isinstance(value, np.ndarray)):
        return results
    gradients = ms.grad(lambda *tensors: _weighed(call(*tensors)), real)(*[ms.Tensor(array) for array in arrays])
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    return results | {f"gradient{i}": value.asnumpy() for i, value in enumerate(gradients)}


class _At:
    """Stands for the array of a number."""

    def __init__(self, number: int) -> None:
        self.number = number


def _without_arrays(value: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return _At(len(arrays) - 1)
    return type(value)(_without_arrays(item, arrays) for item in value) if isinstance(value, (list, tuple)) else value


def _with(value: Any, tensors: Any) -> Any:
    if isinstance(value, _At):
        return tensors[value.number]
    return type(value)(_with(item, tensors) for item in value) if isinstance(value, (list, tuple)) else value


def _flat(value: Any) -> list[Any]:
    return [element for item in value for element in _flat(item)] if isinstance(value, (list, tuple)) else [value]


def _outputs(value: Any) -> Any:
    for i, item in enumerate(_flat(value)):
        yield f"output{i}", item.asnumpy() if isinstance(item, ms.Tensor) else item


def _weighed(value: Any) -> Any:
    """The real outputs, each element by a weight of its own, summed."""
    total = 0
    for item in _flat(value):
        if not isinstance(item, ms.Tensor) or not (item.is_floating_point() or item.is_complex()):
            continue
        for part in (ms.ops.real(item), ms.ops.imag(item)) if item.is_complex() else (item,):
            weights = np.cos(np.arange(part.size, dtype=np.float64)).astype(np.float32).reshape(part.shape)
            total = total + (part * ms.Tensor(weights).astype(part.dtype)).sum()
    return total


def apply_writing(make: Any, *values: np.ndarray, arguments: tuple[Any, ...] = (), times: int = 1) -> dict[str, Any]:
    """What an operator that writes into Parameters leaves in them: `make()` is called with Parameters of `values` and then `arguments`."""
    parameters = [ms.Parameter(ms.Tensor(value.copy()), name=f"p{i}") for i, value in enumerate(values)]
    operator = make()

    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.all = ms.ParameterTuple(parameters)

        def construct(self, *rest):
            return operator(*self.all, *rest)

    net = Net()
    rest = [ms.Tensor(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments]
    for _ in range(times):
        net(*rest)
    return {f"parameter{i}": parameter.asnumpy() for i, parameter in enumerate(parameters)}
