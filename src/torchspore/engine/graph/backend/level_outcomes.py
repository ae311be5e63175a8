"""What came of the options that the levels look at, for `torchspore explain`."""
from __future__ import annotations

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.graph.settings import Settings


def level(text: str) -> None:
    """How `jit_level` acted."""
    _both("jit_level", Outcome.applied(text))


def boost(text: str) -> None:
    """How `infer_boost` acted."""
    _both("infer_boost", Outcome.applied(text))


def layout(settings: Settings, has_images: bool) -> None:
    """How `disable_format_transform` acted."""
    if settings.level == "O0" and not settings.infer_boost:
        text = "level O0 keeps the layout of PyNative's kernels in any case"
    elif not has_images:
        return
    else:
        text = "channels last is tried and kept where it is faster" if settings.layout else "images stay in the order NCHW"
    effects.report("disable_format_transform", Outcome.applied(text))


def order(wanted: str) -> None:
    """How `exec_order` acted."""
    effects.report("exec_order", Outcome.applied("operators run layer by layer" if wanted == "bfs" else "each branch runs to its end"))


def lanes(text: str) -> None:
    """How `inter_op_parallel_num` acted."""
    effects.report("inter_op_parallel_num", Outcome.applied(text))


def no_lanes(why: str) -> None:
    """Why `inter_op_parallel_num` changed nothing; one graph with lanes is enough for it to act."""
    if not effects.has_outcome("inter_op_parallel_num"):
        effects.report("inter_op_parallel_num", Outcome.no_effect(why))


def generated(settings: Settings) -> None:
    """How `jit_compile` acted."""
    if settings.generates is None:
        return
    if settings.level == "O0":
        text = "graphs at O0 run ready-made kernels in any case; jit_level O1 compiles"
        outcome = Outcome.no_effect(text) if settings.generates else Outcome.applied(text)
    elif settings.generates:
        outcome = Outcome.applied("kernels are compiled where they are faster than the ready-made ones")
    else:
        outcome = Outcome.applied("graphs run ready-made kernels, nothing is compiled")
    effects.report("jit_compile", outcome)


def _both(member: str, outcome: Outcome) -> None:
    """`explain` lists `jit_config`, and its members where they are set by themselves."""
    effects.report(member, outcome)
    effects.report("jit_config", outcome)
