"""Measures forms of one graph on copies of its real inputs: nothing live is written, no random state is disturbed."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch

from torchspore.base.context_values import during
from torchspore.engine.native import allocator
from torchspore.engine.random import operator_streams
from torchspore.graph.fx.sample_inputs import extent

SPREAD = 8.0
"""Units in the last place."""

Runs = Callable[..., list[Any]]
Tensor = torch.Tensor
Inputs = Callable[[], list[Tensor]]
"""Gives the real tensors of a graph's inputs. They are the program's own and must not be written to."""


class Unrunnable(RuntimeError):
    """The graph fails for the inputs of now (an index out of range), so that nothing can be measured; its own run says it to the user."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Restore torch's random state after the block, and exclude its allocations from the memory limit."""
    with allocator.aside(), operator_streams.separate_generators(), torch.no_grad():
        yield


@contextmanager
def with_equal_seed() -> Iterator[None]:
    """Let each form draw the same random numbers; for use within `undisturbed`."""
    torch.manual_seed(0)
    yield


def copy(t: torch.Tensor) -> torch.Tensor:
    """Return the same values and strides in separate memory, also if elements share memory (expanded tensors)."""
    return torch.as_strided(torch.as_strided(t.detach(), (extent(t),), (1,), t.storage_offset()).clone(), t.shape, t.stride())


def rounded_otherwise(t: Tensor) -> Tensor:
    """Return a copy with each number moved up or down at random by SPREAD: the rounding error of a sum of a thousand products."""
    clone = copy(t)
    if t.is_floating_point() and t.dim():
        memory = torch.as_strided(clone, (extent(clone),), (1,))
        signs = torch.where(torch.rand(memory.shape, device=t.device) < 0.5, SPREAD, -SPREAD).to(t.dtype)
        memory += memory * signs * torch.finfo(t.dtype).eps
    return clone


def differs(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    """The greatest difference, as a share of the greatest value of each tensor."""
    worst = 0.0
    for a, b in zip(ours, theirs):
        if not isinstance(a, torch.Tensor) or not a.numel():
            continue
        a, b = a.double() if not a.is_complex() else a.abs().double(), b.double() if not b.is_complex() else b.abs().double()
        both = torch.isfinite(a) & torch.isfinite(b)
        if not torch.equal(torch.isfinite(a), torch.isfinite(b)):
            return float("inf")
        a, b = a[both], b[both]
        if a.numel():
            worst = max(worst, float((a - b).abs().max() / (a.abs().max() + 1e-12)))
    return worst


@dataclass(frozen=True)
class Turns:
    """The number of runs of each form: `least`, then until it has taken `longest` seconds, at most `most`."""

    least: int = 2
    most: int = 12
    longest: float = 0.4


GRAPHS = Turns()
"""For whole graphs."""
Measurer = Callable[[dict[str, Runs], list[torch.Tensor], Turns], dict[str, float]]


def measured_by(measurer: Measurer) -> AbstractContextManager[None]:
    """Let `measurer` report how long variants take, in this thread, instead of a clock: the choice then depends on nothing else."""
    return during(_measurer, measurer)


def seconds(codes: dict[str, Runs], inputs: list[torch.Tensor], turns: Turns = GRAPHS) -> dict[str, float]:
    """The least time of one run of each form by its name, as the measurer of this thread says."""
    return _measurer.get()(codes, inputs, turns)


def by_clock(codes: dict[str, Runs], inputs: list[torch.Tensor], turns: Turns = GRAPHS) -> dict[str, float]:
    """The least time of one run of each, taking turns; all were run once before."""
    best = dict.fromkeys(codes, float("inf"))
    spent = dict.fromkeys(codes, 0.0)
    has_queue = any(t.device.type != "cpu" for t in inputs)
    for turn in range(turns.most):
        for name, code in codes.items():
            if turn >= turns.least and spent[name] > turns.longest:
                continue
            started = now()
            code(*inputs)
            if has_queue:
                torch.accelerator.synchronize()
            took = now() - started
            best[name], spent[name] = min(best[name], took), spent[name] + took
    return best


def timed_by(clock: Callable[[], float]) -> AbstractContextManager[None]:
    """Use `clock` for all timing in this thread."""
    return during(_clock, clock)


def now() -> float:
    """Seconds, by the clock of this thread."""
    return _clock.get()()


_measurer: ContextVar[Measurer] = ContextVar("measurer", default=by_clock)
_clock: ContextVar[Callable[[], float]] = ContextVar("clock", default=time.perf_counter)
