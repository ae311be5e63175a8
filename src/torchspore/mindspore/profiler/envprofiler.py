"""`EnvProfiler`: the profile that the environment variable MS_PROFILER_OPTIONS asks for, with no line in the program."""
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
_LEFT_OUT = ("schedule", "on_trace_ready", "experimental_config", "start_profile")
"""What no text can give; whether to start is said by `start`."""
_running: Profiler | None = None


class EnvProfiler:
    """Watches the whole program as MS_PROFILER_OPTIONS says, a JSON object such as '{"start": true, "output_path": "data"}'.

    It begins when mindspore is imported, and writes its files at the program's end, or when `analyse` is called.
    """

    @staticmethod
    def init_profiler() -> None:
        """Begins, where the variable asks for it. What can't be understood of it is told in the log, and the program goes on."""
        global _running
        given = _options()
        if _running is not None or given.pop("start", False) is not True:
            return
        try:
            _running = Profiler(**given)
        except (TypeError, ValueError, RuntimeError) as error:
            log.error(f"{VARIABLE}: {str(error).partition(chr(10))[0]}; nothing is profiled")
            return
        atexit.register(EnvProfiler().analyse)

    def analyse(self) -> None:
        """Ends watching and writes the files; once more does nothing."""
        global _running
        running, _running = _running, None
        if running is not None:
            running.analyse()


def _options() -> dict[str, Any]:
    """The members of the variable that a Profiler has, as it takes them."""
    text = os.environ.get(VARIABLE, "")
    try:
        content = json_text.parse(text) if text else {}
        if not isinstance(content, dict):
            raise ValueError(f"expected one JSON object, got a {type(content).__name__}")
    except (ValueError, RecursionError) as error:
        log.error(f"{VARIABLE}={short(text)}: {error or 'nested too deeply'}; nothing is profiled")
        return {}
    known = [name for name in ("start", *CURRENT) if name not in _LEFT_OUT]
    found = {}
    for name, value in content.items():
        if name not in known:
            near = closest(name, known)
            log.warning(f"{VARIABLE}: there is no {short(name)}; it is passed over" + (f". Did you mean {near}?" if near else ""))
            continue
        try:
            found[name] = _as_class(name, value)
        except (ValueError, TypeError) as error:
            log.warning(f"{VARIABLE}: {name}={short(value)}: {error}; it is passed over")
    return found


def _as_class(name: str, value: Any) -> Any:
    if name == "activities":
        return [ProfilerActivity(one) for one in value]
    if name in _CLASSES and value is not None:
        return _CLASSES[name]("None" if value == "AiCoreNone" else value)
    return value
