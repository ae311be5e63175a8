"""A plan as text for a terminal, and the answer to `torchspore plan`: this text, and a page if one is requested."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchspore.base.files import write_atomically
from torchspore.base.text import with_hint
from torchspore.context.plan_request import Machine, Request
from torchspore.distributed.shard import plan_page, strategy_io
from torchspore.distributed.shard.cost_estimate import about, rows, totals
from torchspore.distributed.shard.memory_model import Memory, memory
from torchspore.distributed.shard.pipeline_parallel import stage_graph
from torchspore.distributed.shard.search import costs


def text(split: Any, machine: Machine) -> Iterator[str]:
    """Return the lines of a plan: a table of the operators that are split or communicate, totals, and the memory of one device."""
    table_rows = rows(split, machine)
    yield about(split)
    searched = getattr(split.sharded_capture, "searched", None)
    if searched is not None:
        yield f"{searched.mode}: {searched.describe()}"
    if split.sharded_capture.chosen is not None:
        yield f"auto_pipeline: {split.sharded_capture.chosen.describe()}"
    yield ""
    heads: tuple[str, ...] = ("operator", "split", "exchanges", "bytes received", "exchange us", "compute us", "line")
    table: list[tuple[str, ...]] = [
        (row.operator + ("" if row.has_rule else " (whole)"), row.split, row.sends(), f"{row.bytes:,}",
         f"{row.sending * 1e6:.1f}", f"{row.computing * 1e6:.1f}", row.line)
        for row in table_rows if row.is_seen
    ]
    if split.pipeline is not None:
        heads = ("stage", *heads)
        table = [(row.stage, *line) for row, line in zip((row for row in table_rows if row.is_seen), table)]
    yield from _aligned([heads, *table])
    yield ""
    total = totals(split, table_rows, machine)
    if split.pipeline is not None:
        yield f"at {machine.describe()}{total.joined}"
        yield from _of_stages(split, machine)
        return
    overlap_text = f"beside {total.computing * 1e3:.3f} ms of computing, one after the other"
    yield f"a step receives {total.bytes:,} bytes on each device: {total.sending * 1e3:.3f} ms, {overlap_text}"
    step_seconds = costs.of(split.local, machine, is_fused=True).seconds
    yield f"a step takes {step_seconds * 1e3:.3f} ms where exchanges run beside operators that do not wait for them"
    yield f"at {machine.describe()}{total.joined}"
    device_memory = memory(split)
    yield f"memory of a device: {_describe_memory(device_memory)}"
    if device_memory.total > machine.capacity:
        yield _describe_excess(device_memory, machine, searched)
    if searched is not None and searched.rows:
        yield ""
        yield from _compared(searched)


def _describe_excess(device_memory: Memory, machine: Machine, searched: Any) -> str:
    """Name what fills the memory of a device, and how many devices would suffice."""
    kinds = {
        "parameters": device_memory.parameters, "the state of optimizers": device_memory.states, "inputs": device_memory.inputs,
        "gradients": device_memory.gradients, "activations": device_memory.activations, "the optimizer's work": device_memory.work,
    }
    largest = sorted(kinds, key=lambda kind: -kinds[kind])[:2]
    shares = " and ".join(f"{kind} ({kinds[kind] / device_memory.total:.0%})" for kind in largest)
    text = f"it does not fit: a device has {machine.capacity:,.0f} bytes; most of the memory are {shares}"
    sufficient = getattr(searched, "sufficient", "")
    if not sufficient:
        return text
    if isinstance(sufficient, str):
        return f"{text}; {sufficient}"
    too_few = " and ".join(map(str, sufficient.too_few))
    cost = f"{sufficient.cost.peak_bytes:,} bytes and {sufficient.cost.seconds * 1e3:.3f} ms"
    return f"{text}; {too_few} devices are too few, {sufficient.devices} suffice ({cost})"


def _compared(searched: Any) -> Iterator[str]:
    """Yield a table of the plans that a search compared. An asterisk marks the plan that is taken."""
    yield "plans that the search compared, before the order of their exchanges is improved (* is taken):"
    heads = ("", "plan", "grid", "step ms", "exchange ms", "bytes received", "memory of a device")
    table = [
        ("*" if row.is_taken else "", row.name, " x ".join(map(str, row.mesh.sizes)), f"{row.cost.seconds * 1e3:.3f}",
         f"{row.cost.sending * 1e3:.3f}", f"{row.cost.received:,}", f"{row.cost.peak_bytes:,}" + (" (too much)" if row.cost.excess else ""))
        for row in searched.rows
    ]
    table = [line for at, line in enumerate(table) if line[1:] not in [other[1:] for other in table[:at]]]     # equal plans at two prices
    yield from _aligned([heads, *table])


def _aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield lines of cells in columns; a cell has at most 48 characters."""
    widths = [min(48, max(map(len, column))) for column in zip(*lines)]
    for line in lines:
        yield "  ".join(cell[:48].ljust(width) for cell, width in zip(line, widths)).rstrip()


def _of_stages(split: Any, machine: Machine) -> Iterator[str]:
    """Yield the costs of each stage of a pipeline, and the transfers between them."""
    pipeline = split.pipeline
    for stage in range(pipeline.stages):
        stage_local = replace(split.local, module=stage_graph.of_stage(split.local.module, stage, pipeline.stages))
        stage_cost = costs.of(stage_local, machine, is_fused=True)
        sending = stage_cost.sending * 1e3
        text = f"receives {stage_cost.received:,} bytes on each device in {stage_cost.messages} exchanges, {sending:.3f} ms"
        yield f"stage {stage}: computes {stage_cost.computing * 1e3:.3f} ms, {text}; holds {_describe_memory(memory(split, stage))}"
    passing = machine.transfer_seconds(pipeline.sent, len(pipeline.transfers)) * 1e3
    values = f"{len(pipeline.transfers)} values of {pipeline.sent:,} bytes pass between stages"
    yield f"{values}: {passing:.3f} ms if nothing is computed meanwhile"
    if pipeline.schedule is not None:
        yield f"stages wait {pipeline.schedule.idle:.0%} of a step if all parts take equally long"


def _describe_memory(peak_memory: Memory) -> str:
    kinds = f"parameters {peak_memory.parameters:,}, state of optimizers {peak_memory.states:,}, inputs {peak_memory.inputs:,}"
    others = f"gradients {peak_memory.gradients:,}, activations {peak_memory.activations:,}, optimizer's work {peak_memory.work:,}"
    return f"{peak_memory.total:,} bytes: {kinds}; at the peak {others}"


def answer(split: Any, request: Request) -> None:
    """Print the plan, and write the page and the strategy file that the request names."""
    print("\n".join(text(split, request.machine)))
    request.is_answered = True
    if request.strategies:
        _write("--strategies", request.strategies, lambda path: strategy_io.export(split.sharded_capture, path))
        print(f"the strategies are in {request.strategies}; set_auto_parallel_context(strategy_ckpt_config={{'load_file': ..}}) reads it")
    if request.page:
        _write("--html", request.page, lambda path: write_atomically(Path(path), plan_page.html(split, request.machine)))
        print(f"the page is {request.page}")


def _write(option: str, path: str, write: Callable[[str], None]) -> None:
    """Write a file; end the process with a message if that fails."""
    try:
        write(path)
    except OSError as problem:
        error_text = f"torchspore plan {option}: {path} can't be written ({problem.strerror or type(problem).__name__})."
        print(with_hint(error_text, "name another file"), file=sys.stderr)
        raise SystemExit(1) from None
