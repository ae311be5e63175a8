"""Runs a step of a record again: the program goes up to the call, which gets what the recorded one had, and what comes out is compared."""
from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch.utils._python_dispatch import TorchDispatchMode

from torchspore.base import json_text
from torchspore.blackbox.reading import NoRecord, Record, bounded, visible
from torchspore.engine.core import current_operator, device, thread_state, tree
from torchspore.engine.core.sharded_value import own_part
from torchspore.observe.debug import recorded_steps

_MOST = 1 << 24
"""Bytes of a step's JSON."""


class Kept:
    """A step of a record. Raises NoRecord where it is damaged; nothing in the files runs."""

    def __init__(self, record: Record, name: str = "") -> None:
        names = [name] if name else [recorded_steps.FIRST_BAD, recorded_steps.LAST, recorded_steps.LAST_LOOK]
        self.name = next((one for one in names if one in record.files), "")
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
            if any(self.tensors[f"before.{place}"].shape != shape for place, (_, shape, _) in enumerate(self.parameters)):
                raise ValueError("shapes")
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise NoRecord(f"{self.path}: the step is damaged ({type(error).__name__}: {visible(str(error))[:80]})") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        raw = bounded(path, _MOST)
        found = json_text.parse(raw) if len(raw) <= _MOST else None
    except (OSError, ValueError, RecursionError) as error:
        raise NoRecord(f"{path}: the step can't be read ({visible(str(error))[:80]})") from None
    if not isinstance(found, dict) or found.get("version") != recorded_steps.VERSION:
        raise NoRecord(f"{path}: expected a step of version {recorded_steps.VERSION}")
    return found


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

    def __init__(self, kept: Kept, say: Callable[[str], None]) -> None:
        self.kept, self.say = kept, say
        self.met: list[str] = []
        """Steps that were another call."""
        self.is_done = False

    def __call__(
        self, owner: Any, label: str, function: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    ) -> Any:
        parameters = recorded_steps.parameters_of(function)
        here = [(p.name, tuple(p._t.shape), str(p._t.dtype)) for p in parameters]
        if label != self.kept.label or here != self.kept.parameters:
            if label == self.kept.label:
                label += f" ({_difference(here, self.kept.parameters)})"
            if label not in self.met:
                self.met.append(label)
            return call(*args, **kwargs)
        self.is_done = True
        sys.exit(0 if self._play(function, parameters, call) else 1)

    def _play(self, function: Any, parameters: list[Any], call: Callable[..., Any]) -> bool:
        kept = self.kept
        self.say(f"replay: {kept.label}, call {kept.number} of the recorded run, from {kept.path.parent}")
        try:
            self._restore(function, parameters)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
            self.say(f"replay: the step is damaged, its random state can't be restored ({type(error).__name__})")
            return False
        raised, result = self._called(call)
        is_same = self._compared(raised, result, parameters)
        told = kept.about.get("finite", True)
        if raised is not None or not told:
            self._look_for_bad(function, parameters, call)
        self.say("replay: the same bit for bit" if is_same else "replay: NOT the same")
        return is_same

    def _restore(self, function: Any, parameters: list[Any]) -> None:
        """Puts Parameters, the numbers of Cells and random state where they were."""
        with torch.no_grad():
            for place, parameter in enumerate(parameters):
                parameter._t.copy_(self.kept.tensors[f"before.{place}"])
        for cell, numbers in zip(recorded_steps.cells_of(function), self.kept.about.get("numbers", ())):
            for name, value in numbers.items():
                if type(value) is type(vars(cell).get(name)) and isinstance(value, (bool, int, float)) and vars(cell)[name] != value:
                    setattr(cell, name, value)
        recorded_steps.restore_random(self.kept.about["random"], self.kept.tensors)

    def _called(self, call: Callable[..., Any]) -> tuple[BaseException | None, Any]:
        given = self.kept.about["given"]
        at = device.current()
        args = recorded_steps.decoded(given["args"], self.kept.tensors, at)
        kwargs = recorded_steps.decoded(given["kwargs"], self.kept.tensors, at)
        try:
            return None, call(*args, **kwargs)
        except Exception as error:
            return error, None

    def _compared(self, raised: BaseException | None, result: Any, parameters: list[Any]) -> bool:
        told = self.kept.about.get("raised")
        if raised is not None or told is not None:
            now = None if raised is None else [type(raised).__name__, str(raised)]
            self.say(f"recorded: {_error(told)}\nnow:      {_error(now)}")
            return now == told
        found: dict[str, torch.Tensor] = {}
        now = recorded_steps.encoded(result, found, "out")
        if self.kept.about.get("result") is None:
            self.say("the recorded run did not come to the end of this step: " + str(self.kept.about.get("result_refused", "it was ended")))
            return False
        is_same = now == self.kept.about["result"]
        for name, t in found.items():
            is_same &= self._line(f"result {name.partition('.')[2]}", self.kept.tensors.get(name), t)
        differing = [
            p.name for place, p in enumerate(parameters)
            if f"after.{place}" in self.kept.tensors and not _equal(self.kept.tensors[f"after.{place}"], own_part(p._t))
        ]
        if any(name.startswith("after.") for name in self.kept.tensors):
            count = len(parameters) - len(differing)
            self.say(f"Parameters after the step: {count} of {len(parameters)} have the same bits" + (
                f"; not {', '.join(differing[:4])}" if differing else ""))
        return is_same and not differing

    def _line(self, name: str, told: torch.Tensor | None, now: torch.Tensor) -> bool:
        same = told is not None and _equal(told, now)
        self.say(f"{name}: {_shown(told)} recorded, {_shown(now)} now, {'the same bits' if same else 'OTHER BITS'}")
        return same

    def _look_for_bad(self, function: Any, parameters: list[Any], call: Callable[..., Any]) -> None:
        """Runs the step once more, operator by operator, and names the first one that makes NaN or infinity out of finite numbers."""
        self._restore(function, parameters)
        watch = _FirstBad()
        with watch:
            thread_state.in_pynative(lambda: self._called(call), (), {})
        self.say(watch.found or "no operator makes NaN or infinity out of finite numbers")


class _FirstBad(TorchDispatchMode):
    """Notes the first operator that gives a number that is not finite and was given none."""

    def __init__(self) -> None:
        super().__init__()
        self.found = ""
        self._follower = current_operator.Follower()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        kernel = function._opname if hasattr(function, "_opname") else str(function)
        place = self._follower.now(kernel)
        if not self.found and not all(map(recorded_steps.is_finite, _floats(out))):
            given = [t for t in _floats((args, kwargs or {})) if not any(t is one for one in _floats(out))]
            if all(map(recorded_steps.is_finite, given)):
                self.found = _told(place, kernel, given)
        return out


def _told(place: Any, kernel: str, given: list[torch.Tensor]) -> str:
    name = f"{place.name} ({kernel})" if place is not None else kernel
    line = f" at {place.line}" if place is not None and place.line else ""
    ranges = ", ".join(f"{list(t.shape)} from {t.min().item():.6g} to {t.max().item():.6g}" for t in given[:4] if t.numel())
    return f"first not finite: {name}{line}; its inputs were finite: {ranges or 'none'}"


def _floats(value: Any) -> list[torch.Tensor]:
    return [t for t in tree.leaves(value) if isinstance(t, torch.Tensor) and t.is_floating_point() and t.layout is torch.strided]


def _equal(told: torch.Tensor, now: torch.Tensor) -> bool:
    return told.dtype == now.dtype and told.shape == now.shape and recorded_steps.bits(told) == recorded_steps.bits(now)


def _shown(t: torch.Tensor | None) -> str:
    if t is None:
        return "nothing"
    return f"{t.reshape(-1)[0].item():.9g}" if t.numel() == 1 else f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}"


def _error(told: Any) -> str:
    return visible(f"{told[0]}: {told[1]}".splitlines()[0])[:200] if isinstance(told, list) and len(told) == 2 else "no error"


def _difference(here: list[Any], kept: list[Any]) -> str:
    if len(here) != len(kept):
        return f"{len(here)} Parameters, the recorded one has {len(kept)}"
    mine, other = next(pair for pair in zip(here, kept) if pair[0] != pair[1])
    return f"{mine[0]} of {list(mine[1])}, the recorded one has {other[0]} of {list(other[1])}"


def play(kept: Kept, say: Callable[[str], None]) -> Player:
    """Makes the next matching step of this process the recorded one."""
    player = Player(kept, say)
    recorded_steps.run_by(player)
    return player
