"""The arguments of `Profiler`, including those of 1.x: their meaning here, or the reason why they are refused."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.suggest import closest
from torchspore.base.text import list_choices, message, short, with_hint
from torchspore.context import effects
from torchspore.mindspore.profiler.choices import AicoreMetrics, ExportType, ProfilerLevel
from torchspore.observe.profiling import counters
from torchspore.observe.profiling.files import FileSelection

_HARDWARE = ("hbm_ddr", "l2_cache", "parallel_strategy", "pcie", "sys_io", "sys_interconnection")
"""Counters of Ascend's hardware, and distribution plans of a net, which can't be read here."""
CURRENT: dict[str, Any] = {
    "start_profile": True, "output_path": "./data", "profiler_level": ProfilerLevel.Level0, "activities": None, "schedule": None,
    "on_trace_ready": None, "profile_memory": False, "aic_metrics": AicoreMetrics.AiCoreNone, "with_stack": False,
    "data_simplification": True, "sync_enable": True, "record_shapes": True, "data_process": False, "experimental_config": None,
    **dict.fromkeys(_HARDWARE, False),
}
OLDER: dict[str, Any] = {
    "op_time": True, "profile_communication": False, "profile_framework": None, "timeline_limit": None, "aicore_metrics": -1,
    "is_detail": True, "is_show_op_path": True, "subgraph": "all", "optypes_to_deal": "", "optypes_not_deal": "", "job_id": "",
    "ascend_job_id": "",
}
"""Arguments of earlier MindSpore versions, which still act here.

`profile_framework` 'all' and 'memory' record memory; every profile has the host's times.
"""
_BOOLS = ("start_profile", "profile_memory", "with_stack", "data_simplification", "sync_enable", "record_shapes", "data_process", "op_time",
          "profile_communication", "is_detail", "is_show_op_path", *_HARDWARE)
NUMBERED = (
    "PipeUtilization", "ArithmeticUtilization", "Memory", "MemoryL0", "MemoryUB", "ResourceConflictRatio", "L2Cache", "MemoryAccess",
)
"""Groups of counters by their earlier numbers."""
_SUBGRAPHS = ("all", "Default", "Gradients")
_FRAMEWORK = (None, "all", "time", "memory", "simple")


class _ExperimentalConfig:
    """Settings of `profile(experimental_config=...)`, which refuses counters of Ascend's hardware by name."""

    def __init__(
        self, profiler_level: ProfilerLevel = ProfilerLevel.Level0, aic_metrics: AicoreMetrics = AicoreMetrics.AiCoreNone,
        l2_cache: bool = False, mstx: bool = False, data_simplification: bool = True, export_type: list[ExportType] | None = None,
        mstx_domain_include: list[str] | None = None, mstx_domain_exclude: list[str] | None = None, sys_io: bool = False,
        sys_interconnection: bool = False, host_sys: list[Any] | None = None,
    ) -> None:
        self.values = {
            "profiler_level": profiler_level, "aic_metrics": aic_metrics, "l2_cache": l2_cache, "data_simplification": data_simplification,
            "sys_io": sys_io, "sys_interconnection": sys_interconnection,
        }
        for name, domains in (("mstx_domain_include", mstx_domain_include), ("mstx_domain_exclude", mstx_domain_exclude)):
            if domains is not None and not (isinstance(domains, list) and all(isinstance(domain, str) for domain in domains)):
                raise TypeError(message(f"_ExperimentalConfig({name}={short(domains)})", "a list of strs"))
        self.marks, self.included, self.excluded = mstx, mstx_domain_include or [], mstx_domain_exclude or []
        if export_type is not None and list(export_type) != [ExportType.Text]:
            call_text = f"_ExperimentalConfig(export_type={short(export_type)})"
            raise ValueError(message(call_text, "[ExportType.Text]: tables and JSON are written"))
        if host_sys:
            raise ValueError(message(f"_ExperimentalConfig(host_sys={short(host_sys)})", "none: Ascend's tools read these figures"))

    def keeps(self, text: str) -> bool:
        """Return whether a program's mark is written."""
        domain = text.partition(": ")[0] if ": " in text else "default"
        return self.marks and (domain in self.included if self.included else domain not in self.excluded)


def checked(call: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments with their values. Raises TypeError and ValueError for those that are invalid or need Ascend's hardware."""
    defaults = {**CURRENT, **OLDER}
    for name in kwargs:
        if name not in defaults:
            near = closest(name, defaults)
            text = message(f"{call}({name}={short(kwargs[name])})", list_choices(CURRENT))
            raise TypeError(with_hint(text, f"did you mean {near}?") if near else text)
    values = {**defaults, **kwargs}
    config = values["experimental_config"]
    if config is not None and not isinstance(config, _ExperimentalConfig):
        raise TypeError(message(f"{call}(experimental_config={short(config)})", f"an _ExperimentalConfig, got {type(config).__name__}"))
    if config is not None:
        values.update(config.values)
    for name in _BOOLS:
        if not isinstance(values[name], bool):
            raise TypeError(message(f"{call}({name}={short(values[name])})", f"a bool, got {type(values[name]).__name__}"))
    for name in _HARDWARE:
        if values[name]:
            raise ValueError(message(f"{call}({name}=True)", "False: only Ascend's own tools measure it"))
    for name in ("job_id", "ascend_job_id"):
        if values[name]:
            raise ValueError(message(f"{call}({name}={short(values[name])})", "'': it names files of Ascend's own tools"))
    for name, choices in (("subgraph", _SUBGRAPHS), ("profile_framework", _FRAMEWORK)):
        if values[name] not in choices:
            raise ValueError(message(f"{call}({name}={short(values[name])})", list_choices(choices)))
    _check_enum(call, values, "profiler_level", ProfilerLevel)
    limit = values["timeline_limit"]
    if limit is not None and (not is_int(limit) or limit < 1):
        raise ValueError(message(f"{call}(timeline_limit={short(limit)})", "an int from 1 on, in MiB"))
    values["counters"] = _counters(call, values)
    if kwargs.get("sync_enable") is False:
        effects.note("profile", "sync_enable=False: kernels are timed by the device itself, whether or not they are waited for")
    return values


def _check_enum(call: str, values: dict[str, Any], name: str, kind: Any) -> None:
    if values[name] is not None and not isinstance(values[name], kind):
        raise TypeError(message(f"{call}({name}={short(values[name])})", f"a {kind.__name__}, got {type(values[name]).__name__}"))


def _counters(call: str, values: dict[str, Any]) -> str:
    """Return the requested group of counters; '' for none."""
    number = values["aicore_metrics"]
    if not is_int(number) or not -1 <= number < len(NUMBERED):
        raise ValueError(message(f"{call}(aicore_metrics={short(number)})", f"an int from -1 to {len(NUMBERED) - 1}"))
    _check_enum(call, values, "aic_metrics", AicoreMetrics)
    metrics = values["aic_metrics"]
    name = metrics.value if metrics not in (None, AicoreMetrics.AiCoreNone) else NUMBERED[number] if number >= 0 else ""
    if name:
        effects.note("profile", counters.meaning(name))
    return name


def output_options(values: dict[str, Any], metadata: dict[str, Any], pretty: bool, steps: frozenset[int]) -> FileSelection:
    """Return the files that these arguments request."""
    def kinds(name: str) -> frozenset[str]:
        text = values[name]
        return frozenset(word.strip() for word in (text.split(",") if isinstance(text, str) else text) if word.strip())

    is_none = values["profiler_level"] is ProfilerLevel.LevelNone
    return FileSelection(
        operators=values["op_time"] and not is_none, tasks=not is_none, memory=with_memory(values), counters=values["counters"],
        metadata=metadata, timeline_bytes=values["timeline_limit"] << 20 if values["timeline_limit"] else None, pretty=pretty,
        without_kinds=kinds("optypes_not_deal"), only_kinds=kinds("optypes_to_deal"), subgraph=values["subgraph"],
        full_names=values["is_show_op_path"], details=values["is_detail"], steps_chosen=steps,
        exchanges=values["profile_communication"] or values["profiler_level"] in (ProfilerLevel.Level1, ProfilerLevel.Level2),
    )


def with_memory(values: dict[str, Any]) -> bool:
    """Return whether memory is recorded."""
    return bool(values["profile_memory"] or values["profile_framework"] in ("all", "memory"))
