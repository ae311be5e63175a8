"""The parameters of a Cell in torch's names and shapes: the information of `torchspore ckpt --cell` that a checkpoint lacks."""
from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchspore.base.text import message, with_hint
from torchspore.mindspore import nn
from torchspore.mindspore.common.parameter import ParameterTuple
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train.torch_names import Converted, Plan
from torchspore.translations import translate

_BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.SyncBatchNorm)
_INSTANCE_NORM = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
_CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_CONV_TRANSPOSE = (nn.Conv1dTranspose, nn.Conv2dTranspose, nn.Conv3dTranspose)
_TRANSFORMER_LAYERS = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
_EQUAL_NAMES = (*_CONV, *_CONV_TRANSPOSE, nn.Dense, nn.BiDense, nn.LSTM, nn.GRU, nn.RNN, nn.LSTMCell, nn.GRUCell, nn.RNNCell,
               nn.MultiheadAttention, *_TRANSFORMER_LAYERS)
_AFFINE = {"gamma": "weight", "beta": "bias"}
_STATISTICS = {"moving_mean": "running_mean", "moving_variance": "running_var"}
_TORCH_NAMES = frozenset({"weight", "bias", "running_mean", "running_var", "num_batches_tracked"})
_TORCH_EPSILON = 1e-5


def cell_of(text: str) -> Cell:
    """Create the Cell that `MODULE:FACTORY` names; FACTORY is called without arguments. MODULE may be the path of a .py file.

    Raises ValueError if there is no such module or name, or if the result is not a Cell.
    """
    module_name, _, factory_name = text.rpartition(":")
    try:
        if not module_name:
            raise ValueError("no module")
        factory = getattr(_load(module_name), factory_name)
    except (ImportError, AttributeError, ValueError, OSError) as error:
        raise ValueError(message(f"--cell {text}", f"MODULE:FACTORY, a callable that returns the Cell ({error})")) from error
    cell = factory() if not isinstance(factory, Cell) else factory
    if not isinstance(cell, Cell):
        raise ValueError(message(f"--cell {text}", f"a Cell, or a callable that returns one, got {type(cell).__name__}"))
    return cell


def _load(name: str) -> Any:
    if not name.endswith(".py"):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} is not a file of Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plan(cell: Cell) -> Plan:
    """Return the counterpart in torch of each parameter of a Cell, and notes on settings whose defaults differ.

    Raises ValueError that lists the layers without a counterpart in torch.
    """
    parameters: dict[str, Converted] = {}
    omitted: list[str] = []
    notes: list[str] = []
    unknown: list[str] = []
    for path, layer in [("", cell), *_inner(cell)]:
        layer_parameters = {name: parameter for name, parameter in layer._params.items() if parameter is not None}
        if layer_parameters and not _is_convertible(layer):
            unknown.append(f"{path or 'the Cell'} ({type(layer).__name__})")
            continue
        notes += [f"{path or type(layer).__name__}: {note}" for note in _notes(layer)]
        for attribute, parameter in layer_parameters.items():
            torch_name = _renamed(layer, attribute)
            if parameter.name in parameters:
                continue                         # shared by two layers: a checkpoint has it once
            if torch_name is None:
                omitted.append(parameter.name)
                continue
            shape = tuple(parameter.shape)
            if isinstance(layer, (nn.Conv1d, nn.Conv1dTranspose)) and attribute == "weight":
                shape = (*shape[:2], *shape[3:])
            parameters[parameter.name] = Converted(f"{_torch_path(cell, path)}.{torch_name}".lstrip("."), shape)
    for name, parameter in cell.parameters_and_names():          # Parameters in lists
        if parameter.name not in parameters and parameter.name not in omitted and not unknown:
            parameters[parameter.name] = Converted(name, tuple(parameter.shape))
    if unknown:
        raise ValueError(with_hint(
            f"torch.nn has no such layers: {', '.join(unknown[:5])}{' ..' if len(unknown) > 5 else ''}.",
            "--keep-names writes all parameters under MindSpore's names",
        ))
    return Plan(parameters, omitted, notes)


def _inner(cell: Cell) -> Iterator[tuple[str, Cell]]:
    return ((path, layer) for path, layer in cell.cells_and_names() if layer is not cell)


def _is_convertible(layer: Cell) -> bool:
    """Return whether the layer's parameters have names in torch: known layers, those of `mint.nn`, and custom layers."""
    listed = (*_EQUAL_NAMES, *_BATCH_NORM, *_INSTANCE_NORM, nn.LayerNorm, nn.GroupNorm, nn.PReLU, nn.Embedding, nn.EmbeddingLookup)
    is_multi_field = isinstance(layer, nn.MultiFieldEmbeddingLookup)
    if isinstance(layer, listed) and not is_multi_field:
        return True
    home = type(layer).__module__
    return not home.startswith("torchspore.mindspore.nn") or set(layer._params) <= _TORCH_NAMES


def _renamed(layer: Cell, attribute: str) -> str | None:
    """Return the name in torch of a layer's parameter; None if torch has none."""
    if isinstance(layer, _INSTANCE_NORM):
        return _AFFINE.get(attribute)
    if isinstance(layer, _BATCH_NORM):
        return {**_AFFINE, **_STATISTICS}.get(attribute, attribute)
    if isinstance(layer, (nn.LayerNorm, nn.GroupNorm)):
        return _AFFINE.get(attribute, attribute)
    names = {"w": "weight"} if isinstance(layer, nn.PReLU) else {"embedding_table": "weight"}
    is_renamed = isinstance(layer, (nn.PReLU, nn.Embedding, nn.EmbeddingLookup))
    return names.get(attribute, attribute) if is_renamed else _item_of_tuple(layer, attribute)


def _item_of_tuple(layer: Cell, attribute: str) -> str:
    """Return the attribute and the index of a Parameter in a ParameterTuple, whose items MindSpore registers by their names."""
    parameter = layer._params[attribute]
    for name, value in vars(layer).items():
        if isinstance(value, ParameterTuple):
            for index, item in enumerate(value):
                if item is parameter:
                    return f"{name}.{index}"
    return attribute


def _torch_path(root: Cell, path: str) -> str:
    """Return a layer's path in torch: without the inner layer of BatchNorm3d, with torch's names of feed-forward layers."""
    layer, parts = root, []
    for part in path.split(".") if path else []:
        inner = layer._cells[part]
        if isinstance(layer, _TRANSFORMER_LAYERS):
            part = {"dense1": "linear1", "dense2": "linear2"}.get(part, part)
        if not isinstance(layer, nn.BatchNorm3d):
            parts.append(part)
        layer = inner
    return ".".join(parts)


def _notes(layer: Cell) -> Iterator[str]:
    """Return notes on settings of a layer for which torch's default computes different values."""
    if isinstance(layer, (*_CONV, *_CONV_TRANSPOSE)):
        if layer.pad_mode == "same" and any(size > 1 for size in layer.kernel_size):
            is_plain = isinstance(layer, _CONV) and all(step == 1 for step in layer.stride)
            text = translate("pad_mode='same' is padding='same' in torch") if is_plain else translate(
                "pad_mode='same' with stride={stride} has no counterpart in torch: pad the input by torch.nn.functional.pad")
            yield text.format(stride=layer.stride)
        elif layer.pad_mode == "pad":
            text = translate("set padding={padding} in torch; MindSpore's order of several numbers is top, bottom, left, right")
            yield text.format(padding=layer.padding)
    if getattr(layer, "data_format", getattr(layer, "format", "")) == "NHWC":
        yield translate("data_format='NHWC' has no counterpart in torch: transpose the input")
    epsilon = getattr(layer, "epsilon", getattr(layer, "eps", None))
    is_norm = isinstance(layer, (*_BATCH_NORM, *_INSTANCE_NORM, nn.LayerNorm, nn.GroupNorm))
    if is_norm and epsilon is not None and epsilon != _TORCH_EPSILON:
        yield translate("set eps={epsilon:g} in torch, whose default is 1e-05").format(epsilon=epsilon)
    if isinstance(layer, _INSTANCE_NORM) or (is_norm and not getattr(layer, "affine", True)):
        yield translate("set affine=True in torch")
    if isinstance(layer, nn.Dense) and getattr(layer, "activation", None) is not None:
        yield translate("torch.nn.Linear has no activation: apply it after the layer")
