"""A plan as text for a terminal, and the answer to `torchspore plan`: this text, and a page if one is requested."""
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchspore.base.columns import pad, width
from torchspore.base.files import write_atomically
from torchspore.base.text import message, with_hint
from torchspore.context.plan_request import Machine, Request
from torchspore.distributed.shard import plan_page, plan_summary, strategy_io
from torchspore.distributed.shard.cost_estimate import about, rows, totals
from torchspore.distributed.shard.memory_model import Memory, memory
from torchspore.distributed.shard.pipeline_parallel import stage_graph
from torchspore.distributed.shard.search import costs
from torchspore.engine.torch_internals import node_metadata
from torchspore.errors import StrategyRefused
from torchspore.translations import translatable, translate

_HEADS = (
    translatable("operator"), translatable("split"), translatable("exchanges"), translatable("bytes received"), translatable("exchange us"),
    translatable("compute us"), translatable("line"),
)
_COMPARED_HEADS = (
    translatable("plan"), translatable("grid"), translatable("step ms"), translatable("exchange ms"), translatable("bytes received"),
    translatable("memory of a device"),
)


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
    heads = [translate(head) for head in _HEADS]
    table: list[tuple[str, ...]] = [
        (row.operator + ("" if row.has_rule else translate(" (whole)")), row.split, row.sends(), f"{row.bytes:,}",
         f"{row.sending * 1e6:.1f}", f"{row.computing * 1e6:.1f}", row.line)
        for row in table_rows if row.is_seen
    ]
    if split.pipeline is not None:
        heads = [translate("stage"), *heads]
        table = [(row.stage, *line) for row, line in zip((row for row in table_rows if row.is_seen), table)]
    yield from _aligned([heads, *table])
    yield ""
    total = totals(split, table_rows, machine)
    if split.pipeline is not None:
        yield translate("at {speeds}").format(speeds=machine.describe()) + total.joined
        yield from _of_stages(split, machine)
        return
    received = translate(
        "a step receives {count:,} bytes on each device: {sending:.3f} ms, and computes for {computing:.3f} ms, one after the other")
    yield received.format(count=total.bytes, sending=total.sending * 1e3, computing=total.computing * 1e3)
    step_time = translate("a step takes {duration:.3f} ms if exchanges run at the same time as operators that do not wait for them")
    yield step_time.format(duration=costs.of(split.local, machine, is_fused=True).seconds * 1e3)
    yield translate("at {speeds}").format(speeds=machine.describe()) + total.joined
    device_memory = memory(split)
    yield translate("memory of a device: {memory}").format(memory=_describe_memory(device_memory))
    if device_memory.total > machine.capacity:
        yield _describe_excess(device_memory, machine, searched)
    if searched is not None and searched.rows:
        yield ""
        yield from _compared(searched)


def _describe_excess(device_memory: Memory, machine: Machine, searched: Any) -> str:
    """Name what fills the memory of a device, and how many devices would suffice."""
    kinds = {
        translate("parameters"): device_memory.parameters, translate("the state of optimizers"): device_memory.states,
        translate("inputs"): device_memory.inputs, translate("gradients"): device_memory.gradients,
        translate("activations"): device_memory.activations, translate("the optimizer's work"): device_memory.work,
    }
    largest = sorted(kinds, key=lambda kind: -kinds[kind])[:2]
    joining = translate(" and ")
    shares = joining.join(translate("{part} ({share:.0%})").format(part=kind, share=kinds[kind] / device_memory.total) for kind in largest)
    text = translate("it does not fit: a device has {capacity:,.0f} bytes; most of the memory are {shares}").format(
        capacity=machine.capacity, shares=shares)
    sufficient = getattr(searched, "sufficient", "")
    if not sufficient:
        return text
    if isinstance(sufficient, str):
        return f"{text}{translate('; ')}{sufficient}"
    suffice = translate("{text}; {too_few} devices are too few, {devices} suffice ({size:,} bytes and {duration:.3f} ms)")
    return suffice.format(text=text, too_few=joining.join(map(str, sufficient.too_few)), devices=sufficient.devices,
                          size=sufficient.cost.peak_bytes, duration=sufficient.cost.seconds * 1e3)


def _compared(searched: Any) -> Iterator[str]:
    """Yield a table of the plans that a search compared. An asterisk marks the plan that is taken."""
    yield translate("plans that the search compared, before the order of their exchanges is improved (* is taken):")
    heads = ("", *map(translate, _COMPARED_HEADS))
    table = [
        ("*" if row.is_taken else "", translate(row.name), " x ".join(map(str, row.mesh.sizes)), f"{row.cost.seconds * 1e3:.3f}",
         f"{row.cost.sending * 1e3:.3f}", f"{row.cost.received:,}",
         f"{row.cost.peak_bytes:,}" + (translate(" (too much)") if row.cost.excess else ""))
        for row in searched.rows
    ]
    table = [line for at, line in enumerate(table) if line[1:] not in [other[1:] for other in table[:at]]]     # equal plans at two prices
    yield from _aligned([heads, *table])


def _aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield lines of cells in columns; a cell has at most 48 characters."""
    widths = [min(48, max(map(width, column))) for column in zip(*lines)]
    for line in lines:
        yield "  ".join(pad(cell[:48], columns) for cell, columns in zip(line, widths)).rstrip()


def _of_stages(split: Any, machine: Machine) -> Iterator[str]:
    """Yield the costs of each stage of a pipeline, and the transfers between them."""
    pipeline = split.pipeline
    for stage in range(pipeline.stages):
        stage_local = replace(split.local, module=stage_graph.of_stage(split.local.module, stage, pipeline.stages))
        stage_cost = costs.of(stage_local, machine, is_fused=True)
        text = translate("stage {stage}: computes {computing:.3f} ms, receives {received:,} bytes on each device in {messages} exchanges, "
                         "{sending:.3f} ms; holds {memory}")
        yield text.format(stage=stage, computing=stage_cost.computing * 1e3, received=stage_cost.received, messages=stage_cost.messages,
                          sending=stage_cost.sending * 1e3, memory=_describe_memory(memory(split, stage)))
    passing = machine.transfer_seconds(pipeline.sent, len(pipeline.transfers)) * 1e3
    text = translate("{count} values of {size:,} bytes pass between stages: {duration:.3f} ms if nothing is computed meanwhile")
    yield text.format(count=len(pipeline.transfers), size=pipeline.sent, duration=passing)
    if pipeline.schedule is not None:
        yield translate("stages wait {share:.0%} of a step if all parts take equally long").format(share=pipeline.schedule.idle)


def _describe_memory(peak_memory: Memory) -> str:
    text = translate("{total:,} bytes: parameters {parameters:,}, state of optimizers {states:,}, inputs {inputs:,}; at the peak gradients "
                     "{gradients:,}, activations {activations:,}, optimizer's work {work:,}")
    return text.format(total=peak_memory.total, parameters=peak_memory.parameters, states=peak_memory.states, inputs=peak_memory.inputs,
                       gradients=peak_memory.gradients, activations=peak_memory.activations, work=peak_memory.work)


def answer(split: Any, request: Request) -> None:
    """Print the plan, and write the page and the strategy file that the request names.

    Raises StrategyRefused if the plan split the batch of a step that does not call its `network`.
    """
    if request.expects_parts and not any(node.meta.get(node_metadata.PART) for node in split.local.module.graph.nodes):
        raise StrategyRefused(message(
            f"torchspore plan --micro-batches {request.micro_batches}", "a training step that calls its attribute `network`",
            hint="put the network of the step into nn.GradAccumulationCell",
        ))
    request.is_answered = True
    if request.is_json:
        print(json.dumps(plan_summary.summary(split, request)))
    else:
        print("\n".join(text(split, request.machine)))
    if request.strategies:
        _write("--strategies", request.strategies, lambda path: strategy_io.export(split.sharded_capture, path))
        written = translate("the strategies are in {path}; set_auto_parallel_context(strategy_ckpt_config={{'load_file': ..}}) reads it")
        print(written.format(path=request.strategies), file=sys.stderr if request.is_json else sys.stdout)
    if request.page:
        _write("--html", request.page, lambda path: write_atomically(Path(path), plan_page.html(split, request.machine)))
        print(translate("the page is {path}").format(path=request.page), file=sys.stderr if request.is_json else sys.stdout)


def _write(option: str, path: str, write: Callable[[str], None]) -> None:
    """Write a file; end the process with a message if that fails."""
    try:
        write(path)
    except OSError as problem:
        error_text = translate("{command}: {path} can't be written ({reason}).").format(
            command=f"torchspore plan {option}", path=path, reason=problem.strerror or type(problem).__name__)
        print(with_hint(error_text, translate("name another file")), file=sys.stderr)
        raise SystemExit(1) from None
