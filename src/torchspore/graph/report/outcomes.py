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
from torchspore.translations import translatable, translate

SECTION = translatable("graph kernels")
NAMES = ("enable_graph_kernel", "graph_kernel_flags")
def _nothing_fused() -> None:
    """Report that nothing is fused, if the user set an option for it."""
    for name in NAMES:
        if STORE.source(name)[0] != DEFAULT:
            report_idle_flags()
            level = STORE.get("graph_kernel_flags.opt_level")
            effects.report(name, Outcome.applied("opt_level is 0: nothing is fused" if level == 0 else
                                                 "enable_graph_kernel is off and no opt_level is given: nothing is fused"))


def report_idle_flags() -> None:
    """Report each flag that is set and has no effect here; an error in strict mode."""
    for option in OPTIONS["graph_kernel_flags"].members.values():
        if option.idle and STORE.source(option.key)[0] != DEFAULT and STORE.get(option.key) != option.default:
            text = translate("--{name} has no effect here: {reason}")
            effects.note(SECTION, text.format(name=option.name, reason=translate(option.idle)))
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
    text = translate("opt_level {level}: of {before} kernels {after} are left, {generated} of them generated")
    if not compiles:
        text += translate(", because there is no working C++ compiler")
    elif not generated and not slower:
        text += translate(": nothing can be fused")
    if slower:
        text += translate("; {slower} groups stayed operators, which were faster")
    return text.format(level=level, before=before, after=after, generated=generated, slower=slower)


def report_level_kernels(settings: Settings, before: int, after: int) -> None:
    """Report a graph whose kernels the level chooses."""
    flags = settings.kernels
    assert flags is not None
    how = "infer_boost" if settings.infer_boost else f"jit_level {settings.level}" if settings.level != "O0" else translate("the tuner")
    text = translate(
        "opt_level {level}: of {before} kernels {after} are left after arithmetic; {chooser} chooses and measures generated ones")
    _report(text.format(level=flags.level, before=before, after=after, chooser=how))


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
    if not folded and not packed:
        _both("infer_boost", Outcome.applied("values that depend only on weights are computed once, and again when a weight changes"))
        return
    parts = [translate("{folded} of {norms} batch norms are folded into convolutions").format(folded=folded, norms=norms)] * bool(norms)
    parts += [translate("{packed} weights are packed").format(packed=packed)] * bool(packed)
    text = translate("{changes}; new weights are seen").format(changes=translate(" and ").join(parts))
    _both("infer_boost", Outcome.applied(text))


def not_boosted(why: str) -> None:
    """Why `infer_boost` left a graph as it is."""
    if not effects.has_outcome("infer_boost"):
        _both("infer_boost", Outcome.applied(_as_at_o0(why)))


def _as_at_o0(why: str) -> str:
    return translate("the graph runs as at O0: {reason}").format(reason=translate(why))


def layout(settings: Settings, has_images: bool) -> None:
    """Report the effect of `disable_format_transform`."""
    if STORE.source("disable_format_transform")[0] == DEFAULT:
        return
    if settings.level == "O0" and not settings.infer_boost:
        outcome = Outcome.no_effect("level O0 keeps the layout of PyNative's kernels in any case")
    elif not has_images:
        return
    else:
        outcome = Outcome.applied("channels last is tried and used where it is faster" if settings.layout else
                                  "images stay in the order NCHW")
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
        _report_skipped(NAMES, Outcome.applied(translate("nothing is fused: {reason}").format(reason=translate(why))))
    if requested.tuning is None:
        _nothing_tuned()
    elif settings.tuning is None:
        _report_skipped(("auto_tune_mode", "aoe_tune_mode", "aoe_config"), Outcome.no_effect(why))
    if requested.lanes > 1 and not settings.lanes:
        no_lanes(why)
    if requested.infer_boost and not settings.infer_boost:
        not_boosted(why)
    if settings.order:
        effects.report("exec_order", Outcome.applied("operators run layer by layer" if settings.order == "bfs" else
                                                     "each branch runs to its end"))
    elif requested.order:
        _report_skipped(("exec_order",), Outcome.no_effect(why))
    if requested.saves_memory and not settings.saves_memory:
        _report_skipped(("memory_optimize_level",), Outcome.no_effect(why))
    if settings.level != requested.level:
        _report_skipped(("jit_level", "jit_config"), Outcome.applied(_as_at_o0(why)))
        _report_skipped(("disable_format_transform", "jit_compile"), Outcome.no_effect(why))
    elif settings.level == "O0" and not requested.infer_boost:
        level(translatable("O0: each graph is a straight line of the kernels that PyNative calls"))
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
        text = translatable("graphs at O0 run existing kernels in any case; jit_level O1 compiles")
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
    "STRICT": translatable("STRICT: a call is one graph, or an error"),
    "COMPATIBLE": translatable("COMPATIBLE: a call is one graph, or an error; code that only needs Python, such as `try`, is allowed"),
    "LAX": translatable("LAX: a call that no graph can represent runs in parts"),
}


def syntax(level: str) -> None:
    """Report the effect of `jit_syntax_level`."""
    effects.report("jit_syntax_level", Outcome.applied(_SYNTAX[level]))
