"""Counts the floating-point operations of products, convolutions and attention: while they run, or from the shapes that a trace kept."""
from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from torchspore.engine.torch_internals.torch_private import is_operator


class Counter:
    """Counts between `start` and `stop`, in this thread."""

    def __init__(self) -> None:
        self._mode: Any = None

    def start(self) -> None:
        """Counts from here on."""
        self._mode = FlopCounterMode(display=False)
        self._mode.__enter__()

    def stop(self) -> int:
        """Return the number of operations; 0 if nothing was counted."""
        if self._mode is None:
            return 0
        mode, self._mode = self._mode, None
        mode.__exit__(None, None, None)
        return int(mode.get_total_flops())


Shapes = Sequence[Sequence[int]]


def of(name: str, shapes: Shapes, concrete: Callable[[], Sequence[Any]]) -> int:
    """The operations of one run of torch's operator `name` with inputs of these shapes; `concrete` gives its other arguments.

    A multiplication and an addition are two. 0 where the shapes don't tell.
    """
    try:
        return int((COUNTED.get(name) or _CALLS_ANOTHER[name])(shapes, concrete))
    except (KeyError, IndexError, TypeError, ValueError):
        return 0


def of_graph(module: Any) -> int:
    """The operations of one run of a captured graph, by the shapes that its nodes kept; those in branches and loops are not counted."""
    return sum(map(of_node, module.graph.nodes))


def of_node(node: Any) -> int:
    """The operations of one node of a captured graph."""
    if node.op != "call_function" or not is_operator(node.target):
        return 0
    values = [item.meta.get("val") if isinstance(item, torch.fx.Node) else item for item in node.args]
    shapes = [list(item.shape) if isinstance(item, torch.Tensor) else [] for item in values]
    return of(node.target._schema.name, shapes, lambda: values)


def _product(first: int) -> Callable[[Shapes, Any], int]:
    def count(shapes: Shapes, concrete: Any) -> int:
        left_shape, right = shapes[first], shapes[first + 1]
        batch = left_shape[0] if len(left_shape) == 3 else 1
        return 2 * batch * left_shape[-2] * left_shape[-1] * right[-1]

    return count


def _product_of_batches(shapes: Shapes, concrete: Any) -> int:
    """A product of matrices whose batches are broadcast: as many as the larger batch."""
    first, second = shapes[0], shapes[1]
    if len(first) < 2 or len(second) < 2:
        return 2 * max(math.prod(first), math.prod(second))
    return 2 * max(math.prod(first[:-2]), math.prod(second[:-2])) * first[-2] * first[-1] * second[-1]


def _convolution(shapes: Shapes, concrete: Callable[[], Sequence[Any]]) -> int:
    data, weight = shapes[0], shapes[1]
    arguments = concrete()
    stride, padding, dilation, transposed = arguments[3], arguments[4], arguments[5], arguments[6]
    per_position = 2 * weight[0] * functools.reduce(lambda a, b: a * b, weight[1:], 1)
    if transposed:
        return data[0] * functools.reduce(lambda a, b: a * b, data[2:], 1) * per_position
    positions = data[0]
    for axis, length in enumerate(data[2:]):
        reach = (weight[axis + 2] - 1) * _along(dilation, axis) + 1
        positions *= (length + 2 * _along(padding, axis) - reach) // _along(stride, axis) + 1
    return positions * per_position


def _convolution_backward(shapes: Shapes, concrete: Callable[[], Sequence[Any]]) -> int:
    gradient, weight, mask = shapes[0], shapes[2], concrete()[10]
    positions = gradient[0] * functools.reduce(lambda a, b: a * b, gradient[2:], 1)
    return sum(map(bool, mask[:2])) * positions * 2 * weight[0] * functools.reduce(lambda a, b: a * b, weight[1:], 1)


def _along(numbers: Sequence[int], axis: int) -> int:
    return int(numbers[axis] if axis < len(numbers) else numbers[-1])


def _attention(times: float, first: int) -> Callable[[Shapes, Any], int]:
    """Two products forward and five backward, of the lengths of queries and keys."""

    def count(shapes: Shapes, concrete: Any) -> int:
        query, key, value = shapes[first : first + 3]
        return int(times * query[0] * query[1] * query[-2] * key[-2] * (query[-1] + value[-1]))

    return count


def _linear(shapes: Shapes, concrete: Any) -> int:
    data, weight = shapes[0], shapes[1]
    return 2 * math.prod(data) * weight[0]


COUNTED: dict[str, Callable[[Shapes, Any], int]] = {
    "aten::matmul": _product_of_batches,
    "aten::mm": _product(0), "aten::bmm": _product(0), "aten::addmm": _product(1), "aten::baddbmm": _product(1),
    "aten::convolution": _convolution, "aten::convolution_backward": _convolution_backward,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention(2, 0), "aten::_scaled_dot_product_flash_attention": _attention(2, 0),
    "aten::_scaled_dot_product_efficient_attention": _attention(2, 0),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _attention(5, 1),
    "aten::_scaled_dot_product_flash_attention_backward": _attention(5, 1),
    "aten::_scaled_dot_product_efficient_attention_backward": _attention(5, 1),
}
"""Those of torch's operators whose operations are counted, each where torch computes it: not in what only calls another one of them."""
_CALLS_ANOTHER: dict[str, Callable[[Shapes, Any], int]] = {"aten::linear": _linear}
"""Operators of graphs that call one of those when they run."""


@functools.cache
def peak(accelerator: bool) -> float:
    """The operations a second of this machine's processor, or of its accelerator, in float32: the best of some products, measured once."""
    target_device = torch.accelerator.current_accelerator() if accelerator else None
    size = 8192 if target_device is not None else 1024
    with torch.no_grad():
        matrix = torch.ones(size, size, device=target_device)
        best = float("inf")
        for _ in range(6):
            started = time.perf_counter()
            torch.mm(matrix, matrix)
            if target_device is not None:
                torch.accelerator.synchronize()
            best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best
