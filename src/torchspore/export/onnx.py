"""A model as an ONNX file, by `torch.onnx`, which translates torch's operators with the library onnxscript."""
from __future__ import annotations

import importlib
import logging
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.tensors.tensor import tensors
from torchspore.export.model import Model, NotExportable, leaves
from torchspore.graph.capture.capture import In

OPSET = 18
"""The version of ONNX's operators that is written; runtimes since 2023 read it."""
LARGEST = 2 * 1024**3 - 1
"""Bytes that one ONNX file can hold (a protobuf message)."""


class _Net(torch.nn.Module):
    """The graph with its parameters as buffers, which ONNX keeps by their names."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._graph, self._names, self._result = model.module, model.names, model.result
        self._paths = {name: _put(self, name, t) for name, t in model.parameters.items()}

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The Tensors of the result, from left to right."""
        rest = iter(given)
        inputs = [self.get_buffer(self._paths[name]) if name in self._paths else next(rest) for name in self._names]
        outputs = self._graph(*inputs)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        return tuple(inputs[leaf.index] if isinstance(leaf, In) else outputs[leaf.index] for leaf in leaves(self._result))


def _put(net: torch.nn.Module, name: str, t: torch.Tensor) -> str:
    """Create a buffer with the dotted name `name` in nested modules; return its path."""
    at, parts = net, ["parameters_", *(part or "_" for part in name.split("."))]
    for part in parts[:-1]:
        part = f"{part}_" if part in dir(torch.nn.Module) else part
        if not isinstance(getattr(at, part, None), torch.nn.Module):
            at.add_module(part, torch.nn.Module())
        at = getattr(at, part)
    at.register_buffer(f"{parts[-1]}_" if hasattr(at, parts[-1]) else parts[-1], t)
    return next(path for path, buffer in net.named_buffers() if buffer is t)


@dataclass(frozen=True)
class Form:
    """The names of the Tensors that go in and out, and whether the file stores the parameters or takes them as inputs."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    holds_parameters: bool = True
    takes_parameters: bool = False


def of_inputs(model: Model, inputs: Any, call: str, form: Form) -> bytes:
    """The file's contents for a call with `inputs`, Tensors among them. Raises as `model_bytes` does, and ValueError for too many names."""
    tensors_by_name = {f"input{index}": tensor for index, tensor in enumerate(tensors(inputs))}
    named = {name: form.inputs[index] if index < len(form.inputs) else name for index, name in enumerate(tensors_by_name)}
    outputs = [f"output{index}" for index in range(len(leaves(model.result)))]
    for what, names, count in (("input_names", form.inputs, len(tensors_by_name)), ("output_names", form.outputs, len(outputs))):
        if len(names) > count or len(set(names)) < len(names):
            raise ValueError(message(f"{call}({what}={list(names)})", f"at most {count} names, each once"))
    outputs[:len(form.outputs)] = form.outputs
    return model_bytes(
        model, [tensors_by_name[name]._t for name in model.input_names], call, [named[name] for name in model.input_names], outputs, form
    )


def model_bytes(model: Model, tensors_given: list[torch.Tensor], call: str, inputs: list[str], outputs: list[str], form: Form) -> bytes:
    """The file's contents. Raises NotExportable where an operator has no form in ONNX, and ImportError without the library."""
    for needed in ("onnx", "onnxscript"):
        try:
            importlib.import_module(needed)
        except ImportError:
            hint = 'write pip install "torchspore[export]"'
            raise ImportError(message(f"{call}: the library {needed} is missing", "it to be installed", hint=hint)) from None
    if sum(t.numel() * t.element_size() for t in model.parameters.values()) > LARGEST:
        hint = "write file_format='MINDIR'"
        raise NotExportable(message(f"{call}: parameters of more than 2 GB", "as much as one ONNX file holds", hint=hint))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(folder) / "model.onnx"
        quiet = logging.getLogger("torch.onnx")
        level = quiet.level
        quiet.setLevel(logging.ERROR)
        try:
            program: Any = torch.onnx.export(
                _Net(model).eval(), tuple(tensors_given), dynamo=True, opset_version=OPSET, input_names=inputs, output_names=outputs,
                verbose=False, optimize=not form.takes_parameters,      # a weight that was turned while optimizing has another name
            )
            program.save(
                str(file), external_data=False, include_initializers=form.holds_parameters,
                keep_initializers_as_inputs=form.takes_parameters,
            )
        except Exception as error:
            raise NotExportable(message(f"{call}: {_reason(error)}", "operators that ONNX has")) from None
        finally:
            quiet.setLevel(level)
        return file.read_bytes()


def _reason(error: BaseException) -> str:
    """The operator that could not be translated, or what torch.onnx says in a line."""
    text = f"{error} {error.__cause__ or ''}"
    for word in text.replace("'", " ").replace(",", " ").split():
        if word.startswith("aten."):
            return f"no form in ONNX for {word.rstrip('.:;>')}"
    return text.strip().splitlines()[0][:160] if text.strip() else type(error).__name__
