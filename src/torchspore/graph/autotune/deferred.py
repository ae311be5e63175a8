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
from torchspore.graph.backend import measurement, stored_graph
from torchspore.graph.backend.stored_graph import StoredGraph
from torchspore.graph.fx import serialize
from torchspore.graph.settings import Settings, Tuning
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
        **stored_graph.describe(inputs, settings, persistent),
    }
    try:
        (where.parent / "graphs").mkdir(parents=True, exist_ok=True)
        tuning_file.write(where.parent / file_name, graph)
    except OSError as error:
        tuning_file.report_message(f"tuning: {where.parent} can't be written ({error.strerror or error}); the program continues untuned.")
        return None
    return tuning_file.keep(key, entry, where)


@dataclasses.dataclass
class Waiting:
    """A graph that waits, with all that its search needs."""

    key: str
    entry: dict[str, Any]
    graph: StoredGraph
    tuning: Tuning


def waiting(where: Path, graphs: dict[str, dict[str, Any]]) -> Iterator[Waiting | str]:
    """The graphs of a tuning file that are to do; a text for each that can't be read."""
    for key, entry in graphs.items():
        if entry.get("status") != "to do":
            continue
        try:
            if entry["graph"] != f"graphs/{key}.json" or not key.isalnum():
                raise ValueError("its graph is in another folder")
            graph = stored_graph.read(json.loads(read_plain(where.parent / entry["graph"])), entry)
            tuning = Tuning(tuple(entry["searches"]), True, entry["job"])
            if entry["job"] not in ("1", "2") or not {*tuning.searches} <= {"RL", "GA"} or not isinstance(entry["net"], str):
                raise ValueError("no such search")
            yield Waiting(key, entry, graph, tuning)
        except (OSError, KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:  # a RecursionError is one
            yield translate("{graph}: its graph can't be read ({error!r:.100})").format(graph=entry.get("net") or key[:12], error=error)
