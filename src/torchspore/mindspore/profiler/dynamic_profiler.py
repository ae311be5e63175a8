"""`DynamicProfilerMonitor`: a callback that profiles the steps that a file names; the file may change during a training."""
from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from torchspore.base import json_text
from torchspore.base.arguments import is_int
from torchspore.base.files import read_plain, write_atomically
from torchspore.base.text import message, short
from torchspore.mindspore import log
from torchspore.mindspore.profiler.arguments import NUMBERED
from torchspore.mindspore.profiler.choices import AicoreMetrics, ProfilerActivity, ProfilerLevel
from torchspore.mindspore.profiler.profiler import Profiler
from torchspore.mindspore.train.callback._callback import Callback, RunContext

FILE = "profiler_config.json"
_ACTIVITIES = {0: ["CPU", "NPU"], 1: ["CPU"], 2: ["NPU"]}
_PASSED = ("profile_memory", "with_stack", "data_simplification", "record_shapes", "parallel_strategy")
_LARGEST = 1 << 20


class DynamicProfilerMonitor(Callback):
    """Profiles from step `start_step` to step `stop_step`, both from 1, of `profiler_config.json` in the folder `cfg_path`.

    The file is read every `poll_interval` seconds, and created if missing. Later steps may be written into it during the training. Profiles
    go to its `prof_path`, or to `output_path`. A damaged file is logged once, and the training continues. Raises TypeError and ValueError
    for invalid arguments.
    """

    def __init__(self, cfg_path: Any = None, output_path: str = "./dyn_profile_data", poll_interval: int = 2, **kwargs: Any) -> None:
        super().__init__()
        if not isinstance(cfg_path, str) or not cfg_path:
            raise TypeError(message(f"DynamicProfilerMonitor(cfg_path={short(cfg_path)})", f"a folder, got {type(cfg_path).__name__}"))
        if not isinstance(output_path, str):
            call_text = f"DynamicProfilerMonitor(output_path={short(output_path)})"
            raise TypeError(message(call_text, f"a str, got {type(output_path).__name__}"))
        if isinstance(poll_interval, bool) or not isinstance(poll_interval, (int, float)) or poll_interval < 0:
            raise ValueError(message(f"DynamicProfilerMonitor(poll_interval={short(poll_interval)})", "seconds, 0 or more"))
        if kwargs:
            name = next(iter(kwargs))
            raise TypeError(message(f"DynamicProfilerMonitor({name}=...)", "cfg_path, output_path and poll_interval"))
        folder = Path(cfg_path).expanduser()
        self._file, self._output, self._every = folder / FILE, output_path, poll_interval
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not self._file.exists():
                write_atomically(self._file, json.dumps({"start_step": -1, "stop_step": -1}, indent=2))
        except OSError as error:                  # a full disk must not end the training, and the file may be created later
            log.warning(f"{self._file} can't be created ({error.strerror}); nothing is profiled until it exists")
        self._looked, self._stamp, self._reported = float("-inf"), None, ""
        self._configuration: dict[str, Any] = {}
        self._step, self._done = 0, 0
        self._running: Profiler | None = None

    def step_begin(self, run_context: RunContext | None = None) -> None:
        """Starts recording if it is time to."""
        self._step += 1
        now = time.monotonic()
        if now - self._looked >= self._every:
            self._looked = now
            self._look()
        start, stop = self._configuration.get("start_step", -1), self._configuration.get("stop_step", -1)
        if self._running is None and self._done < start <= self._step <= stop:
            try:
                self._running = Profiler(**self._arguments())
            except RuntimeError as error:         # the author of the file may not know about the program's profiler
                self._done = stop
                log.warning(f"{self._file}: {str(error).partition(chr(10))[0]}; steps {start} to {stop} are not profiled")

    def step_end(self, run_context: RunContext | None = None) -> None:
        """Ends recording after the last of the steps, and writes the files."""
        if self._running is not None and self._step >= self._configuration.get("stop_step", -1):
            self._finish()

    def step(self) -> None:
        """Is called between two steps of a custom loop."""
        self.step_end()
        self.step_begin()

    def end(self, run_context: RunContext | None = None) -> None:
        """Ends recording with the training."""
        self._finish()

    def _finish(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            self._done = self._step
            running.stop()
            mode = "async" if self._configuration.get("analyse_mode") == 1 else "sync"
            running.analyse(mode=mode)

    def _look(self) -> None:
        try:
            stat = self._file.stat()
            if (stat.st_mtime_ns, stat.st_size) == self._stamp:
                return
            self._stamp = (stat.st_mtime_ns, stat.st_size)
            if stat.st_size > _LARGEST:
                raise ValueError(f"{stat.st_size:,} bytes are too many for a configuration")
            self._configuration = _checked(json_text.parse(read_plain(self._file)))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            text = f"{self._file}: {error or type(error).__name__}; nothing is profiled until it is fixed"
            if text != self._reported:
                self._reported = text
                log.warning(text)

    def _arguments(self) -> dict[str, Any]:
        configuration = self._configuration
        values: dict[str, Any] = {name: configuration[name] for name in _PASSED if name in configuration}
        converted = {name: configuration[name] for name in ("profiler_level", "aic_metrics", "activities") if name in configuration}
        return {**values, **converted,
                "output_path": configuration.get("prof_path") or self._output}


def _checked(content: Any) -> dict[str, Any]:
    """Return the configuration with MindSpore's classes instead of their numbers and names. Raises ValueError for invalid values."""
    if not isinstance(content, dict):
        raise ValueError(f"expected one JSON object, got a {type(content).__name__}")
    values = dict(content)
    for name in ("start_step", "stop_step"):
        value = values.get(name, -1)
        if not is_int(value):
            raise ValueError(f"{name}: expected an int, got {short(value)}")
    for name in (*_PASSED, "analyse"):
        if name in values and not isinstance(values[name], bool):
            raise ValueError(f"{name}: expected true or false, got {short(values[name])}")
    if "prof_path" in values and not isinstance(values["prof_path"], str):
        raise ValueError(f"prof_path: expected a text, got {short(values['prof_path'])}")
    if "profiler_level" in values:
        level = values["profiler_level"]
        values["profiler_level"] = ProfilerLevel(level if isinstance(level, str) else "LevelNone" if level == -1 else f"Level{level}")
    if "aic_metrics" in values:
        group = values["aic_metrics"]
        name = NUMBERED[group] if is_int(group) and 0 <= group < len(NUMBERED) else group
        values["aic_metrics"] = AicoreMetrics("None" if name in (-1, "AiCoreNone", None) else name)
    if "activities" in values:
        activities = values["activities"]
        names = _ACTIVITIES.get(activities, []) if isinstance(activities, int) else activities
        values["activities"] = [ProfilerActivity(name) for name in names]
    return values
