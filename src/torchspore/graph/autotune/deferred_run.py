"""Processes a tuning file: searches for each waiting graph, and writes the results."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

from torchspore.base.files import read_plain
from torchspore.graph.autotune import deferred, tuning_file
from torchspore.graph.autotune.tuner import Module, entry_of, search
from torchspore.graph.backend import measurement
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.fx.fingerprint import machine
from torchspore.graph.settings import Settings
from torchspore.translations import translate

Untuned = Callable[[Module, measurement.Inputs, Settings, frozenset[int]], Code]
"""Compiles a prepared graph without tuning: `pipeline.compile_untuned`."""


def work_off(where: Path, compile_untuned: Untuned) -> Iterator[str]:
    """A line for each graph of the file as it is done; `compile_untuned` compiles one as it is without tuning. Raises file.Unusable."""
    graphs = tuning_file.read(where)
    done = [entry for entry in graphs.values() if entry.get("status") == "tuned"]
    if done:
        yield translate("{count} of {total} graphs were tuned before").format(count=len(done), total=len(graphs))
    for item in deferred.waiting(where, graphs):
        if isinstance(item, str):
            yield item
            continue
        graph = item.graph
        try:
            result = search(
                graph.module, graph.inputs, graph.settings, graph.persistent, item.tuning,
                functools.partial(compile_untuned, graph.module, graph.inputs, graph.settings, graph.persistent),
            )
        except Exception as error:  # a file may hold any graph; the next one is none the worse
            text = translate("{graph}: its graph can't be run ({error!r:.100})")
            yield text.format(graph=item.entry["net"] or item.key[:12], error=error)
            continue
        tuning_file.keep(item.key, {**entry_of(result, item.tuning, item.entry["net"]), "machine": machine()}, where)
        text = translate("{graph}: {duration:.3f} ms, {result}")
        yield text.format(graph=item.entry["net"] or item.key[:12], duration=result.base * 1e3, result=result)


def threads_of(where: Path) -> int | None:
    """Return the number of threads of the program that wrote the file; None if the file does not say."""
    import json

    try:
        processor = json.loads(read_plain(where))["machine"].split()
        return int(processor[-2]) if processor[-1] == "threads" else None
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return None


__all__ = ["threads_of", "work_off"]
