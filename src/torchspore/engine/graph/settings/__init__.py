"""How a graph is to be compiled: a Cell's own JitConfig or a jit function's, and where these say nothing the context."""
from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from torchspore.context.store import DEFAULT, STORE
from torchspore.engine.graph.settings.fusion_flags import Flags, flags
from torchspore.engine.graph.settings.tuning_request import Tuning, tuning


@dataclass(frozen=True, eq=False)
class Settings:
    """The switches that `compile` looks at. `settings` gives the same object for the same values, so that a key compares it by identity."""

    level: str = "O0"
    infer_boost: bool = False
    layout: bool = True
    """Whether convolutions may run channels-last; `disable_format_transform` forbids it."""
    deterministic: bool = False
    syntax: str = "LAX"
    """How much Python may stand in what is compiled: STRICT, COMPATIBLE or LAX."""
    debug: bool = False
    """Whether graphs and refusals keep where they come from; `debug_level`."""
    precision: str = ""
    """The policy of `precision_mode`; empty where operators keep the dtypes that the program gives them."""
    is_auto_mixed: bool = False
    """Whether `enable_auto_mixed_precision` chose that policy."""
    reduces: bool = True
    """Whether an operator without a kernel in its dtype may compute in another one; `enable_reduce_precision`."""
    saves_memory: bool = False
    """Whether memory goes before speed; `memory_optimize_level` O1."""
    reuses_memory: bool = True
    """Whether values share memory one after the other; `sys.mem_reuse`."""
    order: str = ""
    """The order of operators, 'bfs' or 'dfs'; empty where `exec_order` is not set: the program's."""
    lanes: int = 0
    """How many operators may run at the same time; `inter_op_parallel_num`."""
    generates: bool | None = None
    """Whether kernels may be generated and compiled; `jit_compile`, None where that is not set."""
    kernels: Flags | None = None
    """What `graph_kernel_flags` asks for; None where nothing is fused."""
    tuning: Tuning | None = None
    """What `aoe_tune_mode` and `auto_tune_mode` ask for; None where nothing is searched for."""

    @property
    def changes_memory(self) -> bool:
        """Whether a switch changes how long values live."""
        return self.saves_memory or not self.reuses_memory

    def told(self) -> dict[str, str]:
        """The compile options as the head of a saved graph names them."""
        return {
            "debug_level": "DEBUG" if self.debug else "RELEASE", "exc_mode": "auto", "infer_boost": "on" if self.infer_boost else "off",
            "jit_level": self.level, "jit_syntax_level": self.syntax,
        }


_made = functools.cache(Settings)
_of_context: dict[int, Settings] = {}


def settings_of(owner: Any, function: Any = None) -> Settings:
    """The settings for a call of `owner` (a Cell or jit function); `function` is what runs, a method under `jit` has options of its own."""
    own = getattr(owner, "__dict__", {}).get("_jit_config")
    if not own and not isinstance(owner, FunctionType):
        own = getattr(function, "_jit_config", None)
    if own:
        return _with(own)
    version = STORE.version
    found = _of_context.get(version)
    if found is None:
        if len(_of_context) > 64:
            _of_context.clear()
        found = _of_context[version] = _with({})
    return found


def _with(own: Mapping[str, Any]) -> Settings:
    """The context's values where `own` has none."""
    level = own.get("jit_level") or STORE.get("jit_level") or "O0"
    boost = own["infer_boost"] if "infer_boost" in own else STORE.get("infer_boost")
    return _made(
        level, boost == "on", not STORE.get("disable_format_transform"), STORE.get("deterministic") == "ON", _syntax(own), _debug(own),
        **_steps(),
    )


def _steps() -> dict[str, Any]:
    """What the context says of the steps that change a graph."""
    asked = STORE.get("precision_mode")
    is_auto = not asked and bool(STORE.get("enable_auto_mixed_precision"))
    return {
        "precision": "allow_mix_precision" if is_auto else asked, "is_auto_mixed": is_auto, "reduces": STORE.get("enable_reduce_precision"),
        "saves_memory": STORE.get("memory_optimize_level") == 1, "reuses_memory": STORE.get("env_config_path.sys.mem_reuse"),
        "order": "" if STORE.source("exec_order")[0] == DEFAULT else STORE.get("exec_order"), "lanes": STORE.get("inter_op_parallel_num"),
        "generates": {"1": True, "0": False}.get(str(STORE.get("jit_compile"))), "kernels": flags(), "tuning": tuning(),
    }


def _debug(own: Mapping[str, Any]) -> bool:
    return own["debug_level"] == "DEBUG" if "debug_level" in own else bool(STORE.get("debug_level"))


def _syntax(own: Mapping[str, Any]) -> str:
    return own.get("jit_syntax_level") or ("STRICT", "COMPATIBLE", "LAX")[STORE.get("jit_syntax_level")]
