"""Recorded training steps that can run again: inputs, Parameters and random state before, results after.

A step is a top-level call: of a Cell that is not an optimizer, of a gradient function, of a function of `jit`. While nothing is recorded,
such a call costs one look-up, and a Cell's call nothing: recording replaces the class's `__call__`.
"""
from __future__ import annotations

import functools
import json
import random as python_random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torchspore.base.files import READ_ONLY, write_atomically
from torchspore.engine.front_end import FRONT
from torchspore.engine.random import generators, operator_streams
from torchspore.engine.random import random_state as random
from torchspore.engine.split_layouts.sharded_value import local_part
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import TensorBase, wrap

LAST, FIRST_BAD, LAST_LOOK = "REPLAY.last_step", "REPLAY.first_not_finite", "REPLAY.last_evaluation"
GRADIENT = "the gradient of"
VERSION = 1
_MOST_CHECKED = 1 << 24
"""Elements of a result that are looked through for NaN and infinity."""


class _Active:
    """The function that runs steps."""

    def __init__(self) -> None:
        self.runner: Callable[[Any, str, Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any] | None = None
        """Runs a step, given its runner, its label, the function whose Parameters count, and the call; None if no recorder is on."""


ACTIVE = _Active()


class _Local(threading.local):
    inside = False


_local = _Local()


class NotRecordable(Exception):
    """A value that is not a Tensor, array, number or text, nor made of them; the text names it."""


@dataclass
class Step:
    """One step that was kept; tensors are copies on the host."""

    label: str
    number: int
    """The how-manieth call of this label it is, from 1 on."""
    tensors: dict[str, torch.Tensor]
    about: dict[str, Any]
    parameters: list[Any] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    """How often each Parameter had been written to when the step ended."""


def run(owner: Any, label: str, function: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a call that may be a step: one inside of another, or inside of a transform, is none."""
    if ACTIVE.runner is None or _local.inside or engine.frame() is not None:
        return call(*args, **kwargs)
    _local.inside = True
    try:
        return ACTIVE.runner(owner, label, function, call, args, kwargs)
    finally:
        _local.inside = False


def is_inside() -> bool:
    """Return whether this thread is in a step already, or in a transform."""
    return _local.inside or engine.frame() is not None


def run_by(new: Callable[..., Any] | None) -> None:
    """Set the object that runs steps from now on, or None."""
    ACTIVE.runner = new
    watch_cells()


def watch_cells() -> None:
    """Make calls of Cells steps, or stop; the front end calls this when it is loaded."""
    cell: Any = FRONT.cell
    if cell is None:
        return
    plain = getattr(cell.__call__, "plain", None)
    if ACTIVE.runner is None and plain is not None:
        cell.__call__ = plain
    if ACTIVE.runner is None or plain is not None:
        return
    plain = cell.__call__

    @functools.wraps(plain)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _local.inside or (FRONT.optimizer is not None and isinstance(self, FRONT.optimizer)):
            return plain(self, *args, **kwargs)
        return run(self, type(self).__qualname__, self, functools.partial(plain, self), args, kwargs)

    watched.plain = plain  # type: ignore[attr-defined]
    cell.__call__ = watched


class Keeper:
    """Stores each `every`-th step: the last one, and the first one with a result that is not finite.

    A call that changes no Parameter and computes no gradient is an evaluation: the last one is stored in addition to the last step.
    """

    def __init__(self, every: int) -> None:
        self.every = every
        self.running: Step | None = None
        self.last: Step | None = None
        self.last_look: Step | None = None
        self.first_bad: Step | None = None
        self.refused = ""
        self._counts: dict[str, int] = {}

    def __call__(
        self, owner: Any, label: str, function: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    ) -> Any:
        number = self._counts[label] = self._counts.get(label, 0) + 1
        if number % self.every:
            return call(*args, **kwargs)
        try:
            step = before(label, number, function, args, kwargs)
        except NotRecordable as refusal:
            self.refused = f"{label}: {refusal}"
            return call(*args, **kwargs)
        versions = [p._t._version for p in step.parameters]
        self.running = step
        try:
            result = call(*args, **kwargs)
        except Exception as error:
            step.about["raised"] = [type(error).__name__, str(error)]
            self.last = step
            raise
        finally:
            self.running = None
        if label.startswith(GRADIENT) or versions != [p._t._version for p in step.parameters]:
            self.last = step
        else:
            self.last_look = step
        ended(step, result)
        if self.first_bad is None and not step.about["finite"]:
            self.first_bad = step
            step.tensors.update(_after(step))
        return result

    def steps(self) -> list[tuple[str, Step]]:
        """The steps that are kept, each with the name of its files."""
        all_of_them = ((FIRST_BAD, self.first_bad), (LAST, self.running or self.last), (LAST_LOOK, self.last_look))
        steps: list[tuple[str, Step]] = []
        for name, step in all_of_them:
            if step is not None and all(step is not other for _, other in steps):
                steps.append((name, step))
        return steps

    def write(self, folder: Path, stamp: str) -> None:
        """Writes the steps into a record. Raises OSError."""
        from safetensors.torch import save_file  # the library is loaded where something is kept

        for name, step in self.steps():
            tensors = {**_after(step), **step.tensors}
            path = folder / f"{name}.{stamp}.safetensors"
            save_file(tensors, str(path))
            path.chmod(READ_ONLY)
            content = json.dumps({**step.about, "label": step.label, "number": step.number})
            write_atomically(folder / f"{name}.{stamp}.json", content, READ_ONLY)


def _after(step: Step) -> dict[str, torch.Tensor]:
    """Return the Parameters after the step; nothing if they have changed since, or if others update them."""
    if not step.parameters or [p._t._version for p in step.parameters] != step.versions:
        return {}
    return {f"after.{index}": _copy(p._t) for index, p in enumerate(step.parameters)}


def before(label: str, number: int, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Step:
    """The step that is about to run. Raises NotKept."""
    tensors: dict[str, torch.Tensor] = {}
    inputs = {"args": encoded(list(args), tensors, "in"), "kwargs": encoded(dict(kwargs), tensors, "in")}
    cells = cells_of(function)
    parameters = parameters_of(function)
    for index, parameter in enumerate(parameters):
        tensors[f"before.{index}"] = _copy(parameter._t)
    names = [[p.name, list(p._t.shape), str(p._t.dtype)] for p in parameters]
    about = {
        "version": VERSION,
        "given": inputs,
        "parameters": names,
        "random": random_state(tensors),
        "numbers": [numbers_of(c) for c in cells],
        "is_cell": FRONT.cell is not None and isinstance(function, FRONT.cell),
    }
    return Step(label, number, tensors, about, parameters)


def ended(step: Step, result: Any) -> None:
    """Record the results of a step."""
    tensors_found: dict[str, torch.Tensor] = {}
    try:
        step.about["result"] = encoded(result, tensors_found, "out")
        step.tensors.update(tensors_found)
    except NotRecordable as refusal:
        step.about["result"] = None
        step.about["result_refused"] = str(refusal)
    step.about["finite"] = all(map(is_finite, tensors_found.values()))
    if step.about["is_cell"]:
        step.versions = [p._t._version for p in step.parameters]
    else:
        step.parameters = []                      # their update comes later


def is_finite(t: torch.Tensor) -> bool:
    """Return whether there is not a NaN and no infinity in a tensor; of a very large one its beginning is looked at."""
    if not (t.is_floating_point() or t.is_complex()):
        return True
    return bool(torch.isfinite(t.reshape(-1)[:_MOST_CHECKED]).all())


# ---- values

def encoded(value: Any, tensors: dict[str, torch.Tensor], prefix: str) -> Any:
    """`value` as JSON; copies of the Tensors in it go into `tensors`. Raises NotKept."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return ["value", value]
    if isinstance(value, (TensorBase, np.ndarray)):
        t = value._t if isinstance(value, TensorBase) else _of_array(value)
        if t.layout is not torch.strided:
            raise NotRecordable("a sparse Tensor")
        name = f"{prefix}.{len(tensors)}"
        tensors[name] = _copy(t)
        return ["array" if isinstance(value, np.ndarray) else "tensor", name]
    if isinstance(value, (list, tuple)):
        return ["tuple" if isinstance(value, tuple) else "list", [encoded(item, tensors, prefix) for item in value]]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return ["dict", {key: encoded(item, tensors, prefix) for key, item in value.items()}]
    raise NotRecordable(f"a {type(value).__name__} among its arguments can't be stored")


def decoded(encoded_value: Any, tensors: dict[str, torch.Tensor], device: Any = None) -> Any:
    """Return the value that `encoded` received. Raises ValueError for anything else."""
    if not isinstance(encoded_value, list) or len(encoded_value) != 2:
        raise ValueError("a value of the step is damaged")
    kind, content = encoded_value
    if kind == "value" and (content is None or isinstance(content, (bool, int, float, str))):
        return content
    if kind in ("tensor", "array") and isinstance(content, str) and content in tensors:
        t = tensors[content].clone()
        return wrap(t.to(device)) if kind == "tensor" else t.numpy()
    if kind in ("list", "tuple") and isinstance(content, list):
        items = [decoded(item, tensors, device) for item in content]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict" and isinstance(content, dict):
        return {key: decoded(item, tensors, device) for key, item in content.items()}
    raise ValueError("a value of the step is damaged")


def _copy(t: torch.Tensor) -> torch.Tensor:
    return local_part(t).detach().to("cpu", copy=True).contiguous()


def _of_array(array: np.ndarray) -> torch.Tensor:
    try:
        return torch.from_numpy(np.ascontiguousarray(array)).reshape(array.shape)
    except TypeError:
        raise NotRecordable(f"an array of {array.dtype} can't be kept") from None


# ---- the state that a step depends on

def cells_of(function: Any) -> list[Any]:
    """The Cells that a step's function is or speaks of, by its free variables and globals."""
    objects: dict[int, Any] = {}
    for value in _spoken_of(function):
        if FRONT.cell is not None and isinstance(value, FRONT.cell):
            for _, cell in value.cells_and_names():
                objects.setdefault(id(cell), cell)
    return list(objects.values())


def parameters_of(function: Any) -> list[Any]:
    """Return the Parameters of these Cells, and those that the function refers to, each once."""
    objects: dict[int, Any] = {}
    for value in _spoken_of(function):
        if FRONT.cell is not None and isinstance(value, FRONT.cell):
            for parameter in value.get_parameters():
                objects.setdefault(id(parameter), parameter)
        else:
            for leaf in tree.leaves(value) if isinstance(value, (list, tuple, dict)) else [value]:
                if isinstance(leaf, TensorBase) and hasattr(type(leaf), "requires_grad") and isinstance(getattr(leaf, "name", None), str):
                    objects.setdefault(id(leaf), leaf)
    return list(objects.values())


def _spoken_of(function: Any, depth: int = 0) -> Iterator[Any]:
    if FRONT.cell is not None and isinstance(function, FRONT.cell):
        yield function
        return
    function = getattr(function, "__wrapped__", function)
    if hasattr(function, "__self__"):
        yield function.__self__
    code = getattr(function, "__code__", None)
    if code is None:
        return
    captured = [cell.cell_contents for cell in function.__closure__ or () if _is_full(cell)]
    for value in [*captured, *(function.__globals__[name] for name in code.co_names if name in function.__globals__)]:
        if depth < 3 and callable(value) and hasattr(getattr(value, "__wrapped__", value), "__code__"):
            yield from _spoken_of(value, depth + 1)
        else:
            yield value


def _is_full(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def numbers_of(cell: Any) -> dict[str, Any]:
    """The numbers that a Cell has as attributes: counters, rates."""
    return {
        name: value for name, value in vars(cell).items()
        if not name.startswith("_") and (isinstance(value, bool) or type(value) in (int, float))
    }


def random_state(tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
    """The state of all random streams of the process."""
    tensors["random.torch"] = generators.current_state()
    for device in generators.accelerators():
        tensors[f"random.device.{device.index}"] = generators.of_device(device).get_state()
    _, keys, position, has_gauss, gauss = np.random.get_state()
    tensors["random.numpy"] = torch.from_numpy(np.asarray(keys).astype(np.int64))
    version, state, next_gauss = python_random.getstate()
    tensors["random.python"] = torch.tensor(state, dtype=torch.int64)
    return {"numpy": [int(position), int(has_gauss), float(gauss)], "python": [version, next_gauss], "streams": random.state(),
            "operators": operator_streams.as_json()}


def restore_random(state: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
    """Continue from such a state."""
    generators.go_on_from(tensors["random.torch"])
    for device in generators.accelerators():
        if f"random.device.{device.index}" in tensors:
            generators.of_device(device).set_state(tensors[f"random.device.{device.index}"])
    position, has_gauss, gauss = state["numpy"]
    np.random.set_state(("MT19937", tensors["random.numpy"].numpy().astype(np.uint32), position, has_gauss, gauss))
    version, next_gauss = state["python"]
    python_random.setstate((version, tuple(tensors["random.python"].tolist()), next_gauss))
    random.restore(state["streams"])
    operator_streams.restore_json(state.get("operators"))


def bits(t: torch.Tensor) -> bytes:
    """The bits of a tensor, to be compared."""
    return t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
