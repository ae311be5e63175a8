"""The settings of a graph's compilation: the JitConfig of a Cell or jit function, and the context for keys that the JitConfig lacks.

`Flags` contains the flags of graph kernels: the text of `graph_kernel_flags`, with defaults that depend on `opt_level`. `Tuning` names the
searches, their time (now or later) and their subject (the graph or its operators).
"""
from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from torchspore.context.store import DEFAULT, STORE
from torchspore.engine.memory import offload
from torchspore.engine.tensors import change_counters
from torchspore.graph import splitter

Names = tuple[str, ...]
_IN = "graph_kernel_flags."


@dataclass(frozen=True)
class Flags:
    """The flags that graph kernel passes read. All values are plain, so that equal flags have equal text in the next process."""

    level: int
    dump: bool = False
    stitch: bool = False
    recompute: bool = False
    parallel: bool = False
    horizontal: bool = False
    exact: bool = False
    vectors: bool = True
    instructions: str = ""
    """The vector instructions that kernels use; empty for the widest of the machine."""
    is_debugged: bool = False
    """True if kernels are compiled without optimization and with debug symbols."""
    sparse: bool = False
    """True if kernels may contain the lookups of sparse CSR operators."""
    measured: bool = False
    depth: int = -1
    """The number of operators before a reduction that one kernel may compute with it; -1 for any number."""
    limit: int = 200
    """The greatest number of operators in one kernel."""
    threads: int | None = None
    moves: bool = False
    extra_lifetime: int = 0
    smallest: int = 0
    expand: Names = ()
    expand_only: Names = ()
    expand_not: Names = ()
    cluster: Names = ()
    cluster_only: Names = ()
    cluster_not: Names = ()
    rules_only: Names = ()
    rules_not: Names = ()
    on: Names = ()
    off: Names = ()
    open_batch: bool = True
    """True if kernels may take batches of any size: Tensors whose first axis alone is open."""
    open_lengths: bool = False
    """True if kernels may take any open axis."""
    combines: bool = False
    """True if matrix products of equal shapes become one batched product."""
    is_global: bool = False
    """True if also operators that share no value are combined: `parallel_ops_level`."""
    fuses_products: bool = True
    """True if a matrix product may compute the activation that follows it; `disable_matmul_post_fusion` forbids it."""
    blocking: tuple[tuple[str, Any], ...] = ()
    """Settings of Inductor's that the tuner tries."""

    def runs(self, name: str, from_level: int) -> bool:
        """Return whether a pass runs: `disable_pass` wins over `enable_pass`, and that over the level."""
        return name not in self.off and (name in self.on or self.level >= from_level)


def flags() -> Flags | None:
    """Return the flags that apply to this thread; None if no kernels are fused."""
    level = STORE.get(_IN + "opt_level")
    if level is None:
        level = 2 if STORE.get("enable_graph_kernel") else 0
    return _flags_of(level, tuple(_read_option(name) for name in _READ)) if level else None


_READ = (
    "dump_as_text", "enable_stitch_fusion", "enable_recompute_fusion", "enable_parallel_fusion", "enable_horizontal_fusion",
    "exact_precision_mode", "enable_vectorization", "online_tuning", "reduce_fuse_depth", "composite_op_limit_size",
    "cpu_refer_thread_num", "fusion_ops_level", "recompute_increment_threshold", "recompute_peak_threshold", "enable_expand_ops",
    "enable_expand_ops_only", "disable_expand_ops", "enable_cluster_ops", "enable_cluster_ops_only", "disable_cluster_ops",
    "enable_simplify_exprs_only", "disable_simplify_exprs", "enable_pass", "disable_pass", "enable_dynamic_batch",
    "enable_dynamic_shape_fusion", "enable_parallel_op_combine", "parallel_ops_level",
    "disable_matmul_post_fusion", "cpu_feature", "enable_debug_mode", "enable_csr_fusion",
)


def _read_option(name: str) -> Any:
    value = STORE.get(_IN + name)
    return tuple(value) if isinstance(value, list) else value


@functools.cache
def _flags_of(level: int, values: tuple[Any, ...]) -> Flags:
    options = dict(zip(_READ, values))
    on, off = options["enable_pass"], options["disable_pass"]

    def runs(flag: str, name: str, from_level: int) -> bool:
        runs_pass = options[flag] if options[flag] is not None else name in on or level >= from_level
        return bool(runs_pass) and name not in off

    fusion_level = options["fusion_ops_level"] if options["fusion_ops_level"] is not None else int(level == 3)
    return Flags(
        level=level,
        stitch=runs("enable_stitch_fusion", "stitch_fusion", 3),
        recompute=runs("enable_recompute_fusion", "graph_kernel_recompute", 2),
        parallel=runs("enable_parallel_fusion", "parallel_fusion", 3),
        horizontal=runs("enable_horizontal_fusion", "horizontal_fusion", 3),
        measured=options["online_tuning"] > 0,
        moves=fusion_level >= 1,
        is_global=options["parallel_ops_level"] >= 1,
        fuses_products=not options["disable_matmul_post_fusion"],
        **{field: options[name] for field, name in _SAME_VALUE.items()},
    )


_SAME_VALUE = {
    "dump": "dump_as_text", "exact": "exact_precision_mode", "vectors": "enable_vectorization", "depth": "reduce_fuse_depth",
    "limit": "composite_op_limit_size", "threads": "cpu_refer_thread_num", "extra_lifetime": "recompute_increment_threshold",
    "smallest": "recompute_peak_threshold", "expand": "enable_expand_ops", "expand_only": "enable_expand_ops_only",
    "expand_not": "disable_expand_ops", "cluster": "enable_cluster_ops", "cluster_only": "enable_cluster_ops_only",
    "cluster_not": "disable_cluster_ops", "rules_only": "enable_simplify_exprs_only", "rules_not": "disable_simplify_exprs",
    "on": "enable_pass", "off": "disable_pass", "open_batch": "enable_dynamic_batch", "open_lengths": "enable_dynamic_shape_fusion",
    "combines": "enable_parallel_op_combine", "instructions": "cpu_feature", "is_debugged": "enable_debug_mode",
    "sparse": "enable_csr_fusion",
}
"""By the field of `Flags`, the option whose value it has unchanged."""


BUDGET = "TORCHSPORE_TUNE_SECONDS"
SECONDS = 60.0
"""The seconds of the search for one graph if TORCHSPORE_TUNE_SECONDS is not set."""


@dataclass(frozen=True)
class Tuning:
    """The tuning of a graph."""

    searches: tuple[str, ...] = ("RL", "GA")
    is_online: bool = True
    job: str = "2"


_tuning_of = functools.cache(Tuning)


def tuning() -> Tuning | None:
    """Return the tuning that the context asks for; None if there is none. `auto_tune_mode` names the searches, `aoe_tune_mode` the time."""
    searches, when = STORE.get("auto_tune_mode"), STORE.get("aoe_tune_mode")
    if searches == "NO_TUNE" and not when:
        return None
    return _tuning_of(_searches(searches), when != "offline", STORE.get("aoe_config.job_type"))


def _searches(value: str) -> tuple[str, ...]:
    if value == "NO_TUNE":
        return "RL", "GA"
    _, setting = STORE.source("auto_tune_mode")
    value_written = setting.raw if setting is not None else value
    return tuple(str(value_written).split(","))


def tuning_budget() -> float:
    """Return the seconds that the search for one graph may take."""
    try:
        return max(0.0, float(os.environ.get(BUDGET, "")))
    except ValueError:
        return SECONDS


@dataclass(frozen=True, eq=False)
class Settings:
    """The switches that `compile` reads. `settings_of` returns the same object for the same values, so a key compares it by identity."""

    level: str = "O0"
    infer_boost: bool = False
    layout: bool = True
    """True if convolutions may run channels-last; `disable_format_transform` forbids it."""
    deterministic: bool = False
    syntax: str = "LAX"
    """The Python that compiled code may contain: STRICT, COMPATIBLE or LAX."""
    debug: bool = False
    """True if graphs and refusals keep where they come from; `debug_level`."""
    precision: str = ""
    """The policy of `precision_mode`; empty if operators keep the dtypes of the program."""
    is_auto_mixed: bool = False
    """True if `enable_auto_mixed_precision` chose that policy."""
    reduces: bool = True
    """True if an operator without a kernel in its dtype may compute in another one; `enable_reduce_precision`."""
    saves_memory: bool = False
    """True if memory is more important than speed; `memory_optimize_level` O1."""
    reuses_memory: bool = True
    """True if values share memory one after the other; `sys.mem_reuse`."""
    offloads: int | None = None
    """The bytes that may be in use before values of a graph move to the host; `memory_offload`, None if no value moves."""
    offloads_state: bool = False
    """True if the state of optimizers leaves memory after its part of a step; `offload_param`."""
    order: str = ""
    """The order of operators, 'bfs' or 'dfs'; empty for the order of the program, if `exec_order` is not set."""
    lanes: int = 0
    """The number of operators that may run at the same time; `inter_op_parallel_num`."""
    generates: bool | None = None
    """True if kernels may be generated and compiled; `jit_compile`, None if that is not set."""
    kernels: Flags | None = None
    """The flags of `graph_kernel_flags`; None if nothing is fused."""
    is_split: bool = False
    """True if graphs are split over devices; `parallel_mode`."""
    tuning: Tuning | None = None
    """The searches of `aoe_tune_mode` and `auto_tune_mode`; None if there are none."""

    @property
    def fuses_products(self) -> bool:
        """True if a matrix product may compute the activation that follows it."""
        return self.kernels is None or self.kernels.fuses_products

    def describe(self) -> dict[str, str]:
        """Return the compile options for the header of a saved graph."""
        return {
            "debug_level": "DEBUG" if self.debug else "RELEASE", "exc_mode": "auto", "infer_boost": "on" if self.infer_boost else "off",
            "jit_level": self.level, "jit_syntax_level": self.syntax,
        }


_settings_of = functools.cache(Settings)
_of_context: dict[tuple[int, int], Settings] = {}


def settings_of(owner: Any, function: Any = None) -> Settings:
    """Return the settings for a call of `owner` (a Cell or jit function). `function`, the method that runs, may have a JitConfig."""
    config = getattr(owner, "__dict__", {}).get("_jit_config_")
    if not config and not isinstance(owner, FunctionType):
        config = getattr(function, "_jit_config_", None)
    if config:
        return _settings_with(config)
    version = STORE.version, change_counters.processes
    settings = _of_context.get(version)
    if settings is None:
        if len(_of_context) > 64:
            _of_context.clear()
        settings = _of_context[version] = _settings_with({})
    return settings


def _settings_with(config: Mapping[str, Any]) -> Settings:
    """Return the settings of `config`, with the context's value for every key that it does not set."""
    level = config.get("jit_level") or STORE.get("jit_level") or "O0"
    boost = config["infer_boost"] if "infer_boost" in config else STORE.get("infer_boost")
    return _settings_of(
        level,
        boost == "on",
        not STORE.get("disable_format_transform"),
        STORE.get("deterministic") == "ON",
        _syntax(config),
        _is_debug(config),
        **_pass_settings(config),
    )


def _pass_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the passes that change a graph: those of `config`, then those of the context."""
    policy = STORE.get("precision_mode")
    is_auto = not policy and bool(STORE.get("enable_auto_mixed_precision"))
    return {
        "precision": "allow_mix_precision" if is_auto else policy,
        "is_auto_mixed": is_auto,
        "reduces": STORE.get("enable_reduce_precision"),
        "saves_memory": STORE.get("memory_optimize_level") == 1,
        "reuses_memory": STORE.get("env_config_path.sys.mem_reuse"),
        "offloads": offload.graph_limit(),
        "offloads_state": offload.moves_state_in_graphs(),
        "order": config.get("exec_order") or ("" if STORE.source("exec_order")[0] == DEFAULT else STORE.get("exec_order")),
        "lanes": STORE.get("inter_op_parallel_num"),
        "generates": {"1": True, "0": False}.get(str(STORE.get("jit_compile"))),
        "kernels": flags(),
        "tuning": tuning(),
        "is_split": splitter.is_needed(),
    }


def _is_debug(config: Mapping[str, Any]) -> bool:
    return config["debug_level"] == "DEBUG" if "debug_level" in config else bool(STORE.get("debug_level"))


def _syntax(config: Mapping[str, Any]) -> str:
    return config.get("jit_syntax_level") or ("STRICT", "COMPATIBLE", "LAX")[STORE.get("jit_syntax_level")]
