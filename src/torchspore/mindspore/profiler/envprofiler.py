"""`EnvProfiler`: the profile that the environment variable MS_PROFILER_OPTIONS requests, without a change of the program."""
from __future__ import annotations

import atexit
import os
from typing import Any

from torchspore.base import json_text
from torchspore.base.suggest import closest
from torchspore.base.text import short
from torchspore.mindspore import log
from torchspore.mindspore.profiler.arguments import CURRENT
from torchspore.mindspore.profiler.choices import AicoreMetrics, ProfilerActivity, ProfilerLevel
from torchspore.mindspore.profiler.profiler import Profiler

VARIABLE = "MS_PROFILER_OPTIONS"
_CLASSES: dict[str, Any] = {"profiler_level": ProfilerLevel, "aic_metrics": AicoreMetrics}
_EXCLUDED = ("schedule", "on_trace_ready", "experimental_config", "start_profile")
"""Arguments that a text can't express; `start` replaces start_profile."""


class _Session:
    """The profiler that the environment started."""

    def __init__(self) -> None:
        self.running: Profiler | None = None


_SESSION = _Session()


class EnvProfiler:
    """Profiles the full program with MS_PROFILER_OPTIONS, a JSON object such as '{"start": true, "output_path": "data"}'.

    It starts when mindspore is imported, and writes its files at the program's end, or when `analyse` is called.
    """

    @staticmethod
    def init_profiler() -> None:
        """Starts if the variable requests it. Invalid parts of the variable are logged, and the program continues."""
        options = _options()
        if _SESSION.running is not None or options.pop("start", False) is not True:
            return
        try:
            _SESSION.running = Profiler(**options)
        except (TypeError, ValueError, RuntimeError) as error:
            log.error(f"{VARIABLE}: {str(error).partition(chr(10))[0]}; nothing is profiled")
            return
        atexit.register(EnvProfiler().analyse)

    def analyse(self) -> None:
        """Ends recording and writes the files; a second call does nothing."""
        running, _SESSION.running = _SESSION.running, None
        if running is not None:
            running.analyse()


def _options() -> dict[str, Any]:
    """Return the members of the variable that are arguments of a Profiler, converted."""
    text = os.environ.get(VARIABLE, "")
    try:
        content = json_text.parse(text) if text else {}
        if not isinstance(content, dict):
            raise ValueError(f"expected one JSON object, got a {type(content).__name__}")
    except (ValueError, RecursionError) as error:
        log.error(f"{VARIABLE}={short(text)}: {error or 'nested too deeply'}; nothing is profiled")
        return {}
    allowed = [name for name in ("start", *CURRENT) if name not in _EXCLUDED]
    options = {}
    for name, value in content.items():
        if name not in allowed:
            near = closest(name, allowed)
            log.warning(f"{VARIABLE}: there is no {short(name)}; it is ignored" + (f". Did you mean {near}?" if near else ""))
            continue
        try:
            options[name] = _as_class(name, value)
        except (ValueError, TypeError) as error:
            log.warning(f"{VARIABLE}: {name}={short(value)}: {error}; it is ignored")
    return options


def _as_class(name: str, value: Any) -> Any:
    if name == "activities":
        return [ProfilerActivity(name_of_activity) for name_of_activity in value]
    if name in _CLASSES and value is not None:
        return _CLASSES[name]("None" if value == "AiCoreNone" else value)
    return value
