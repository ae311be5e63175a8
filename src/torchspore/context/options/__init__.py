"""Every option, by its key; the other files of this package contain only declarations."""

from __future__ import annotations

from types import ModuleType

from torchspore.context.option import Alias, Option
from torchspore.context.options import (
    ascend,
    debug,
    execution,
    gpu,
    jit,
    kernels,
    offload,
    parallel,
    parallel_execution,
    profiling,
    ps,
    speedup,
    system,
    tuning,
)

OPTIONS: dict[str, Option] = {}
ALIASES: dict[str, Alias] = {}
_NAMES: dict[str, list[str]] = {}


def _collect(module: ModuleType) -> None:
    for name, declared in vars(module).items():
        if isinstance(declared, Option):
            declared.name = declared.name or name
            if declared.api == "context":
                declared.api = getattr(module, "API", "context")
            OPTIONS[declared.key] = declared
        elif isinstance(declared, Alias):
            declared.name = name
            declared.api = getattr(module, "API", "context")
            ALIASES[name if declared.api == "context" else f"{declared.api}.{name}"] = declared


def _join() -> None:
    for option in OPTIONS.values():
        parent = OPTIONS.get(option.parent or "")
        if parent is not None:
            parent.members[option.name] = option
        if option.member_of is None or option.top_level:
            _NAMES.setdefault(option.api, []).append(option.name)
    for alias in ALIASES.values():
        _NAMES.setdefault(alias.api, []).append(alias.name)


def names_of(api: str) -> list[str]:
    """Return every name that a setter or getter accepts."""
    return _NAMES.get(api, [])


for _module in (system, execution, jit, kernels, tuning, debug, profiling, gpu, ascend, speedup, parallel, parallel_execution, ps, offload):
    _collect(_module)
_join()
