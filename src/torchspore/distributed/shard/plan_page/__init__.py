"""The page of a plan: one self-contained file with the graph, coloured by splits, a sortable table, and the memory."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from torchspore.context.plan_request import Machine
from torchspore.distributed.shard import cost_estimate, memory_model
from torchspore.distributed.shard.cost_estimate import Row
from torchspore.engine.split_layouts.device_layout import from_matrix
from torchspore.graph.save_graphs import page
from torchspore.html_pages.page import render_page
from torchspore.translations import translate

MOST = 10_000
"""So many operators the page holds; it says how many it left out."""
_HERE = Path(__file__).parent


def html(split: Any, machine: Machine) -> str:
    """Return the page of a split graph."""
    scripts = [*(page.text_of(name) for name in page.DRAWING), (_HERE / "plan.js").read_text(encoding="utf-8")]
    styles = [page.text_of("drawing.css"), (_HERE / "plan.css").read_text(encoding="utf-8")]
    return render_page(translate("Plan"), data(split, machine), scripts, styles)


def data(split: Any, machine: Machine) -> dict[str, Any]:
    """Return the data of the page."""
    table_rows, mesh = cost_estimate.rows(split, machine), split.local.mesh
    total, peak_memory = cost_estimate.totals(split, table_rows, machine), memory_model.memory(split)
    seen = {at: row for at, row in enumerate(table_rows) if row.is_seen}
    remaining = len(seen) - MOST
    left_out = translate("{count:,} of {total:,} operators are left out of this page, the last ones.")
    return {
        "about": cost_estimate.about(split),
        "devices": split.sharded_capture.count * split.sharded_capture.stages,
        "sizes": list(mesh.sizes),
        "notes": [left_out.format(count=remaining, total=len(seen))] if remaining > 0 else [],
        "speeds": translate("at {speeds}, one after the other").format(speeds=machine.describe()) + total.joined,
        "received": total.bytes,
        "sending": total.sending * 1e6,
        "computing": total.computing * 1e6,
        "memory": [
            [name, size]
            for name, size in (
                (translate("parameters"), peak_memory.parameters),
                (translate("the state of optimizers").removeprefix("the "), peak_memory.states),
                (translate("inputs"), peak_memory.inputs),
                (translate("gradients"), peak_memory.gradients),
                (translate("activations"), peak_memory.activations),
                (translate("the optimizer's work").removeprefix("the "), peak_memory.work),
            )
        ],
        "rows": [_row(at, row, table_rows) for at, row in list(seen.items())[:MOST]],
        "parameters": list(_parameters(split)),
        "total": len(seen),
        "outputs": _seen((at for at, row in enumerate(table_rows) if row.is_result), table_rows)[0],
    }


def _row(at: int, row: Row, table_rows: list[Row]) -> dict[str, Any]:
    """Return the data of an operator."""
    sent = [{"kind": exchange.kind, "devices": exchange.devices, "bytes": exchange.bytes} for exchange in row.exchanges]
    reads, through = _seen(row.reads, table_rows)
    return {
        "id": f"r{at}", "operator": row.operator, "split": row.split, "axes": sorted(row.axes), "partial": row.is_partial, "line": row.line,
        "whole": not row.has_rule, "gradient": row.is_gradient, "scope": row.scope, "sends": row.sends(), "exchanges": sent,
        "stage": row.stage if row.stages else "",
        "bytes": row.bytes, "sending": row.sending * 1e6, "computing": row.computing * 1e6, "reads": reads,
        "parameters": list(dict.fromkeys(row.parameters + through)),
    }


def _seen(rows: Iterable[int], table_rows: list[Row]) -> tuple[list[str], list[str]]:
    """Replace rows that are only marks by the rows and Parameters that they read."""
    needed, names = set[int](), dict[str, None]()
    open_rows, met = list(rows), set[int]()
    while open_rows:
        source = open_rows.pop()
        if source not in met:
            met.add(source)
            if table_rows[source].is_seen:
                needed.add(source)
            else:
                open_rows += table_rows[source].reads
                names.update(dict.fromkeys(table_rows[source].parameters))
    return [f"r{at}" for at in sorted(needed)], list(names)


def _parameters(split: Any) -> Iterator[dict[str, Any]]:
    """Return the Parameters: the split of each, and the bytes that one device stores."""
    mesh = split.local.mesh
    sizes = {str(item.name): item._t.element_size() for item in split.lifted if hasattr(item, "name")}
    names = split.sharded_capture.parameters
    for name, (matrix, tensor_map, shape, trained) in names.items():
        counts = from_matrix(mesh, matrix, tensor_map).counts(mesh) if math.prod(matrix) == mesh.count else (1,) * len(shape)
        local = [size // count for size, count in zip(shape, counts)]
        kind = "state" if memory_model.is_state(name, names) else "trained" if trained else "kept"
        yield {"name": name, "shape": str(list(shape)), "split": "(" + ", ".join(map(str, counts)) + ")", "own": str(local),
               "bytes": math.prod(local) * sizes.get(name, 0), "kind": kind}
