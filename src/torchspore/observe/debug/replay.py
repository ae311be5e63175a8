"""Runs a step of a record again: the program runs up to the call, which gets the recorded inputs; the results are compared."""
from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from torchspore.base import json_text
from torchspore.blackbox.record_reader import NoRecord, Record, bounded, visible
from torchspore.engine.devices import device
from torchspore.engine.execution import current_operator, thread_state
from torchspore.engine.split_layouts.sharded_value import local_part
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals.torch_private import TorchDispatchMode
from torchspore.observe.debug import recorded_steps

_MOST = 1 << 24
"""Bytes of a step's JSON."""


class RecordedStep:
    """Return a step of a record. Raises NoRecord if it is damaged; nothing in the files is executed."""

    def __init__(self, record: Record, name: str = "") -> None:
        names = [name] if name else [recorded_steps.FIRST_BAD, recorded_steps.LAST, recorded_steps.LAST_LOOK]
        self.name = next((name for name in names if name in record.files), "")
        if not self.name:
            raise NoRecord(f"{record.folder}: the record {record.stamp} has no step {name.removeprefix('REPLAY.')}".rstrip()
                           + "; rdr.replay (MS_RDR_REPLAY=1) keeps them")
        files = {path.suffix: path for path in record.files[self.name]}
        if set(files) != {".json", ".safetensors"}:
            raise NoRecord(f"{record.folder}: the step {self.name} lacks a file, it has {', '.join(sorted(files)) or 'none'}")
        self.path = files[".json"]
        self.about = _json(files[".json"])
        self.tensors = _tensors(files[".safetensors"])
        try:
            self.label, self.number = str(self.about["label"]), int(self.about["number"])
            self.parameters = [(str(n), tuple(map(int, shape)), str(dtype)) for n, shape, dtype in self.about["parameters"]]
            recorded_steps.decoded(self.about["given"]["args"], self.tensors)
            recorded_steps.decoded(self.about["given"]["kwargs"], self.tensors)
            if any(self.tensors[f"before.{index}"].shape != shape for index, (_, shape, _) in enumerate(self.parameters)):
                raise ValueError("shapes")
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise NoRecord(f"{self.path}: the step is damaged ({type(error).__name__}: {visible(str(error))[:80]})") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        raw = bounded(path, _MOST)
        document = json_text.parse(raw) if len(raw) <= _MOST else None
    except (OSError, ValueError, RecursionError) as error:
        raise NoRecord(f"{path}: the step can't be read ({visible(str(error))[:80]})") from None
    if not isinstance(document, dict) or document.get("version") != recorded_steps.VERSION:
        raise NoRecord(f"{path}: expected a step of version {recorded_steps.VERSION}")
    return document


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    try:
        if path.is_symlink() or not path.is_file():
            raise OSError("no plain file")
        with safe_open(str(path), framework="pt") as file:
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError, RuntimeError, MemoryError, OverflowError) as error:
        raise NoRecord(f"{path}: the step's tensors can't be read ({visible(str(error))[:80]})") from None


class Player:
    """Waits for the call that the recorded step was, runs that, says what came of it, and ends the program."""

    def __init__(self, step: RecordedStep, say: Callable[[str], None]) -> None:
        self.step, self.say = step, say
        self.met: list[str] = []
        """Steps that were another call."""
        self.is_done = False

    def __call__(
        self, owner: Any, label: str, function: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    ) -> Any:
        parameters = recorded_steps.parameters_of(function)
        here = [(p.name, tuple(p._t.shape), str(p._t.dtype)) for p in parameters]
        if label != self.step.label or here != self.step.parameters:
            if label == self.step.label:
                label += f" ({_difference(here, self.step.parameters)})"
            if label not in self.met:
                self.met.append(label)
            return call(*args, **kwargs)
        self.is_done = True
        sys.exit(0 if self._play(function, parameters, call) else 1)

    def _play(self, function: Any, parameters: list[Any], call: Callable[..., Any]) -> bool:
        step = self.step
        self.say(f"replay: {step.label}, call {step.number} of the recorded run, from {step.path.parent}")
        try:
            self._restore(function, parameters)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
            self.say(f"replay: the step is damaged, its random state can't be restored ({type(error).__name__})")
            return False
        raised, result = self._called(call)
        is_equal = self._compared(raised, result, parameters)
        was_finite = step.about.get("finite", True)
        if raised is not None or not was_finite:
            self._look_for_bad(function, parameters, call)
        self.say("replay: the same bit for bit" if is_equal else "replay: NOT the same")
        return is_equal

    def _restore(self, function: Any, parameters: list[Any]) -> None:
        """Restore Parameters, the numbers of Cells and random state."""
        with torch.no_grad():
            for index, parameter in enumerate(parameters):
                parameter._t.copy_(self.step.tensors[f"before.{index}"])
        for cell, numbers in zip(recorded_steps.cells_of(function), self.step.about.get("numbers", ())):
            for name, value in numbers.items():
                if type(value) is type(vars(cell).get(name)) and isinstance(value, (bool, int, float)) and vars(cell)[name] != value:
                    setattr(cell, name, value)
        recorded_steps.restore_random(self.step.about["random"], self.step.tensors)

    def _called(self, call: Callable[..., Any]) -> tuple[BaseException | None, Any]:
        inputs = self.step.about["given"]
        at = device.current()
        args = recorded_steps.decoded(inputs["args"], self.step.tensors, at)
        kwargs = recorded_steps.decoded(inputs["kwargs"], self.step.tensors, at)
        try:
            return None, call(*args, **kwargs)
        except Exception as error:
            return error, None

    def _compared(self, raised: BaseException | None, result: Any, parameters: list[Any]) -> bool:
        recorded_error = self.step.about.get("raised")
        if raised is not None or recorded_error is not None:
            now = None if raised is None else [type(raised).__name__, str(raised)]
            self.say(f"recorded: {_error(recorded_error)}\nnow:      {_error(now)}")
            return now == recorded_error
        recorded_results: dict[str, torch.Tensor] = {}
        now = recorded_steps.encoded(result, recorded_results, "out")
        if self.step.about.get("result") is None:
            self.say("the recorded run did not come to the end of this step: " + str(self.step.about.get("result_refused", "it was ended")))
            return False
        is_equal = now == self.step.about["result"]
        for name, t in recorded_results.items():
            is_equal &= self._line(f"result {name.partition('.')[2]}", self.step.tensors.get(name), t)
        differing = [
            p.name for index, p in enumerate(parameters)
            if f"after.{index}" in self.step.tensors and not _equal(self.step.tensors[f"after.{index}"], local_part(p._t))
        ]
        if any(name.startswith("after.") for name in self.step.tensors):
            count = len(parameters) - len(differing)
            self.say(f"Parameters after the step: {count} of {len(parameters)} have the same bits" + (
                f"; not {', '.join(differing[:4])}" if differing else ""))
        return is_equal and not differing

    def _line(self, name: str, recorded: torch.Tensor | None, now: torch.Tensor) -> bool:
        is_equal = recorded is not None and _equal(recorded, now)
        self.say(f"{name}: {_shown(recorded)} recorded, {_shown(now)} now, {'the same bits' if is_equal else 'OTHER BITS'}")
        return is_equal

    def _look_for_bad(self, function: Any, parameters: list[Any], call: Callable[..., Any]) -> None:
        """Runs the step once more, operator by operator, and names the first one that makes NaN or infinity out of finite numbers."""
        self._restore(function, parameters)
        watch = _FirstBad()
        with watch:
            thread_state.in_pynative(lambda: self._called(call), (), {})
        self.say(watch.difference or "no operator makes NaN or infinity out of finite numbers")


class _FirstBad(TorchDispatchMode):
    """Finds the first operator with finite inputs whose result is not finite."""

    def __init__(self) -> None:
        super().__init__()
        self.difference = ""
        self._follower = current_operator.Follower()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        kernel = function._opname if hasattr(function, "_opname") else str(function)
        position = self._follower.now(kernel)
        if not self.difference and not all(map(recorded_steps.is_finite, _floats(out))):
            operands = [t for t in _floats((args, kwargs or {})) if not any(t is output for output in _floats(out))]
            if all(map(recorded_steps.is_finite, operands)):
                self.difference = _describe_operator(position, kernel, operands)
        return out


def _describe_operator(position: Any, kernel: str, operands: list[torch.Tensor]) -> str:
    name = f"{position.name} ({kernel})" if position is not None else kernel
    line = f" at {position.line}" if position is not None and position.line else ""
    ranges = ", ".join(f"{list(t.shape)} from {t.min().item():.6g} to {t.max().item():.6g}" for t in operands[:4] if t.numel())
    return f"first not finite: {name}{line}; its inputs were finite: {ranges or 'none'}"


def _floats(value: Any) -> list[torch.Tensor]:
    return [t for t in tree.leaves(value) if isinstance(t, torch.Tensor) and t.is_floating_point() and t.layout is torch.strided]


def _equal(recorded: torch.Tensor, now: torch.Tensor) -> bool:
    return recorded.dtype == now.dtype and recorded.shape == now.shape and recorded_steps.bits(recorded) == recorded_steps.bits(now)


def _shown(t: torch.Tensor | None) -> str:
    if t is None:
        return "nothing"
    return f"{t.reshape(-1)[0].item():.9g}" if t.numel() == 1 else f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}"


def _error(error_document: Any) -> str:
    return (
        visible(f"{error_document[0]}: {error_document[1]}".splitlines()[0])[:200]
        if isinstance(error_document, list) and len(error_document) == 2
        else "no error"
    )


def _difference(here: list[Any], recorded: list[Any]) -> str:
    if len(here) != len(recorded):
        return f"{len(here)} Parameters, the recorded one has {len(recorded)}"
    mine, other = next(pair for pair in zip(here, recorded) if pair[0] != pair[1])
    return f"{mine[0]} of {list(mine[1])}, the recorded one has {other[0]} of {list(other[1])}"


def play(step: RecordedStep, say: Callable[[str], None]) -> Player:
    """Replace the next matching step of this process by the recorded one."""
    player = Player(step, say)
    recorded_steps.run_by(player)
    return player
