"""`DynamicProfilerMonitor`: a callback that profiles the steps which a file names, and which may change while a training runs."""
from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from torchspore.base import json_text
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
    """Profiles from step `start_step` to step `stop_step`, both from 1 on, as `profiler_config.json` in the folder `cfg_path` says.

    The file is looked at every `poll_interval` seconds, and made where it is not there. Later steps may be written into it while the
    training runs. Files go to its `prof_path`, or to `output_path`. A damaged file is told once in the log, and the training goes on.
    Raises TypeError and ValueError for arguments that do not fit.
    """

    def __init__(self, cfg_path: Any = None, output_path: str = "./dyn_profile_data", poll_interval: int = 2, **kwargs: Any) -> None:
        super().__init__()
        if not isinstance(cfg_path, str) or not cfg_path:
            raise TypeError(message(f"DynamicProfilerMonitor(cfg_path={short(cfg_path)})", f"a folder, got {type(cfg_path).__name__}"))
        if not isinstance(output_path, str):
            wrote = f"DynamicProfilerMonitor(output_path={short(output_path)})"
            raise TypeError(message(wrote, f"a str, got {type(output_path).__name__}"))
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
        except OSError as error:                  # a full disk ends no training, and the file may come later
            log.warning(f"{self._file} can't be made ({error.strerror}); nothing is profiled until it is there")
        self._looked, self._stamp, self._told = float("-inf"), None, ""
        self._given: dict[str, Any] = {}
        self._step, self._done = 0, 0
        self._running: Profiler | None = None

    def step_begin(self, run_context: RunContext | None = None) -> None:
        """Begins to watch, where it is time to."""
        self._step += 1
        now = time.monotonic()
        if now - self._looked >= self._every:
            self._looked = now
            self._look()
        start, stop = self._given.get("start_step", -1), self._given.get("stop_step", -1)
        if self._running is None and self._done < start <= self._step <= stop:
            try:
                self._running = Profiler(**self._arguments())
            except RuntimeError as error:         # the file is written by who does not know of the program's own profiler
                self._done = stop
                log.warning(f"{self._file}: {str(error).partition(chr(10))[0]}; steps {start} to {stop} are not profiled")

    def step_end(self, run_context: RunContext | None = None) -> None:
        """Ends watching after the last of the steps, and writes the files."""
        if self._running is not None and self._step >= self._given.get("stop_step", -1):
            self._finish()

    def step(self) -> None:
        """Is called between two steps of a loop that is no Model.train."""
        self.step_end()
        self.step_begin()

    def end(self, run_context: RunContext | None = None) -> None:
        """Ends watching with the training."""
        self._finish()

    def _finish(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            self._done = self._step
            running.stop()
            mode = "async" if self._given.get("analyse_mode") == 1 else "sync"
            running.analyse(mode=mode)

    def _look(self) -> None:
        try:
            stat = self._file.stat()
            if (stat.st_mtime_ns, stat.st_size) == self._stamp:
                return
            self._stamp = (stat.st_mtime_ns, stat.st_size)
            if stat.st_size > _LARGEST:
                raise ValueError(f"{stat.st_size:,} bytes are too many for a configuration")
            self._given = _checked(json_text.parse(read_plain(self._file)))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            text = f"{self._file}: {error or type(error).__name__}; nothing is profiled until it is mended"
            if text != self._told:
                self._told = text
                log.warning(text)

    def _arguments(self) -> dict[str, Any]:
        given = self._given
        found: dict[str, Any] = {name: given[name] for name in _PASSED if name in given}
        return {**found, **{name: given[name] for name in ("profiler_level", "aic_metrics", "activities") if name in given},
                "output_path": given.get("prof_path") or self._output}


def _checked(content: Any) -> dict[str, Any]:
    """The configuration with MindSpore's classes in the place of their numbers and names. Raises ValueError for what does not fit."""
    if not isinstance(content, dict):
        raise ValueError(f"expected one JSON object, got a {type(content).__name__}")
    found = dict(content)
    for name in ("start_step", "stop_step"):
        value = found.get(name, -1)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{name}: expected an int, got {short(value)}")
    for name in (*_PASSED, "analyse"):
        if name in found and not isinstance(found[name], bool):
            raise ValueError(f"{name}: expected true or false, got {short(found[name])}")
    if "prof_path" in found and not isinstance(found["prof_path"], str):
        raise ValueError(f"prof_path: expected a text, got {short(found['prof_path'])}")
    if "profiler_level" in found:
        level = found["profiler_level"]
        found["profiler_level"] = ProfilerLevel(level if isinstance(level, str) else "LevelNone" if level == -1 else f"Level{level}")
    if "aic_metrics" in found:
        group = found["aic_metrics"]
        name = NUMBERED[group] if isinstance(group, int) and not isinstance(group, bool) and 0 <= group < len(NUMBERED) else group
        found["aic_metrics"] = AicoreMetrics("None" if name in (-1, "AiCoreNone", None) else name)
    if "activities" in found:
        asked = found["activities"]
        names = _ACTIVITIES.get(asked, []) if isinstance(asked, int) else asked
        found["activities"] = [ProfilerActivity(name) for name in names]
    return found
