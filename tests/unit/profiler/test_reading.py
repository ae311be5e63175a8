"""Operators, steps and memory out of torch's events: made-up ones, as an accelerator would give them."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from torchspore.observe.profiling import annotations as marks
from torchspore.observe.profiling import event_reader


@dataclass
class Event:
    """One of Kineto's records; times are nanoseconds."""

    name_: str
    start: int
    span: int
    device: str = "CPU"
    thread: int = 1
    number: int = -1
    id: int = 0
    link: int = 0
    bytes: int = 0
    shapes_: list[Any] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        answers = {
            "name": self.name_, "start_ns": self.start, "duration_ns": self.span, "device_type": f"DeviceType.{self.device}",
            "start_thread_id": self.thread, "sequence_nr": self.number, "correlation_id": self.id, "linked_correlation_id": self.link,
            "nbytes": self.bytes, "shapes": self.shapes_, "dtypes": ["float"] * len(self.shapes_), "scope": 0, "stack": [],
            "is_user_annotation": False, "is_python_function": False, "is_hidden_event": False, "device_index": 0, "device_resource_id": 7,
            "concrete_inputs": [],
        }
        if name not in answers:
            raise AttributeError(name)
        return lambda: answers[name]


def read(events: list[Event], modules: dict[int, Any] | None = None) -> Any:
    return event_reader.read(events, modules or {}, {"GPU:0": 1000}, "", "")


def step(at: int) -> list[Event]:
    """A step on an accelerator: data for 100 ns beside kernels, launches of 10 ns, kernels of 200 ns that come later."""
    return [
        Event(marks.DATA, at, 100),
        Event(marks.CELL + "Default", at + 110, 300), Event("aten::mm", at + 120, 10, number=5 + at, id=1 + at, shapes_=[[4, 8], [8, 2]]),
        Event("gemm", at + 200, 200, "CUDA", link=1 + at),
        Event("autograd::engine::evaluate_function: MmBackward0", at + 500, 40, thread=2, number=5 + at),
        Event("aten::mm", at + 505, 10, thread=2, id=2 + at, shapes_=[[8, 4], [4, 2]]), Event("gemm", at + 600, 200, "CUDA", link=2 + at),
        Event(marks.OPTIMIZER + "Default/optimizer-Adam", at + 560, 100), Event("aten::_fused_adam_", at + 570, 20, id=3 + at),
        Event("adam", at + 800, 100, "CUDA", link=3 + at),
        Event("[memory]", at + 600, 0, "CUDA", bytes=512), Event("[memory]", at + 900, 0, "CUDA", bytes=-512),
    ]


def test_an_accelerator_is_timed_by_its_kernels() -> None:
    result = read([*step(0), *step(1000)])
    assert [(row.name, row.phase, row.cost, row.flops) for row in result.operators[:3]] == [
        ("Default/MatMul-op0", "forward", 200, 2 * 4 * 8 * 2), ("Gradients/Default/Grad_MatMul/MatMul-op0", "backward", 200, 2 * 8 * 4 * 2),
        ("Default/optimizer-Adam/FusedAdam-op0", "update", 100, 0),
    ]
    first, second = result.steps
    assert first.phases == {"data": 200, "forward": 400, "backward": 200, "sync": 0, "update": 100, "other": 0}
    assert (first.forward_start, first.backward_end, second.total) == (200, 800, 1000) and sum(second.phases.values()) == 1000
    assert [allocation.bytes_in_use for allocation in result.allocations if allocation.device == "GPU:0"] == [1512, 1000, 1512, 1000]
    assert {kernel.operator for kernel in result.kernels} == {row.name for row in result.operators}


def test_waiting_during_kernels_does_not_count() -> None:
    events = [Event(marks.CELL + "Default", 0, 60), Event("aten::mm", 10, 10, id=1), Event("gemm", 20, 500, "CUDA", link=1),
              Event(marks.DATA, 100, 300), Event("aten::_fused_adam_", 50, 5, id=2), Event("adam", 520, 80, "CUDA", link=2)]
    events[4].name_ = "aten::add"
    (only,) = read(events).steps
    assert only.phases["data"] == 0


def test_exchanges_are_a_separate_phase() -> None:
    result = read([
        Event(marks.CELL + "Default", 0, 900), Event("aten::mm", 10, 100), Event("c10d::allreduce_", 200, 300),
        Event(marks.OPTIMIZER + "Default/optimizer-SGD", 600, 100), Event("aten::_fused_sgd_", 610, 50),
    ])
    (only,) = result.steps
    assert only.phases["sync"] == 410 and only.reductions == [("Default/Allreduce-op0", 200, 500)]


def test_a_graph_whose_code_is_not_seen_is_reported() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.ops.aten.mm.default, (x, x))
    z = graph.call_function(torch.ops.aten.mm.default, (y, x))
    z.meta["backward"] = True
    w = graph.call_function(torch.ops.aten.add.Tensor, (z, x))
    w.meta["optimizer"] = True
    graph.output(w)
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    result = read([Event(f"{marks.GRAPH}77", 0, 300), Event("aten::empty", 10, 5)], {77: module})
    assert [(row.kind, row.phase, row.span) for row in result.operators] == [
        ("CompiledGraph", "forward", 100), ("CompiledGraph", "backward", 100), ("CompiledGraph", "update", 100),
    ]
    assert "CompiledGraph" in result.notes[0] and len(result.steps) == 1
