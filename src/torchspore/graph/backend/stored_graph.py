"""A graph with its settings as JSON, for a search or a compilation in another process, which has no real inputs."""
from __future__ import annotations

import dataclasses
from typing import Any

import torch

from torchspore.graph.backend import measurement
from torchspore.graph.fx import serialize
from torchspore.graph.fx.sample_inputs import filled
from torchspore.graph.settings import Flags, Settings


@dataclasses.dataclass
class StoredGraph:
    """A graph, its settings, the indexes of the inputs that the program stores, and the ranges of its integer inputs."""

    module: torch.fx.GraphModule
    settings: Settings
    persistent: frozenset[int]
    ranges: list[Any]

    def inputs(self) -> list[torch.Tensor]:
        """Generated inputs of the shapes and integer ranges of the program's inputs."""
        entries = []
        generator = torch.Generator().manual_seed(0)
        placeholders = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        for node, span in zip(placeholders, self.ranges, strict=True):
            def fill(t: torch.Tensor, span: Any = span) -> None:
                if span is None:
                    t.copy_(torch.rand(t.shape, generator=generator) * 0.1 + 0.01)
                else:
                    t.copy_(torch.randint(span[0], span[1] + 1, tuple(t.shape), generator=generator))

            entries.append(filled(node.meta["val"], fill))
        return entries


def describe(inputs: measurement.Inputs, settings: Settings, persistent: frozenset[int]) -> dict[str, Any]:
    """Return what belongs to a graph besides its nodes, as JSON."""
    return {"settings": dataclasses.asdict(settings), "held": sorted(persistent), "ranges": [_range(t) for t in inputs()]}


def read(graph: Any, entry: dict[str, Any]) -> StoredGraph:
    """Return the graph of `serialize.write` with its entry of `describe`. Raises ValueError, KeyError or TypeError for other JSON."""
    return StoredGraph(serialize.read(graph), _settings(entry["settings"]), frozenset(entry["held"]), entry["ranges"])


def _range(t: torch.Tensor) -> list[int] | None:
    """Return the smallest and largest integer, so that generated integers are valid indexes."""
    if t.is_floating_point() or t.is_complex() or not t.numel():
        return None
    return [int(t.min()), int(t.max())]


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
