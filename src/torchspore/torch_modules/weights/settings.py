"""Settings of paired layers that make a Cell and a torch model compute different values although their weights are equal."""
from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from torchspore.mindspore.nn.cell import Cell
from torchspore.torch_modules.weights.slots import Link

nn: Any = importlib.import_module("torchspore.mindspore.nn")
_CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TORCH_CONV = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
_TORCH_BATCH_NORM = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.SyncBatchNorm)
_BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.SyncBatchNorm)
_NAN = {"ReLU": "returns 0 for NaN", "MaxPool2d": "ignores NaN"}
"""Layers whose rule for NaN on MindSpore's CPU differs; torchspore computes as torch does (docs/differences.md)."""


def differences(cell: Cell, model: torch.nn.Module, links: Iterable[Link]) -> list[str]:
    """Return sentences on the settings of paired layers that differ, and on pooling and activations, which have no weights to pair."""
    layers = {
        id(parameter): (path, layer) for path, layer in cell.cells_and_names()
        for parameter in layer._params.values() if parameter is not None
    }
    parameters = {parameter.name: parameter for parameter in cell.get_parameters()}
    modules = dict(model.named_modules())
    notes: list[str] = []
    seen: set[tuple[int, int]] = set()
    for link in links:
        module_path = link.torch[0].name.rpartition(".")[0]
        parameter = parameters.get(link.mindspore[0].name)
        path, layer = layers.get(id(parameter), ("", None))
        module = modules.get(module_path)
        if layer is None or module is None or (id(layer), id(module)) in seen:
            continue
        seen.add((id(layer), id(module)))
        notes += [f"{path or type(layer).__name__} and {module_path or type(module).__name__}: {text}" for text in _of_pair(layer, module)]
    return [*_grouped(notes), *_without_weights(cell, model)]


def _grouped(notes: list[str]) -> list[str]:
    """Return one sentence for all pairs of layers with the same text."""
    pairs: dict[str, list[str]] = {}
    for note in notes:
        pair, _, text = note.partition(": ")
        pairs.setdefault(text, []).append(pair)
    return [f"{names[0]}{f' (and {len(names) - 1} more pairs)' if len(names) > 1 else ''}: {text}" for text, names in pairs.items()]


def _of_pair(layer: Cell, module: torch.nn.Module) -> Iterator[str]:
    if isinstance(layer, _CONV) and isinstance(module, _TORCH_CONV):
        yield from _of_convolutions(layer, module)
    epsilon = next((value for name in ("epsilon", "eps") if isinstance(value := getattr(layer, name, None), float)), None)
    torch_epsilon = next((value for name in ("eps", "variance_epsilon") if isinstance(value := getattr(module, name, None), float)), None)
    if epsilon is not None and torch_epsilon is not None and epsilon != torch_epsilon:
        yield f"set eps={epsilon:g} in torch, which has {torch_epsilon:g}"
    if isinstance(layer, _BATCH_NORM) and isinstance(module, _TORCH_BATCH_NORM):
        yield from _of_batch_norms(layer, module)
    if isinstance(layer, nn.GroupNorm) and isinstance(module, torch.nn.GroupNorm) and layer.num_groups != module.num_groups:
        yield f"set num_groups={layer.num_groups} in torch, which has {module.num_groups}"
    if isinstance(layer, nn.Dense):
        if getattr(layer, "activation", None) is not None:
            yield f"apply {type(layer.activation).__name__} after the layer in torch: nn.Dense(activation=...) contains it"
        if isinstance(module, torch.nn.Linear) and layer.has_bias != (module.bias is not None):
            yield f"set bias={layer.has_bias} in torch"


def _of_batch_norms(layer: Any, module: Any) -> Iterator[str]:
    momentum = 1 - float(layer.momentum)
    if module.momentum is not None and abs(momentum - module.momentum) > 1e-9:
        yield (f"set momentum={momentum:g} in torch, which has {module.momentum:g}: MindSpore's {layer.momentum:g} is the share of the old "
               "average, torch's the share of the new value (only training uses it)")
    if layer.use_batch_statistics is False and module.training:
        yield "use_batch_statistics=False is eval() of the layer in torch"


def _of_convolutions(layer: Any, module: Any) -> Iterator[str]:
    count = len(module.kernel_size)
    kernel, stride, dilation = (_last(getattr(layer, name), count) for name in ("kernel_size", "stride", "dilation"))
    for name, value in (("stride", stride), ("dilation", dilation)):
        if value != tuple(getattr(module, name)):
            yield f"set {name}={value} in torch, which has {tuple(getattr(module, name))}"
    if layer.group != module.groups:
        yield f"set groups={layer.group} in torch, which has {module.groups}"
    if (layer.bias is not None if hasattr(layer, "bias") else layer.has_bias) != (module.bias is not None):
        yield f"set bias={layer.has_bias} in torch"
    padding = _last((module.padding,) * count if isinstance(module.padding, int) else module.padding, count) \
        if not isinstance(module.padding, str) else module.padding
    spans = [length * (size - 1) for length, size in zip(dilation, kernel)]
    if layer.pad_mode == "same":
        is_plain = all(step == 1 for step in stride)
        symmetric = tuple(span // 2 for span in spans)
        is_equal = is_plain and (padding == "same" or (padding == symmetric and all(span % 2 == 0 for span in spans)))
        if any(spans) and not is_equal and not _pads_itself(module):
            yield ("pad_mode='same' is padding='same' in torch" if is_plain else
                   f"pad_mode='same' with stride {stride} pads by the size of the input, more at the end: call torch.nn.functional.pad, "
                   f"then padding=0; the module has padding={padding}")
    else:
        expected = (0,) * count if layer.pad_mode == "valid" else _padding(layer.padding, count)
        if padding == "same":
            padding = tuple(span // 2 for span in spans)
        if expected != padding:
            yield f"set padding={expected} in torch, which has {padding}"
    mode = getattr(module, "padding_mode", "zeros")
    if mode != "zeros":
        yield f"the module has padding_mode={mode!r}, MindSpore pads with zeros"
    if getattr(layer, "data_format", getattr(layer, "format", "")) == "NHWC":
        yield "data_format='NHWC' has no counterpart in torch: transpose the input"


def _pads_itself(module: torch.nn.Module) -> bool:
    """Return whether this is a subclass that pads by the size of its input, such as timm's Conv2dSame."""
    return "same" in type(module).__name__.lower()


def _last(values: Any, count: int) -> tuple[int, ...]:
    numbers = (values,) * count if isinstance(values, int) else tuple(int(value) for value in values)
    return numbers[-count:]


def _padding(values: Any, count: int) -> tuple[Any, ...]:
    """Return MindSpore's padding in torch's form; pairs (before, after) where they differ."""
    if isinstance(values, int):
        return (values,) * count
    numbers = tuple(int(value) for value in values)
    pairs = list(zip(numbers[::2], numbers[1::2]))[-count:]
    return tuple(first if first == last else (first, last) for first, last in pairs) if len(numbers) >= 2 * count else numbers[-count:]


def _without_weights(cell: Cell, model: torch.nn.Module) -> Iterator[str]:
    """Yield notes on layers without weights, which only their number and kind can compare."""
    ours = [(path, layer) for path, layer in cell.cells_and_names()]
    theirs = list(model.modules())
    yield from _of_pooling(ours, theirs)
    rules = [f"{name} {rule}" for name, rule in _NAN.items() if any(type(layer).__name__ == name for _, layer in ours)]
    if rules:
        yield f"MindSpore's {' and '.join(rules)} on the CPU; torch's return NaN, as torchspore's do"
    layers = [layer for _, layer in ours if type(layer).__name__ == "GELU"]
    forms = {bool(getattr(layer, "approximate", True)) for layer in layers}
    torch_forms = {getattr(module, "approximate", "none") == "tanh" for module in theirs if type(module).__name__ == "GELU"}
    if len(forms) == len(torch_forms) == 1 and forms != torch_forms:
        yield f"set approximate={'tanh' if forms == {True} else 'none'!r} of GELU in torch"


def _of_pooling(ours: list[tuple[str, Any]], theirs: list[torch.nn.Module]) -> Iterator[str]:
    for kind in ("MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d"):
        layers = [(path, layer) for path, layer in ours if type(layer).__name__ == kind]
        modules: list[Any] = [module for module in theirs if type(module).__name__ == kind]
        if len(layers) != len(modules):
            continue
        for (path, layer), module in zip(layers, modules):
            mode = str(getattr(layer, "pad_mode", "valid")).lower()
            padding = module.padding if isinstance(module.padding, int) else max(module.padding)
            if mode == "same" and max(_last(layer.kernel_size, 1)) > 1:
                yield f"{path}: pad_mode='same' pads more at the end, {kind} of torch has padding={module.padding}"
            elif mode == "valid" and padding:
                yield f"{path}: pad_mode='valid' does not pad, {kind} of torch has padding={module.padding}"
