"""Outcomes of the options that a compilation reads, for `torchspore explain` and the log."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from torchspore.base import event_log, once
from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.options import OPTIONS
from torchspore.context.store import DEFAULT, STORE
from torchspore.graph.settings import Flags, Settings

SECTION = "graph kernels"
NAMES = ("enable_graph_kernel", "graph_kernel_flags")
def _nothing_fused() -> None:
    """Report that nothing is fused, if the user set an option for it."""
    for name in NAMES:
        if STORE.source(name)[0] != DEFAULT:
            report_idle_flags()
            level = STORE.get("graph_kernel_flags.opt_level")
            why = "opt_level is 0" if level == 0 else "enable_graph_kernel is off and no opt_level is given"
            effects.report(name, Outcome.applied(f"{why}: nothing is fused"))


def report_idle_flags() -> None:
    """Report each flag that is set and has no effect here; an error in strict mode."""
    for option in OPTIONS["graph_kernel_flags"].members.values():
        if option.idle and STORE.source(option.key)[0] != DEFAULT and STORE.get(option.key) != option.default:
            effects.note(SECTION, f"--{option.name} has no effect here: {option.idle}")
            if effects.is_strict():
                effects.report("graph_kernel_flags", Outcome.idle(f"--{option.name}: {option.idle}"))


_sums: dict[Flags, list[int]] = {}
"""For each set of flags, over all graphs: kernels before, kernels after, generated ones, groups that stayed operators."""


def warn(text: str) -> None:
    """Warn on stderr, once."""
    if once.first_time(("graph kernels", text)):
        print(f"torchspore: {user_line() or 'graph kernels'}: {text}", file=sys.stderr)
        effects.note(SECTION, text)


def fused(flags: Flags, before: int, after: int, kernels: Sequence[tuple[str, Sequence[Any]]], slower: int, compiles: bool) -> None:
    """Report a graph at O0; `explain` summarizes all graphs. `compiles`: whether there is a working compiler."""
    sums = _sums.setdefault(flags, [0, 0, 0, 0])
    for index, more in enumerate((before, after, len(kernels), slower)):
        sums[index] += more
    for name, nodes in kernels:
        event_log.event("kernels", f"{name} of {len(nodes)} nodes")
    event_log.event("kernels", _describe_fusion(flags.level, compiles, before, after, len(kernels), slower))
    _report(_describe_fusion(flags.level, compiles, *sums))


def _describe_fusion(level: int, compiles: bool, before: int, after: int, generated: int, slower: int) -> str:
    text = f"opt_level {level}: of {before} kernels {after} are left, {generated} of them generated"
    if not compiles:
        text += ", because there is no working C++ compiler"
    elif not generated and not slower:
        text += ": nothing can be fused"
    return text + (f"; {slower} groups stayed operators, which were faster" if slower else "")


def report_level_kernels(settings: Settings, before: int, after: int) -> None:
    """Report a graph whose kernels the level chooses."""
    flags = settings.kernels
    assert flags is not None
    how = "infer_boost" if settings.infer_boost else f"jit_level {settings.level}" if settings.level != "O0" else "the tuner"
    _report(f"opt_level {flags.level}: of {before} kernels {after} are left after arithmetic; {how} chooses and measures generated ones")


def _report(text: str) -> None:
    report_idle_flags()
    for name in NAMES:
        if STORE.source(name)[0] != DEFAULT:
            effects.report(name, Outcome.applied(text))


def level(text: str) -> None:
    """Report the effect of `jit_level`."""
    _both("jit_level", Outcome.applied(text))


def boost(norms: int, folded: int, packed: int) -> None:
    """Report the effect of `infer_boost` on a graph: the number of batch norms, of folded ones, and of packed weights."""
    parts = [f"{folded} of {norms} batch norms are folded into convolutions"] * bool(norms) + [f"{packed} weights are packed"] * bool(
        packed
    )
    _both("infer_boost", Outcome.applied(" and ".join(parts) + "; new weights are seen" if folded or packed else
                                         "values that depend only on weights are computed once, and again when a weight changes"))


def not_boosted(why: str) -> None:
    """Why `infer_boost` left a graph as it is."""
    if not effects.has_outcome("infer_boost"):
        _both("infer_boost", Outcome.applied(f"the graph runs as at O0: {why}"))


def layout(settings: Settings, has_images: bool) -> None:
    """Report the effect of `disable_format_transform`."""
    if STORE.source("disable_format_transform")[0] == DEFAULT:
        return
    if settings.level == "O0" and not settings.infer_boost:
        outcome = Outcome.no_effect("level O0 keeps the layout of PyNative's kernels in any case")
    elif not has_images:
        return
    else:
        tried, fastest = "channels last is tried and used where it is faster", "images stay in the order NCHW"
        outcome = Outcome.applied(tried if settings.layout else fastest)
    effects.report("disable_format_transform", outcome)


def lanes(text: str) -> None:
    """Report the effect of `inter_op_parallel_num`."""
    effects.report("inter_op_parallel_num", Outcome.applied(text))


def no_lanes(why: str) -> None:
    """Why `inter_op_parallel_num` changed nothing; one graph with lanes is enough for it to act."""
    if not effects.has_outcome("inter_op_parallel_num"):
        effects.report("inter_op_parallel_num", Outcome.no_effect(why))


def compiling(settings: Settings, requested: Settings, why: str) -> None:
    """Report the effects of options that are equal for every graph.

    `requested` is the program's setting if this graph uses less of it, and `why` the reason; a graph that uses all of it comes first.
    """
    if requested.kernels is None:
        _nothing_fused()
    elif settings.kernels is None:
        report_idle_flags()
        _report_skipped(NAMES, Outcome.applied(f"nothing is fused: {why}"))
    if requested.tuning is None:
        _nothing_tuned()
    elif settings.tuning is None:
        _report_skipped(("auto_tune_mode", "aoe_tune_mode", "aoe_config"), Outcome.no_effect(why))
    if requested.lanes > 1 and not settings.lanes:
        no_lanes(why)
    if requested.infer_boost and not settings.infer_boost:
        not_boosted(why)
    if settings.order:
        text = "operators run layer by layer" if settings.order == "bfs" else "each branch runs to its end"
        effects.report("exec_order", Outcome.applied(text))
    elif requested.order:
        _report_skipped(("exec_order",), Outcome.no_effect(why))
    if requested.saves_memory and not settings.saves_memory:
        _report_skipped(("memory_optimize_level",), Outcome.no_effect(why))
    if settings.level != requested.level:
        _report_skipped(("jit_level", "jit_config"), Outcome.applied(f"the graph runs as at O0: {why}"))
        _report_skipped(("disable_format_transform", "jit_compile"), Outcome.no_effect(why))
    elif settings.level == "O0" and not requested.infer_boost:
        level("O0: each graph is a straight line of the kernels that PyNative calls")
        layout(settings, False)
    if settings.level == requested.level:
        _generated(settings)


def _report_skipped(names: Sequence[str], outcome: Outcome) -> None:
    """One graph uses nothing of these options; another graph that does is enough for an effect."""
    for name in names:
        if STORE.source(name)[0] != DEFAULT and not effects.has_outcome(name):
            effects.report(name, outcome)


def _generated(settings: Settings) -> None:
    """Report the effect of `jit_compile`."""
    if settings.generates is None:
        return
    if settings.level == "O0":
        text = "graphs at O0 run existing kernels in any case; jit_level O1 compiles"
        outcome = Outcome.no_effect(text) if settings.generates else Outcome.applied(text)
    elif settings.generates:
        outcome = Outcome.applied("kernels are compiled where they are faster than existing ones")
    else:
        outcome = Outcome.applied("graphs run existing kernels, nothing is compiled")
    effects.report("jit_compile", outcome)


def _both(member: str, outcome: Outcome) -> None:
    """`explain` lists `jit_config`, and its members where they are set by themselves."""
    effects.report(member, outcome)
    effects.report("jit_config", outcome)


def _nothing_tuned() -> None:
    """Report that no search runs, if the user set an option for it."""
    if STORE.source("aoe_config")[0] != DEFAULT:
        effects.report("aoe_config", Outcome.no_effect("nothing is tuned: neither aoe_tune_mode nor auto_tune_mode is set"))


_SYNTAX = {
    "STRICT": "STRICT: a call is one graph, or an error",
    "COMPATIBLE": "COMPATIBLE: a call is one graph, or an error; containers and prints of values known at compile time are allowed",
    "LAX": "LAX: a call that no graph can represent runs in parts",
}


def syntax(level: str) -> None:
    """Report the effect of `jit_syntax_level`."""
    effects.report("jit_syntax_level", Outcome.applied(_SYNTAX[level]))
