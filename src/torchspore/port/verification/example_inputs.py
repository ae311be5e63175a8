"""Inputs of the comparison where no program calls the Cell: from the command line, or inferred from its first layer."""
from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from torchspore.mindspore import nn as mindspore_nn
from torchspore.mindspore.common.tensor import Tensor
from torchspore.port.analysis.source import PortError
from torchspore.port.verification import recorded_run
from torchspore.port.verification.recorded_run import ArrayOfTensor, Recorded, Recorder, Recording, state_of
from torchspore.translations import translate

nn: Any = mindspore_nn
_FLOATS = ("float16", "float32", "float64", "bfloat16")
_KINDS = (*_FLOATS, "int8", "int16", "int32", "int64", "uint8", "bool")


def array_of(text: str) -> np.ndarray[Any, Any]:
    """Return random values for a text such as `8,3,32,32` or `4,16,int32:100`. Raises PortError for another text."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    kind, limit = "float32", 2
    if words and not words[-1].isdigit():
        name, _, number = words.pop().partition(":")
        if name not in _KINDS or (number and not number.isdigit()):
            raise PortError(f"--example {text}: expected a shape and a dtype, such as 8,3,32,32 or 4,16,int32:100.")
        kind, limit = name, int(number or 2)
    if not all(word.isdigit() for word in words):
        raise PortError(f"--example {text}: expected a shape and a dtype, such as 8,3,32,32 or 4,16,int32:100.")
    shape, random = tuple(map(int, words)), np.random.RandomState(0)
    if kind in _FLOATS:
        return random.standard_normal(shape).astype("float32" if kind == "bfloat16" else kind)
    return random.randint(0, limit, shape).astype(kind)


def recording(
    path: str, name: str, arguments: str | None, texts: list[str], earlier: Recording | None = None, package: tuple[str, str] | None = None,
) -> Recording:
    """Import the file, create the class and return its first call. Raises PortError with what to pass if an argument is missing."""
    recorder = Recorder({name})
    imported = earlier or recorded_run.run(path, set(), False, package=package)
    namespace, error = imported.namespace, imported.error
    if name not in namespace:
        sentence = translate("{path}: the import ended before {name} was defined: {error}.") if error else translate(
            "{path}: the import ended before {name} was defined.")
        raise PortError(sentence.format(path=path, name=name, error=error))
    cls = namespace[name]
    with recorder.active():
        classes = [value for value in namespace.values() if isinstance(value, type) and issubclass(value, nn.Cell)]
        for each in dict.fromkeys(base for known in classes for base in known.__mro__ if issubclass(base, nn.Cell)):
            recorder.record_creations(each)
        cell = _created(cls, arguments, namespace)
    creation = "" if isinstance(cls, type) else f"{name}({arguments or ''})"
    result = recorder.recording
    result.namespace, result.absent = namespace, imported.absent
    inputs = [[array_of(text) for text in texts]] if texts else list(_inferred(cell, name))
    for values in inputs:
        before = state_of(cell)
        try:
            cell(*(Tensor(value) for value in values))
        except Exception as error:
            if texts:
                sentence = translate("{name} can't be called with {inputs}: {error}")
                raise PortError(sentence.format(name=name, inputs=", ".join(texts), error=error)) from error
            continue
        result.calls[name] = Recorded(cell, cell, tuple(map(ArrayOfTensor, values)), {}, before, cell.training, creation)
        return result
    sentence = translate("{name}: the inputs of construct{signature} can't be inferred. Pass them: --example 8,3,32,32, or --example "
                         "4,16,int32:100 for integers below 100.")
    raise PortError(sentence.format(name=name, signature=inspect.signature(type(cell).construct)))


def _created(cls: Any, arguments: str | None, namespace: dict[str, Any]) -> Any:
    call = f"{cls.__name__}({arguments or ''})"
    try:
        ast.parse(call, mode="eval")
        cell = eval(call, {"np": np, "nn": nn, "Tensor": Tensor, **namespace})
    except Exception as error:
        signature = f"__init__{inspect.signature(vars(cls)['__init__'])}" if "__init__" in vars(cls) else f"{inspect.signature(cls)}"
        hint = "" if arguments else translate(' Pass its arguments: --args "..." for {signature}.').format(signature=signature)
        raise PortError(f"{call}: {error}.{hint}") from error
    if not isinstance(cell, nn.Cell):
        raise PortError(f"{call}: expected a Cell, got {type(cell).__name__}.")
    return cell


def _inferred(cell: Any, name: str) -> Iterator[list[np.ndarray[Any, Any]]]:
    """Return inputs that may fit the first layer, if construct needs one."""
    parameters = [p for p in inspect.signature(type(cell).construct).parameters.values() if p.name != "self"]
    required = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(required) != 1:
        return
    for _, layer in cell.cells_and_names():
        if isinstance(layer, nn.Conv2d):
            yield from ([array_of(f"2,{layer.in_channels},{size},{size}")] for size in (32, 64, 224, 28, 227, 299))
            return
        if isinstance(layer, nn.Conv1d):
            yield from ([array_of(f"2,{layer.in_channels},{size}")] for size in (32, 128))
            return
        if isinstance(layer, nn.Embedding):
            yield from ([array_of(f"2,{size},int32:{layer.vocab_size}")] for size in (8, 16, 32))
            return
        if isinstance(layer, nn.Dense):
            yield [array_of(f"4,{layer.in_channels}")]
            yield [array_of(f"4,8,{layer.in_channels}")]
            return
