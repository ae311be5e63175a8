"""Graphs that are tuned later: kept as files, and worked off by `torchspore tune`."""
from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from torchspore.base.frames import user_line
from torchspore.engine.graph.autotune import file
from torchspore.engine.graph.backend import measuring
from torchspore.engine.graph.fx import serialize
from torchspore.engine.graph.settings import Flags, Settings, Tuning

Module = torch.fx.GraphModule


def keep(key: str, module: Module, inputs: measuring.Inputs, settings: Settings, held: frozenset[int], tuning: Tuning) -> Path | None:
    """Puts a graph into the tuning file and its own file beside it; gives the tuning file, None where that can't be done (said once)."""
    try:
        graph = serialize.write(module)
    except serialize.Unwritable as reason:
        file.say(f"tuning: the graph at {user_line()} can't be kept ({reason}); it runs untuned.")
        return None
    where = file.path()
    beside = f"graphs/{key}.json"
    entry = {
        "net": user_line() or "", "status": "to do", "job": tuning.job, "searches": list(tuning.searches), "graph": beside,
        "settings": dataclasses.asdict(settings), "held": sorted(held), "ranges": [_range(t) for t in inputs()],
    }
    try:
        (where.parent / "graphs").mkdir(parents=True, exist_ok=True)
        file.write(where.parent / beside, graph)
    except OSError as error:
        file.say(f"tuning: {where.parent} can't be written ({error.strerror or error}); the program goes on untuned.")
        return None
    return file.keep(key, entry, where)


def _range(t: torch.Tensor) -> list[int] | None:
    """The least and greatest whole number, so that made-up ones stay inside the tables that they look into."""
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
    held: frozenset[int]
    tuning: Tuning

    def inputs(self) -> list[torch.Tensor]:
        """Made-up inputs of the shapes and ranges that the program had."""
        found = []
        generator = torch.Generator().manual_seed(0)
        placeholders = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        for node, span in zip(placeholders, self.entry["ranges"], strict=True):
            fake = node.meta["val"]
            t = torch.empty_strided(fake.shape, fake.stride(), dtype=fake.dtype, device=fake.device)
            if span is None:
                found.append(t.copy_(torch.rand(fake.shape, generator=generator) * 0.1 + 0.01))
            else:
                found.append(t.copy_(torch.randint(span[0], span[1] + 1, tuple(fake.shape), generator=generator)))
        return found


def waiting(where: Path, graphs: dict[str, dict[str, Any]]) -> Iterator[Waiting | str]:
    """The graphs of a tuning file that are to do; a text for each that can't be read."""
    for key, entry in graphs.items():
        if entry.get("status") != "to do":
            continue
        try:
            module = serialize.read(json.loads((where.parent / entry["graph"]).read_text(encoding="utf-8")))
            settings = _settings(entry["settings"])
            tuning = Tuning(tuple(entry["searches"]), True, entry["job"])
            yield Waiting(key, entry, module, settings, frozenset(entry["held"]), tuning)
        except (OSError, KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            yield f"{entry.get('net') or key[:12]}: its graph can't be read ({error!r:.100})"


def _settings(told: dict[str, Any]) -> Settings:
    flags = told.pop("kernels", None)
    if flags is not None:
        flags = Flags(**{name: _tuples(value) for name, value in flags.items()})
    return Settings(**{name: _tuples(value) for name, value in told.items()}, kernels=flags)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
