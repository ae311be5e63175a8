"""The arguments that an operator writes into, positional and by name, single and in lists."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.node import Node

from torchspore.graph.fx.aliasing import inputs_written, writes

aten = torch.ops.aten
Call = Callable[[Node, Node, Node, Node], tuple[Any, tuple[Any, ...], dict[str, Any]]]

CALLS: dict[str, tuple[Call, str]] = {
    "no write": (lambda a, b, c, d: (aten.add.Tensor, (a, b), {}), ""),
    "in place": (lambda a, b, c, d: (aten.add_.Tensor, (a, b), {}), "a"),
    "in place by name": (lambda a, b, c, d: (aten.add_.Tensor, (), {"self": a, "other": b}), "a"),
    "copy": (lambda a, b, c, d: (aten.copy_.default, (b, a), {}), "b"),
    "items": (lambda a, b, c, d: (aten.index_put_.default, (a, [b], c), {}), "a"),
    "out": (lambda a, b, c, d: (aten.add.out, (a, b), {"out": c}), "c"),
    "two outs": (lambda a, b, c, d: (aten.max.dim_max, (a, 0), {"max": c, "max_values": d}), "cd"),
    "list": (lambda a, b, c, d: (aten._foreach_add_.List, ([a, b], [c, d]), {}), "ab"),
    "list by name": (lambda a, b, c, d: (aten._foreach_add_.List, (), {"self": [a, b], "other": [c, d]}), "ab"),
    "list of outs": (lambda a, b, c, d: (aten._foreach_add.List_out, ([a], [b]), {"out": [c]}), "c"),
    "norm in training": (lambda a, b, c, d: (aten.native_batch_norm.default, (a, b, b, c, d, True, 0.1, 1e-5), {}), "cd"),
    "norm in evaluation": (lambda a, b, c, d: (aten.native_batch_norm.default, (a, b, b, c, d, False, 0.1, 1e-5), {}), ""),
    "optimizer": (lambda a, b, c, d: (aten._fused_sgd_.default, ([a], [b], [c]), rates()), "ac"),
    "optimizer by name": (
        lambda a, b, c, d: (aten._fused_sgd_.default, (), {"self": [a], "grads": [b], "momentum_buffer_list": [c], **rates()}), "ac"),
    "optimizer that scales": (lambda a, b, c, d: (aten._fused_sgd_.default, ([a], [b], [c]), {**rates(), "grad_scale": d}), "abc"),
}


def rates() -> dict[str, Any]:
    return {"weight_decay": 0.0, "momentum": 0.9, "lr": 0.1, "dampening": 0.0, "nesterov": False, "maximize": False, "is_first_step": False}


@pytest.mark.parametrize("case", CALLS)
def test_an_operator_writes_what_its_schema_declares(case: str) -> None:
    make, expected = CALLS[case]
    graph = torch.fx.Graph()
    inputs = [graph.placeholder(name) for name in "abcd"]
    target, args, kwargs = make(*inputs)
    node = graph.call_function(target, args, kwargs)
    graph.output(None)
    assert "".join(sorted(item.name for item in writes(node))) == expected
    written = inputs_written(torch.fx.GraphModule({}, graph))
    assert written == {"abcd".index(name): [node] for name in expected}
