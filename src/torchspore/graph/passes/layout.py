"""The memory format of images: channels-last for convolutions and pooling, and the strides of a real run."""
from __future__ import annotations

import json
import operator
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.formulas import recurrent
from torchspore.engine.torch_internals.interpreter import Interpreter
from torchspore.engine.torch_internals.torch_private import FakeTensorMode, is_operator

_aten = torch.ops.aten
_VIEWS = {_aten.view.default, _aten._unsafe_view.default}
_FLAT = {*_VIEWS, _aten.reshape.default, _aten.expand.default}
_CONVOLUTIONS = {_aten.convolution.default, _aten.convolution_backward.default}
_STRIDED = {_aten.as_strided.default, _aten.as_strided_.default, _aten.empty_strided.default, _aten.new_empty_strided.default}
_OPTIMIZERS = ("_fused_sgd_", "_fused_adam_", "_fused_adamw_")


def has_images(module: torch.fx.GraphModule) -> bool:
    """Return whether the graph contains 2-D convolutions, and no unknown operator or operator whose result depends on strides."""
    if any(node.op == "call_function" and not is_operator(node.target) and node.target is not operator.getitem
           for node in module.graph.nodes):
        return False
    targets = {node.target for node in module.graph.nodes}
    return not targets & _STRIDED and any(
        node.target is _aten.convolution.default and node.meta["val"].dim() == 4 for node in module.graph.nodes
    )


def channels_last(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Convert the images that enter the graph to channels-last, in place. Kernels preserve the format; results keep their strides."""
    for node in list(module.graph.nodes):
        if node.op == "output":
            node.args = ([_restore_strides(module, node, item) for item in node.args[0]],)
        elif node.op == "call_function":
            _convert_node(module, node)
    return module


def _convert_node(module: torch.fx.GraphModule, node: Node) -> None:
    if node.target in _VIEWS:
        node.target = _aten.reshape.default
    if _is_image(node) and node.target in _FLAT:
        _convert_result(module, node)
    elif node.target is _aten.convolution.default and _is_image(node) and _is_graph_input(node.args[0]):
        with module.graph.inserting_before(node):
            node.args = (_to_channels_last(module, node.args[0]), *node.args[1:])  # type: ignore[arg-type]
    elif node.target is _aten.convolution_backward.default:
        with module.graph.inserting_before(node):
            node.args = tuple(_to_channels_last(module, item) if index < 2 and _is_graph_input(item) and _is_image(item) else item  # type: ignore[arg-type]
                              for index, item in enumerate(node.args))
    elif getattr(node.target, "_opname", "") in _OPTIMIZERS:
        parameters, gradients, *others = node.args
        node.args = (
            parameters, [_match_parameter(module, node, p, g) for p, g in zip(parameters, gradients)], *others,  # type: ignore[arg-type]
        )


def _is_graph_input(item: object) -> bool:
    """Return whether a value is an input or a constant of the graph."""
    return isinstance(item, Node) and item.op in ("placeholder", "get_attr")


def _is_image(item: object) -> bool:
    value = item.meta.get("val") if isinstance(item, Node) else None
    return isinstance(value, torch.Tensor) and value.dim() == 4 and value.is_floating_point()


def _to_channels_last(module: torch.fx.GraphModule, item: Node) -> Node:
    new = module.graph.call_function(_aten.contiguous.default, (item,), {"memory_format": torch.channels_last})
    new.meta["val"] = item.meta["val"]
    return new


def _convert_result(module: torch.fx.GraphModule, node: Node) -> None:
    """Convert the result of an operator that does not preserve the format."""
    with module.graph.inserting_after(node):
        new = _to_channels_last(module, node)
    node.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)


def _restore_strides(module: torch.fx.GraphModule, before: Node, item: object) -> object:
    """Return the value with the strides that the captured graph has."""
    if not _is_image(item) or not isinstance(item, Node) or item.op == "placeholder" or not item.meta["val"].is_contiguous():
        return item
    with module.graph.inserting_before(before):
        new = module.graph.call_function(_aten.contiguous.default, (item,))
    new.meta = dict(item.meta)
    return new


def _match_parameter(module: torch.fx.GraphModule, before: Node, parameter: Node, gradient: Node) -> Node:
    """Return a gradient with the strides of its Parameter, as the fused optimizers require."""
    back = _restore_strides(module, before, gradient) if parameter.meta["val"].is_contiguous() else gradient
    assert isinstance(back, Node)
    return back


class _StrideRecorder(Interpreter):
    """Runs the graph and records the shape and strides of each result, without its memory."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.mode = FakeTensorMode()

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return super().call_function(recurrent.KEEPING.get(target, target), args, kwargs)

    def run_node(self, node: torch.fx.Node) -> Any:
        value = super().run_node(node)
        if isinstance(value, torch.Tensor):
            node.meta["val"] = self._fake(value)
        elif isinstance(value, (list, tuple)) and node.op == "call_function":
            node.meta["val"] = [self._fake(v) if isinstance(v, torch.Tensor) else v for v in value]
        return value

    def _fake(self, t: torch.Tensor) -> torch.Tensor | None:
        if t.layout is not torch.strided:          # packed weights
            return None
        with self.mode:
            return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)


def record_strides(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
    """Run the graph on these inputs, which it may write to, and store the strides of each result in `meta['val']`."""
    with torch.no_grad():
        _StrideRecorder(module).run(*inputs)
    return module


def dump_layouts(module: torch.fx.GraphModule) -> str:
    """Return the result of `record_strides` as text for the next process."""
    return json.dumps([_layout(node.meta.get("val")) for node in module.graph.nodes], separators=(",", ":"))


def load_layouts(module: torch.fx.GraphModule, text: str) -> bool:
    """Set `meta['val']` of each node from the text of `dump_layouts`. Return whether the text belongs to this graph."""
    try:
        layouts_read = json.loads(text)
        nodes, mode = list(module.graph.nodes), FakeTensorMode()
        values = [_value(item, mode) for item in layouts_read]
    except (ValueError, TypeError, AttributeError, RuntimeError):
        return False
    if len(values) != len(nodes):
        return False
    for node, value in zip(nodes, values):
        if value is not None:
            node.meta["val"] = value
    return True


def _layout(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return [list(value.shape), list(value.stride()), str(value.dtype).removeprefix("torch."), str(value.device)]
    return {"items": [_layout(item) for item in value]} if isinstance(value, (list, tuple)) else None


def _value(document: Any, mode: Any) -> Any:
    if isinstance(document, dict):
        return [_value(item, mode) for item in document["items"]]
    if document is None:
        return None
    shape, strides, dtype, device = document
    with mode:
        return torch.empty_strided(shape, strides, dtype=getattr(torch, dtype), device=device)


_POOL = _aten.max_pool2d_with_indices.default

MIN_CHANNELS, MIN_VALUES = 6, 20_000
"""The least sizes for which channels-last is faster: torch's CPU kernel then computes the channels of a pixel together. Measured
2.4 to 3.4 times faster including both conversions, 1.5 times with 6 channels (torch 2.13, AVX-512, one thread)."""


def pool_channels_last(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Convert the images of large max-pooling operators on the CPU to channels-last, and their results back, in place."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target is _POOL and _is_worthwhile(node):
            _convert_pool(module, node)
    return module


def _is_worthwhile(node: Node) -> bool:
    image = node.args[0].meta.get("val") if isinstance(node.args[0], Node) else None
    return (
        isinstance(image, torch.Tensor) and image.dim() == 4 and image.device.type == "cpu" and image.dtype is torch.float32
        and all(isinstance(size, int) for size in image.shape) and image.is_contiguous() and image.shape[1] >= MIN_CHANNELS
        and image.numel() >= MIN_VALUES and all(user.target is operator.getitem for user in node.users)
    )


def _convert_pool(module: torch.fx.GraphModule, node: Node) -> None:
    graph = module.graph
    with graph.inserting_before(node):
        converted = graph.call_function(_aten.contiguous.default, (node.args[0],), {"memory_format": torch.channels_last})
        converted.meta["val"] = node.args[0].meta["val"]  # type: ignore[union-attr]
    node.args = (converted, *node.args[1:])
    for item in list(node.users):
        with graph.inserting_after(item):
            restored = graph.call_function(_aten.contiguous.default, (item,))
        restored.meta = dict(item.meta)
        item.replace_all_uses_with(restored, delete_user_cb=lambda user, back=restored: user is not back)  # type: ignore[misc]
