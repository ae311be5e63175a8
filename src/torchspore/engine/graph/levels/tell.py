"""What came of the options that the levels look at, for `torchspore explain`."""
from __future__ import annotations

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.graph.levels.settings import Settings


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


def _both(member: str, outcome: Outcome) -> None:
    """`explain` lists `jit_config`, and its members where they are set by themselves."""
    effects.report(member, outcome)
    effects.report("jit_config", outcome)
