"""Graphs that are tuned later: kept as files, and worked off by `torchspore tune`."""
from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from torchspore.base.files import read_plain
from torchspore.base.frames import user_line
from torchspore.graph.autotune import tuning_file
from torchspore.graph.backend import measurement
from torchspore.graph.fx import serialize
from torchspore.graph.fx.sample_inputs import filled
from torchspore.graph.settings import Flags, Settings, Tuning
from torchspore.translations import translate

Module = torch.fx.GraphModule


def keep(
    key: str, module: Module, inputs: measurement.Inputs, settings: Settings, persistent: frozenset[int], tuning: Tuning
) -> Path | None:
    """Write a graph into the tuning file, with a file of its own beside it. Return the tuning file, None after a failure, which is reported
    once."""
    try:
        graph = serialize.write(module)
    except serialize.Unwritable as reason:
        tuning_file.report_message(f"tuning: the graph at {user_line()} can't be stored ({reason}); it runs untuned.")
        return None
    where = tuning_file.path()
    file_name = f"graphs/{key}.json"
    entry = {
        "net": user_line() or "", "status": "to do", "job": tuning.job, "searches": list(tuning.searches), "graph": file_name,
        "settings": dataclasses.asdict(settings), "held": sorted(persistent), "ranges": [_range(t) for t in inputs()],
    }
    try:
        (where.parent / "graphs").mkdir(parents=True, exist_ok=True)
        tuning_file.write(where.parent / file_name, graph)
    except OSError as error:
        tuning_file.report_message(f"tuning: {where.parent} can't be written ({error.strerror or error}); the program continues untuned.")
        return None
    return tuning_file.keep(key, entry, where)


def _range(t: torch.Tensor) -> list[int] | None:
    """Return the smallest and largest integer, so that made-up integers are valid indexes."""
    if t.is_floating_point() or t.is_complex() or not t.numel():
        return None
    return [int(t.min()), int(t.max())]


@dataclasses.dataclass
class Waiting:
    """A graph that waits, with all that its search needs."""

    key: str
    entry: dict[str, Any]
    module: Module
    settings: Settings
    persistent: frozenset[int]
    tuning: Tuning

    def inputs(self) -> list[torch.Tensor]:
        """Made-up inputs of the shapes and ranges that the program had."""
        entries = []
        generator = torch.Generator().manual_seed(0)
        placeholders = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        for node, span in zip(placeholders, self.entry["ranges"], strict=True):
            def fill(t: torch.Tensor, span: Any = span) -> None:
                if span is None:
                    t.copy_(torch.rand(t.shape, generator=generator) * 0.1 + 0.01)
                else:
                    t.copy_(torch.randint(span[0], span[1] + 1, tuple(t.shape), generator=generator))

            entries.append(filled(node.meta["val"], fill))
        return entries


def waiting(where: Path, graphs: dict[str, dict[str, Any]]) -> Iterator[Waiting | str]:
    """The graphs of a tuning file that are to do; a text for each that can't be read."""
    for key, entry in graphs.items():
        if entry.get("status") != "to do":
            continue
        try:
            if entry["graph"] != f"graphs/{key}.json" or not key.isalnum():
                raise ValueError("its graph is in another folder")
            module = serialize.read(json.loads(read_plain(where.parent / entry["graph"])))
            settings = _settings(entry["settings"])
            tuning = Tuning(tuple(entry["searches"]), True, entry["job"])
            if entry["job"] not in ("1", "2") or not {*tuning.searches} <= {"RL", "GA"} or not isinstance(entry["net"], str):
                raise ValueError("no such search")
            yield Waiting(key, entry, module, settings, frozenset(entry["held"]), tuning)
        except (OSError, KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:  # a RecursionError is one
            yield translate("{graph}: its graph can't be read ({error!r:.100})").format(graph=entry.get("net") or key[:12], error=error)


def _settings(entries: dict[str, Any]) -> Settings:
    entries = dict(entries)
    flags = entries.pop("kernels", None)
    if entries.pop("tuning", None) is not None or (flags and flags.get("blocking")):
        raise ValueError("settings that no program keeps")
    return Settings(**_plain(Settings, entries), kernels=None if flags is None else Flags(**_plain(Flags, flags)))


_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,), "bool": (bool,), "int": (int,), "int | None": (int, type(None)), "bool | None": (bool, type(None)), "Names": (tuple,),
    "tuple[tuple[str, Any], ...]": (tuple,),
}


def _plain(of: type, entries: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a dataclass from JSON. Raises ValueError for a field of another type, because settings reach compilers."""
    kinds = {field.name: _KINDS.get(str(field.type), ()) for field in dataclasses.fields(of)}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in entries.items()}
    for name, value in values.items():
        if type(value) not in kinds.get(name, ()) or (isinstance(value, tuple) and not all(isinstance(item, str) for item in value)):
            raise ValueError(f"{name!r:.40} {value!r:.40} is no setting")
    return values
