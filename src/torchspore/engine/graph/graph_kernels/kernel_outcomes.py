"""What came of graph kernels, for `torchspore explain` and the log; and the flags that mean nothing here, each with the reason."""
from __future__ import annotations

import sys

from torchspore.base import once
from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE
from torchspore.engine.graph import log
from torchspore.engine.graph.backend import inductor
from torchspore.engine.graph.graph_kernels.making import Made
from torchspore.engine.graph.settings import Settings

SECTION = "graph kernels"
NAMES = ("enable_graph_kernel", "graph_kernel_flags")
_HERE = "kernels are compiled for the machine that runs them"
IDLE = {
    "enable_auto_tensor_inplace": "a kernel's results go to fresh memory, which is that of values that died before",
    "enable_dynamic_batch": "kernels are compiled for fixed lengths, and a graph with an open one runs without them",
    "enable_dynamic_shape_fusion": "kernels are compiled for fixed lengths, and a graph with an open one runs without them",
    "enable_low_precision": "a kernel computes in the dtypes of its operators; ascend_config's precision_mode changes those",
    "enable_csr_fusion": "sparse CSR operators are calls of torch's library, no generator writes kernels of them",
    "enable_debug_mode": "TORCHSPORE_LOG=graph tells of each kernel as it is compiled",
    "enable_lite_conv_tuning": "convolutions are calls of oneDNN; MindSpore Lite is not here",
    "enable_parallel_op_combine": "putting the weights of several products together would copy them at each call",
    "parallel_ops_level": "products are not combined, see enable_parallel_op_combine",
    "disable_matmul_post_fusion": "products are calls of a library; nothing is fused into them here",
    "enable_allreduce_prologue_fusion": "collectives are calls of a library; nothing is fused into them",
    "enable_allreduce_epilogue_fusion": "collectives are calls of a library; nothing is fused into them",
    "enable_cce_lib": "it is a library of Ascend's own compiler",
    "repository_path": "it holds schedules of AKG; what torchspore measures is kept by aoe_tune_mode and enable_compile_cache",
    "target_os": _HERE, "cpu_arch": _HERE, "cpu_feature": _HERE, "cpu_type": _HERE,
    "kernel_generator": "torch's Inductor writes the kernels",
}
"""The flags that have no effect here, each with the reason."""


def off() -> None:
    """Nothing is fused: said where the user spoke of it."""
    for name in NAMES:
        if STORE.source(name)[0] != "default":
            tell_idle()
            level = STORE.get("graph_kernel_flags.opt_level")
            why = "opt_level is 0" if level == 0 else "enable_graph_kernel is off and no opt_level is given"
            effects.report(name, Outcome.applied(f"{why}: nothing is fused"))


def tell_idle() -> None:
    """Notes each flag that is given and has no effect here; an error in strict mode."""
    for name, why in IDLE.items():
        key = f"graph_kernel_flags.{name}"
        if STORE.source(key)[0] != "default" and STORE.get(key) != OPTIONS[key].default:
            effects.note(SECTION, f"--{name} has no effect here: {why}")
            if effects.is_strict():
                effects.report("graph_kernel_flags", Outcome.no_effect(f"--{name}: {why}"))


_sums: dict[int, list[int]] = {}
"""For each opt_level, over all graphs: kernels before, kernels after, generated ones, groups that stayed operators."""


def warn(text: str) -> None:
    """Says on stderr what a user must see, once."""
    if once.first_time(("graph kernels", text)):
        print(f"torchspore: {user_line() or 'graph kernels'}: {text}", file=sys.stderr)
        effects.note(SECTION, text)


def fused(settings: Settings, before: int, after: int, made: Made) -> None:
    """What became of a graph at O0; `explain` tells it of all graphs together."""
    flags = settings.kernels
    assert flags is not None
    sums = _sums.setdefault(flags.level, [0, 0, 0, 0])
    for place, more in enumerate((before, after, len(made.kernels), made.slower)):
        sums[place] += more
    for name, nodes in made.kernels:
        log.event("kernels", f"{name} of {len(nodes)} nodes")
    log.event("kernels", _told(flags.level, before, after, len(made.kernels), made.slower))
    _report(_told(flags.level, *sums))


def _told(level: int, before: int, after: int, generated: int, slower: int) -> str:
    text = f"opt_level {level}: of {before} kernels {after} are left, {generated} of them generated"
    if not inductor.is_there():
        text += ", because there is no working C++ compiler"
    elif not generated and not slower:
        text += ": nothing can be fused"
    return text + (f"; {slower} groups stayed operators, which were faster" if slower else "")


def left_to_level(settings: Settings, before: int, after: int) -> None:
    """What became of a graph whose kernels the level chooses."""
    flags = settings.kernels
    assert flags is not None
    how = "infer_boost" if settings.infer_boost else f"jit_level {settings.level}" if settings.level != "O0" else "the tuner"
    _report(f"opt_level {flags.level}: of {before} kernels {after} are left after arithmetic; {how} chooses and measures generated ones")


def _report(text: str) -> None:
    tell_idle()
    for name in NAMES:
        if STORE.source(name)[0] != "default":
            effects.report(name, Outcome.applied(text))
