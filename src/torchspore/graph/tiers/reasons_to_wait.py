"""The graphs whose first call waits for the compiler."""
from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from contextvars import ContextVar

import torch

from torchspore.base.context_values import during
from torchspore.context.store import STORE
from torchspore.engine import process
from torchspore.graph.backend import inference
from torchspore.graph.fx.exchanges import has_exchanges
from torchspore.graph.fx.modules import has_inner
from torchspore.graph.report import stages
from torchspore.graph.settings import Settings
from torchspore.translations import translatable

WAIT = "TORCHSPORE_WAIT"
"""The environment variable that says when a graph is compiled: 1 before its first call, 0 from then on in another process. By default
the other process starts once the calls have taken as long as the compilation probably takes: a short program does without it."""
_SECONDS_TO_COMPILE, _SECONDS_PER_OPERATOR = 5.0, 0.02
"""The duration of a compilation, about: the start of the process and Inductor's imports, and each operator of the graph."""
_is_ahead: ContextVar[bool] = ContextVar("compiles_ahead", default=False)


def compiling_ahead() -> AbstractContextManager[None]:
    """Return a block that compiles graphs completely, without running them."""
    return during(_is_ahead, True)


def starts_at_once() -> bool:
    """Return whether the other process compiles a graph from its first call on."""
    return os.environ.get(WAIT, "") == "0"


def waits_for_choice(settings: Settings) -> bool:
    """Return whether the program chose to wait, or nothing of the graph is compiled: this needs no explanation."""
    if os.environ.get(WAIT, "") not in ("", "0"):
        return True
    return settings.deterministic or settings.tuning is not None or _is_ahead.get() or bool(STORE.get("precompile_only"))


def reason_to_wait(module: torch.fx.GraphModule, settings: Settings) -> str | None:
    """Return why a graph cannot be compiled in another process while it runs; None if it can."""
    if os.name != "posix" or not sys.executable or getattr(sys, "frozen", False):
        return translatable("this system has no Python interpreter that could compile at the same time")
    if process.world.size > 1 or has_exchanges(module):
        return translatable("all processes of a distributed run must use the same form at the same step")
    if settings.lanes > 1:
        return translatable("inter_op_parallel_num requests lanes")
    if stages.now.get() is not None:
        return translatable("save_graphs stores the graph that runs")
    if has_inner(module):
        return translatable("the graph has branches or loops")
    if not inference.is_on_cpu(module):
        return translatable("the graph runs on an accelerator")
    return None


def seconds_to_compile(module: torch.fx.GraphModule) -> float:
    """Return about how long a compilation takes.

    A compilation that starts when its graph has run that long at most doubles the time of a program, whenever the program ends.
    """
    return _SECONDS_TO_COMPILE + _SECONDS_PER_OPERATOR * sum(node.op == "call_function" for node in module.graph.nodes)
