"""Lists of the arguments of a graph: it changes copies, and the caller's lists stay as they are; dicts are the caller's."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import mutable, nn
from parity.case import case


@ms.jit
def append(x: Any, values: list[Any]) -> Any:
    values.append(x)
    values[0] = x * 2
    return values[0] + values[-1] + len(values)


@ms.jit
def append_and_return(x: Any, values: list[Any]) -> Any:
    values.append(x)
    return values


@ms.jit
def swap(x: Any, values: list[Any]) -> Any:
    values[0], values[1] = values[1], values[0]
    return values[0] + x


@ms.jit
def refill(x: Any, values: list[Any]) -> Any:
    values.clear()
    values.extend([x, x])
    return values[0] + len(values)


@ms.jit
def nested(x: Any, values: list[Any]) -> Any:
    values[0].append(5)
    return x + values[0][2]


@ms.jit
def with_print(x: Any, values: list[Any]) -> Any:
    values.append(x)
    print("values")
    return x + len(values)


@ms.jit
def unchanged(values: list[Any]) -> Any:
    return values, values[0]


@ms.jit
def set_items(x: Any, table: dict[str, Any]) -> Any:
    table["b"] = x
    table["a"][0] = 7
    return x + len(table)


class Append(nn.Cell):
    def construct(self, x: Any, values: list[Any]) -> Any:
        values.append(x * 2)
        values[0] = x * 7
        return x + values[0] + values[-1]


def loss(x: Any, values: list[Any]) -> Any:
    values.append(x * 2)
    return (x * values[-1]).sum()


LOSS = ms.jit(loss)


def numbers(value: Any) -> Any:
    """Return the numbers in nested lists, as an array."""
    if isinstance(value, (list, tuple)):
        return np.concatenate([np.atleast_1d(numbers(item)) for item in value]) if value else np.zeros(0)
    return value.asnumpy().reshape(-1) if isinstance(value, ms.Tensor) else np.array([value], np.float64)


@case(rtol=1e-6, graph=True)
def lists_of_arguments() -> Any:
    x, results = ms.Tensor([2.0], ms.float32), {}
    for function in (append, append_and_return, swap, refill, with_print):
        values = [ms.Tensor([1.0], ms.float32), 3]
        for call in (1, 2):
            results[f"{function.__name__} {call}"] = numbers(function(x, values))
        results[f"after {function.__name__}"] = numbers(values)
    values = [[1, 2], [3]]
    results["nested"], results["after nested"] = numbers(nested(x, values)), numbers(values)
    values = mutable([ms.Tensor([1.0], ms.float32)])
    results["marked"], results["after marked"] = numbers(append(x, values)), numbers(list(values))
    values = [4, 5]
    results["same list"] = np.array([unchanged(values)[0] is values, append_and_return(x, values) is values])
    table = {"a": [1]}
    results["dict"], results["after dict"] = numbers(set_items(x, table)), numbers(list(table.values()))
    values = []
    results["gradient"], results["after gradient"] = numbers(ms.grad(LOSS)(x, values)), numbers(values)
    return results


@case(rtol=1e-6)
def cells() -> Any:
    ms.set_context(mode=ms.GRAPH_MODE)
    values = [ms.Tensor([1.0], ms.float32)]
    result = numbers(Append()(ms.Tensor([2.0], ms.float32), values))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    after = numbers(values)
    pynative = numbers(Append()(ms.Tensor([2.0], ms.float32), values))
    return {"graph": result, "after graph": after, "pynative": pynative, "after pynative": numbers(values)}
