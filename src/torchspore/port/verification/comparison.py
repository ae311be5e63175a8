"""Compares the ported Modules with the Cells: values and gradients for equal weights and inputs."""
from __future__ import annotations

import contextlib
import copy
import importlib
import sys
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torchspore.engine.execution.precision import Lowered
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore import nn as mindspore_nn
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.port import compat
from torchspore.port.analysis.call import HELPER
from torchspore.port.analysis.source import Source
from torchspore.port.rewriting.rewriter import Rewriter
from torchspore.port.verification.fixed_draws import fixed_draws
from torchspore.port.verification.lower_precision import TOLERANCE, LowestPrecision
from torchspore.port.verification.parameter_matches import copied_parameters
from torchspore.port.verification.recorded_run import ArrayOfTensor, Recorded, Recording
from torchspore.port.verification.results import CannotVerify, tensors_of_result
from torchspore.port.verification.without_dropout import without_dropout
from torchspore.torch_modules.cell_module import as_module

_DROPOUTS = (torch.nn.Dropout, torch.nn.Dropout1d, torch.nn.Dropout2d, torch.nn.Dropout3d, torch.nn.AlphaDropout,
             torch.nn.FeatureAlphaDropout)
_OF_PROGRAMS = ("__main__", "ported_source")
"""How the modules of recorded programs are named."""


@dataclass
class Verdict:
    """The comparison of one class."""

    name: str
    forward: float = float("nan")
    """The largest difference of the results, relative to the largest value."""
    gradient: float = float("nan")
    parameters: int = 0
    precision: str = "float32"
    reason: str = ""
    """Why the class was not compared."""
    steps: int = 0
    """For a script: the number of training steps; `forward` is about the losses, `gradient` about the weights."""
    layers: list[tuple[str, float]] = field(default_factory=list)
    """The largest difference of the gradient of each parameter."""
    tolerance: float = TOLERANCE
    unstable: float = 0.0
    """The share of weights whose difference is larger than the tolerance by rounding (rounding.py)."""

    @property
    def is_equal(self) -> bool:
        """True if values and gradients agree."""
        return not self.reason and self.forward <= self.tolerance and self.gradient <= self.tolerance


def module_of_text(text: str, name: str = "ported") -> types.ModuleType:
    """Execute the text of a port, which is the user's program in torch."""
    module = types.ModuleType(name)
    exec(compile(text, f"<{name}>", "exec", dont_inherit=True), vars(module))
    return module


def module_of_files(files: dict[str, str], entry: str, name: str = "ported", root: Path | None = None) -> types.ModuleType:
    """Import the texts of a port of several files, and return the module of the entry; `modules` of it has all by their names.

    The other files below `root`, such as configurations, are beside them.
    """
    names = {path: path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in files}
    tops = {name.split(".")[0] for name in names.values()}
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in tops}
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        if root is not None:
            _link_data(root, Path(folder))
        sys.path.insert(0, folder)
        try:
            others = [module for path, module in names.items() if path != entry or name != "__main__"]
            modules = {module: importlib.import_module(module) for module in others}
            if name == "__main__":                           # a script
                modules[names[entry]] = module_of_text(files[entry], name)
        finally:
            sys.path.remove(folder)
            for name in [name for name in sys.modules if name.split(".")[0] in tops]:
                del sys.modules[name]
            sys.modules.update(before)
    result = modules[names[entry]]
    result.__dict__["__modules__"] = modules
    return result


def _link_data(root: Path, folder: Path) -> None:
    """Link the files and folders of a project that are not Python source into the folder of its port."""
    for path in sorted(root.iterdir()):
        target = folder / path.name
        if path.suffix in (".py", ".pyc") or path.name.startswith(".") or path.name == "__pycache__" or target.is_file():
            continue
        if path.is_dir() and (target.is_dir() or any(path.glob("*.py"))):
            target.mkdir(exist_ok=True)
            _link_data(path, target)
        else:
            target.symlink_to(path.resolve())


class Builder:
    """Creates the ported Module of a Cell from the recorded arguments of its constructor."""

    def __init__(self, ported: types.ModuleType, recording: Recording) -> None:
        self.ported, self.recording = ported, recording
        self.modules: dict[int, torch.nn.Module] = {}
        self.namespace = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "Any": Any}
        self.namespace.update(_typing())
        exec("from __future__ import annotations\n" + "\n\n".join(compat.definitions().values()), self.namespace)

    def created(self, text: str) -> torch.nn.Module:
        """Return the Module that a call of a function of the program creates."""
        module = eval(text, {**self.namespace, **vars(self.ported)})
        if not isinstance(module, torch.nn.Module):
            raise CannotVerify(f"{text} returns {type(module).__name__}")
        return module

    def build(self, cell: Any) -> torch.nn.Module:
        """Return the Module. Raises CannotVerify if its arguments are not known."""
        if id(cell) in self.modules:
            return self.modules[id(cell)]
        if id(cell) not in self.recording.creations:
            raise CannotVerify(f"the arguments of {type(cell).__name__} are not known")
        _, args, kwargs = self.recording.creations[id(cell)]
        if type(cell).__module__.startswith("torchspore."):
            module = self._layer(type(cell).__name__, args, kwargs)
        else:
            cls = self._counterpart(type(cell))
            if cls is None:
                raise CannotVerify(f"{type(cell).__name__} is not ported")
            module = cls(*(self.convert(value) for value in args), **{key: self.convert(value) for key, value in kwargs.items()})
        self.modules[id(cell)] = module
        return module

    def _counterpart(self, value: Any) -> Any:
        """Return the ported class or function of the program; None if it has none."""
        modules = vars(self.ported).get("__modules__", {})
        return getattr(modules.get(value.__module__, self.ported), value.__name__, None)

    def _layer(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.nn.Module:
        """Return the torch form of a layer of MindSpore."""
        values: dict[str, Any] = {}

        def text_of(value: Any) -> str:
            items = value if isinstance(value, tuple) else (value,)
            if all(isinstance(item, (int, float, str, type(None))) for item in items):
                return repr(value)
            values[f"value_{len(values)}"] = self.convert(value)
            return f"value_{len(values) - 1}"

        words = [text_of(value) for value in args] + [f"{key}={text_of(value)}" for key, value in kwargs.items()]
        text = self._ported_expression(f"nn.{name}({', '.join(words)})")
        return eval(text, {**self.namespace, **values})

    @staticmethod
    def _ported_expression(text: str) -> str:
        rewriter = Rewriter(Source(f"from mindspore import nn, ops\nx = {text}\n"))
        statement = rewriter.source.tree.body[1]
        text = rewriter.render(statement.value)  # type: ignore[attr-defined]
        if rewriter.problems:
            raise CannotVerify(rewriter.problems[0].text)
        return text.replace(HELPER, "")

    def convert(self, value: Any) -> Any:
        """Return an argument in torch."""
        if isinstance(value, Cell):
            return self.build(value)
        if isinstance(value, Parameter):
            for cell_id, module in self.modules.items():
                for _, parameter, target in copied_parameters(self.recording.creations[cell_id][0], module):
                    if parameter is value:
                        return target
        if isinstance(value, Tensor):
            return torch.from_numpy(np.array(value.asnumpy(), copy=True))
        if type(value) in (list, tuple):
            return type(value)(self.convert(item) for item in value)
        if isinstance(value, dict):
            return {key: self.convert(item) for key, item in value.items()}
        if isinstance(value, (type, types.FunctionType)):
            return self._named(value)
        dtype = getattr(torch, str(value).lower().rpartition(".")[2], None)
        if isinstance(dtype, torch.dtype) and not isinstance(value, (str, torch.dtype)):
            return dtype                                     # a dtype of MindSpore
        if isinstance(value, torch.dtype) or not type(value).__module__.startswith("torchspore."):
            return self._with_attributes(value)
        raise CannotVerify(f"an argument of type {type(value).__name__}")

    def _with_attributes(self, value: Any) -> Any:
        """Return an object of the user, such as a configuration, with its attributes in torch."""
        if type(value).__module__ not in (*_OF_PROGRAMS, *vars(self.ported).get("__modules__", ())):
            return value
        copied = copy.copy(value)
        with contextlib.suppress(TypeError):                 # without attributes
            vars(copied).update({name: self.convert(item) for name, item in vars(value).items()})
        return copied

    def _named(self, value: Any) -> Any:
        if not value.__module__.startswith("torchspore."):
            return self._counterpart(value) or value
        home = "nn" if hasattr(mindspore_nn, value.__name__) else "ops"
        return eval(self._ported_expression(f"{home}.{value.__name__}"), self.namespace)


def _typing() -> dict[str, Any]:
    import math
    import os
    from collections import OrderedDict
    from collections.abc import Callable, Iterable, Iterator, Sequence

    return {
        "OrderedDict": OrderedDict, "math": math, "os": os, "np": np, "Callable": Callable, "Iterator": Iterator, "Sequence": Sequence,
        "Iterable": Iterable, "Any": Any, "Tensor": torch.Tensor, "optim": torch.optim, "Dataset": torch.utils.data.Dataset,
        "IterableDataset": torch.utils.data.IterableDataset,
    }


def prepared(recorded: Recorded, builder: Builder) -> tuple[torch.nn.Module, list[tuple[str, Any, torch.Tensor]]]:
    """Return the ported Module with the Cell's values before the call, and its parameters beside the Cell's."""
    module = builder.build(recorded.original) if not recorded.creation else builder.created(recorded.creation)
    for path, parameter in recorded.cell.parameters_and_names():
        if path in recorded.state:
            parameter.set_data(Tensor(recorded.state[path]))
    matches = list(copied_parameters(recorded.cell, module))
    with torch.no_grad():
        for _, parameter, target in matches:
            target.copy_(raw(parameter).detach().reshape(target.shape))
            if isinstance(target, torch.nn.Parameter) and target.is_floating_point():      # those that the program has frozen too
                parameter.requires_grad = True
                target.requires_grad_()
    return module, matches


def compare(recorded: Recorded, builder: Builder, precision: torch.dtype = torch.float32, is_other_mode: bool = False) -> Verdict:
    """Compare a Cell and its ported Module at the recorded call; `is_other_mode`: in evaluation if it was training, and the reverse."""
    verdict = Verdict(type(recorded.cell).__name__, precision=str(precision).removeprefix("torch."))
    module, matches = prepared(recorded, builder)
    reference = as_module(recorded.cell)
    has_other_dtypes = any(raw(parameter).dtype != target.dtype for _, parameter, target in matches)
    for each in (reference, module):
        each.train(recorded.is_training is not is_other_mode)
        if precision != torch.float32 or has_other_dtypes:
            each.to(precision)
    matches = list(copied_parameters(recorded.cell, module))         # `to` replaces buffers, such as running statistics
    _convert_attributes(module, precision)
    _switch_off_dropout(recorded.cell, module)
    _check_all_matched(module, [target for _, _, target in matches])
    inputs = [_to_torch((recorded.args, recorded.kwargs), precision) for _ in range(2)]
    try:
        expected = _run(reference, *inputs[0])
    except Exception as error:
        raise _OriginalFails(str(error)) if is_other_mode else error
    with LowestPrecision() as lowest:
        actual = _run(module, *inputs[1])
    if lowest.dtypes:
        verdict.tolerance = lowest.tolerance
        verdict.precision += f" and {lowest.names}, tolerance {lowest.tolerance:.0e}"
    if not expected and not actual and not matches:
        raise CannotVerify("the call returns nothing that can be compared")
    verdict.parameters = len(matches)
    verdict.forward = _difference(expected, actual)
    _backward(expected)
    _backward(actual)
    for index, (first, second) in enumerate(zip(_tensors(inputs[0]), _tensors(inputs[1]))):
        if first.requires_grad and first.grad is not None and bool(first.grad.any()):      # MindSpore gives labels no gradient
            verdict.layers.append((f"input {index}", _difference(_gradient(first), _gradient(second))))
    verdict.layers += _gradient_differences(reference, matches)
    verdict.gradient = max((difference for _, difference in verdict.layers), default=0.0)
    verdict.forward = max([verdict.forward, *_state_differences(reference, matches)])
    return verdict


def lowered_layers(cell: Any) -> list[Any]:
    """Return the layers that compute in the dtype of `to_float`."""
    return [layer for _, layer in cell.cells_and_names() if isinstance(vars(layer).get("_lower_"), Lowered)]


def _convert_attributes(module: torch.nn.Module, precision: torch.dtype) -> None:
    """Convert the tensors that are plain attributes, which `Module.to` leaves as they are."""
    for part in module.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float64):
                setattr(part, name, value.to(precision))


def _gradient_differences(reference: torch.nn.Module, matches: list[tuple[str, Any, torch.Tensor]]) -> list[tuple[str, float]]:
    """Return the difference of the gradient of each parameter."""
    by_path = dict(reference.named_parameters())
    gradients = [
        (path, _gradient(by_path[path])[0], _gradient(target)[0]) for path, _, target in matches
        if path in by_path and isinstance(target, torch.nn.Parameter)
    ]
    largest = max((float(first.abs().nan_to_num(posinf=0.0).max()) for _, first, _ in gradients if first.numel()), default=0.0)
    least = largest * 1e-3                                   # a gradient may be 0 but for rounding, beside larger ones
    return [(path, _difference([first], [second.reshape(first.shape)], least)) for path, first, second in gradients]


def _state_differences(reference: torch.nn.Module, matches: list[tuple[str, Any, torch.Tensor]]) -> Iterator[float]:
    """Yield the differences of what the call has written: running statistics, and Parameters that it assigns."""
    values = {**dict(reference.named_parameters()), **dict(reference.named_buffers())}
    for path, _, target in matches:
        if path in values:
            yield _difference([values[path].reshape(target.shape)], [target])


def _switch_off_dropout(cell: Any, module: torch.nn.Module) -> None:
    """Random masks differ: dropout is compared as the identity."""
    for _, layer in cell.cells_and_names():
        if type(layer).__name__.startswith("Dropout"):
            layer.set_train(False)
    for part in module.modules():
        if isinstance(part, _DROPOUTS):
            part.eval()


def _check_all_matched(module: torch.nn.Module, targets: list[torch.Tensor]) -> None:
    """Raises CannotVerify if the Module has parameters that the Cell lacks."""
    matched = set(map(id, targets))
    extra = [name for name, parameter in module.named_parameters() if id(parameter) not in matched]
    if extra:
        raise CannotVerify(f"the Cell has no Parameter for {extra[0]}")


def _run(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    module.zero_grad()
    result = module(*_cloned(args), **_cloned(kwargs))
    return [] if result is None else list(tensors_of_result(result))


def _cloned(value: Any) -> Any:
    """Return a nest whose tensors are copies: the Module may write into them."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: _cloned(item) for key, item in value.items()}
    return type(value)(map(_cloned, value)) if isinstance(value, (list, tuple)) else value


def _to_torch(value: Any, precision: torch.dtype) -> Any:
    if isinstance(value, ArrayOfTensor):
        t = torch.from_numpy(np.array(value.values, copy=True))
        if not t.is_floating_point():
            return t
        return (t.to(precision) if precision == torch.float64 else t).requires_grad_()
    if isinstance(value, (list, tuple)):
        return type(value)(_to_torch(item, precision) for item in value)
    if isinstance(value, dict):
        return {key: _to_torch(item, precision) for key, item in value.items()}
    return value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a nest."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)


def _gradient(parameter: torch.Tensor) -> list[torch.Tensor]:
    return [torch.zeros_like(parameter) if parameter.grad is None else parameter.grad]


def _difference(expected: list[torch.Tensor], actual: list[torch.Tensor], least: float = 1e-6) -> float:
    """Return the largest difference relative to the largest value, at least `least`; infinity for other shapes."""
    if len(expected) != len(actual):
        return float("inf")
    largest = 0.0
    for first, second in zip(expected, actual):
        if first.shape != second.shape:
            return float("inf")
        if first.numel() == 0:
            continue
        if first.is_complex() or second.is_complex():
            first, second = (torch.view_as_real(each.detach().to(torch.complex128)) for each in (first, second))
        a, b = first.detach().double().reshape(-1), second.detach().double().reshape(-1)
        are_equal = (a == b) | (a.isnan() & b.isnan())
        finite = a[a.isfinite()]
        scale = max(least, float(finite.abs().max()) if finite.numel() else 1.0, 1e-30)
        gap = torch.where(are_equal, torch.zeros_like(a), (a - b).abs().nan_to_num(nan=float("inf")))
        largest = max(largest, float(gap.max()) / scale)
    return largest


def _backward(results: list[torch.Tensor]) -> None:
    """Add up the results with fixed weights, and compute the gradients."""
    generator = torch.Generator().manual_seed(0)
    total: Any = 0
    for result in results:
        if result.requires_grad and result.is_floating_point():
            weights = torch.rand(result.shape, generator=generator, dtype=torch.float64).to(result)
            finite = torch.where(result.isfinite(), result, torch.zeros_like(result))
            total = total + (finite * weights).sum()
    if isinstance(total, torch.Tensor):
        total.backward()


class _OriginalFails(Exception):
    """The Cell can't be called in this mode."""


def _compared(ported: types.ModuleType, recorded: Recorded, recording: Recording, is_other_mode: bool = False) -> Verdict:
    """Return the verdict of one mode; in float64 where float32 exceeds the tolerance by rounding."""
    verdict = compare(recorded, Builder(ported, recording), is_other_mode=is_other_mode)
    if not verdict.is_equal and verdict.forward < 0.01:
        with contextlib.suppress(Exception):
            return compare(recorded, Builder(ported, recording), torch.float64, is_other_mode)
    return verdict


def verify(ported_text: str | types.ModuleType, class_names: list[str], recording: Recording) -> list[Verdict]:
    """Compare the classes that the recording has calls of, without the lower precision of `to_float`."""
    verdicts = []
    ported = module_of_text(ported_text) if isinstance(ported_text, str) else ported_text
    for name in class_names:
        recorded = recording.calls.get(name)
        if recorded is None:
            continue
        lowered = lowered_layers(recorded.cell)
        for layer in lowered:                                # the port computes in float32 instead
            vars(layer)["_lower_"] = None
        try:
            with without_dropout(ported), fixed_draws():
                verdict = _compared(ported, recorded, recording)
                if verdict.is_equal:
                    with contextlib.suppress(_OriginalFails):
                        other = _compared(ported, recorded, recording, True)
                        verdict = max(verdict, other, key=lambda each: max(each.forward, each.gradient))
        except Exception as error:
            verdict = Verdict(name, reason=f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}")
        verdict.precision += ", without to_float" if lowered else ""
        verdicts.append(verdict)
    return verdicts
