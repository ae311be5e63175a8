"""`Profiler`, the later `profile`, and schedules of the steps that they watch."""
from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from torchspore.base.text import message, one_of, short
from torchspore.engine import profiling
from torchspore.mindspore.profiler.choices import AicoreMetrics, ProfilerActivity, ProfilerLevel

_HARDWARE = ("data_process", "hbm_ddr", "l2_cache", "parallel_strategy", "pcie")
"""Counters of Ascend's hardware and of MindSpore's own queues, which nothing here can read."""
_OPTIONS: dict[str, Any] = {
    "start_profile": True, "output_path": "./data", "profiler_level": ProfilerLevel.Level0, "activities": None, "schedule": None,
    "on_trace_ready": None, "profile_memory": False, "aic_metrics": AicoreMetrics.AiCoreNone, "with_stack": False,
    "data_simplification": True, "sync_enable": True, "record_shapes": True, **dict.fromkeys(_HARDWARE, False),
}


class schedule:
    """Which steps are watched: after `skip_first`, `wait` idle ones, `warmup` ones, `active` watched ones, `repeat` times (0: on and on).

    Raises ValueError for negative numbers, or no active step.
    """

    def __init__(self, *, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0) -> None:
        for name, value, least in (
            ("wait", wait, 0), ("active", active, 1), ("warmup", warmup, 0), ("repeat", repeat, 0), ("skip_first", skip_first, 0),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(message(f"schedule({name}={short(value)})", f"an int from {least} on"))
        self.wait, self.active, self.warmup, self.repeat, self.skip_first = wait, active, warmup, repeat, skip_first

    def to_dict(self) -> dict[str, int]:
        """The numbers by their names."""
        return dict(self.__dict__)

    def is_watched(self, step: int) -> bool:
        """Whether the step of this number, from 0, is watched."""
        cycle, at = divmod(step - self.skip_first, self.wait + self.warmup + self.active)
        return step >= self.skip_first and not (self.repeat and cycle >= self.repeat) and at >= self.wait + self.warmup

    def ends_watch(self, step: int) -> bool:
        """Whether a watched step is the last one of its cycle."""
        return self.is_watched(step) and (step - self.skip_first + 1) % (self.wait + self.warmup + self.active) == 0


def tensorboard_trace_handler(
    dir_name: str | None = None, worker_name: str | None = None, analyse_flag: bool = True, async_mode: bool = False,
) -> Callable[[Any], None]:
    """What writes a trace into the folder `dir_name` (the profiler's own where None) under `worker_name`, once one is ready.

    `async_mode` and `analyse_flag` say how Ascend's files would be read; the trace is written at once, unless `analyse_flag` is False.
    """
    if async_mode:
        raise ValueError(message("tensorboard_trace_handler(async_mode=True)", "False: the trace is written at once"))

    def ready(profiler: Any) -> None:
        if analyse_flag:
            profiler._write(Path(dir_name) if dir_name else None, worker_name)

    return ready


class Profiler:
    """Watches operators from `start` (at once, with `start_profile`) to `stop`; `analyse` writes what was seen into `output_path`.

    The files are `trace_N.json`, which chrome://tracing and Perfetto draw, and `operators_N.csv`, the longest operators first. Raises
    TypeError for an argument that no profiler has, ValueError for one that asks for Ascend's hardware.
    """

    def __init__(self, **kwargs: Any) -> None:
        unknown = [name for name in kwargs if name not in _OPTIONS]
        if unknown:
            raise TypeError(message(f"Profiler({unknown[0]}={short(kwargs[unknown[0]])})", one_of(_OPTIONS)))
        given = {**_OPTIONS, **kwargs}
        for name in _HARDWARE:
            if given[name]:
                raise ValueError(message(f"Profiler({name}={short(given[name])})", "False: only Ascend's own tools measure it"))
        if given["aic_metrics"] not in (AicoreMetrics.AiCoreNone, None):
            raise ValueError(message(f"Profiler(aic_metrics={given['aic_metrics']})", "AicoreMetrics.AiCoreNone: no such cores here"))
        self._given, self._folder = given, Path(str(given["output_path"])).expanduser()
        self._metadata: dict[str, Any] = {}
        self._trace: profiling.Trace | None = None
        self._seen: list[profiling.Trace] = []
        self._step = 0
        self._is_on = False
        if given["start_profile"]:
            self.start()

    def start(self) -> None:
        """Watches from now on, or the steps that the schedule names. Raises RuntimeError where it does already."""
        if self._is_on:
            raise RuntimeError(message("Profiler.start()", "a profiler that has not been started"))
        self._is_on, self._step = True, 0
        if self._watches():
            self._begin()

    def stop(self) -> None:
        """Watches no longer. Raises RuntimeError where it did not."""
        if not self._is_on:
            raise RuntimeError(message("Profiler.stop()", "a profiler that was started", hint="call start() before"))
        self._is_on = False
        self._end()

    def step(self) -> None:
        """Says that a step is over."""
        if not self._is_on:
            raise RuntimeError(message("Profiler.step()", "a profiler that was started", hint="call start() before"))
        plan = self._given["schedule"]
        if plan is not None and plan.ends_watch(self._step):
            self._end()
        self._step += 1
        if self._trace is None and self._watches():
            self._begin()

    def _watches(self) -> bool:
        return self._given["schedule"] is None or self._given["schedule"].is_watched(self._step)

    def _begin(self) -> None:
        if self._given["profiler_level"] is ProfilerLevel.LevelNone:
            return
        asked = self._given["activities"] or list(ProfilerActivity)
        self._trace = profiling.Trace(
            ProfilerActivity.CPU in asked, ProfilerActivity.GPU in asked, self._given["record_shapes"], self._given["profile_memory"],
            self._given["with_stack"],
        )
        self._trace.start()

    def _end(self) -> None:
        trace, self._trace = self._trace, None
        if trace is not None:
            trace.stop()
            self._seen.append(trace)
            if self._given["on_trace_ready"] is not None:
                self._given["on_trace_ready"](self)

    def analyse(self, offline_path: str | None = None, pretty: bool = False, step_list: Any = None, mode: str = "sync") -> None:
        """Ends watching, where it goes on, and writes the files; `pretty` indents JSON, and `mode` 'async' writes at once all the same.

        Raises ValueError for `offline_path` and `step_list`, which pick from files of Ascend's.
        """
        if offline_path is not None or step_list is not None:
            raise ValueError(message("Profiler.analyse(offline_path=..., step_list=...)", "None: traces are whole, and of this process"))
        if mode not in ("sync", "async"):
            raise ValueError(message(f"Profiler.analyse(mode={short(mode)})", "'sync' or 'async'"))
        if self._is_on:
            self.stop()
        self._write(None, None, 2 if pretty else None)

    def _write(self, folder: Path | None, worker: str | None, indent: int | None = None) -> None:
        folder = folder or self._folder
        folder.mkdir(parents=True, exist_ok=True)
        start = worker or f"{time.strftime('%Y%m%d%H%M%S')}"
        for number, trace in enumerate(self._seen):
            trace.write(folder / f"trace_{start}_{number}.json")
            with (folder / f"operators_{start}_{number}.csv").open("w", newline="") as file:
                rows = csv.DictWriter(file, ("name", "count", "total_us", "self_us"))
                rows.writeheader()
                rows.writerows(trace.totals())
        if self._metadata:
            (folder / f"metadata_{start}.json").write_text(json.dumps(self._metadata, indent=indent))
        self._seen = []

    def op_analyse(self, op_name: str | Iterable[str], device_id: int | None = None) -> str:
        """JSON of how often the operators of these names ran and how long, in microseconds. Raises ValueError for a `device_id`."""
        if device_id is not None:
            raise ValueError(message(f"Profiler.op_analyse(device_id={short(device_id)})", "None"))
        wanted = {op_name} if isinstance(op_name, str) else set(op_name)
        return json.dumps([row for trace in self._seen for row in trace.totals() if row["name"].rpartition("::")[2] in wanted])

    def add_metadata(self, key: str, value: str) -> None:
        """Writes `key: value` beside the trace. Raises TypeError for what is no str."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(message(f"add_metadata({short(key)}, {short(value)})", "two strs"))
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Writes `key` and what the JSON text `value` says beside the trace."""
        self._metadata[key] = json.loads(value)


class profile(Profiler):
    """A Profiler for a `with` block, whose trace `on_trace_ready` takes (or `analyse` writes)."""

    def __init__(
        self, activities: Any = None, with_stack: bool = False, profile_memory: bool = False, data_process: bool = False,
        parallel_strategy: bool = False, start_profile: bool = True, hbm_ddr: bool = False, pcie: bool = False, sync_enable: bool = True,
        record_shapes: bool = False, schedule: Any = None, on_trace_ready: Any = None, experimental_config: Any = None,
    ) -> None:
        if experimental_config is not None:
            raise ValueError(message("profile(experimental_config=...)", "None: it is about Ascend's own tools"))
        super().__init__(
            activities=activities, with_stack=with_stack, profile_memory=profile_memory, data_process=data_process,
            parallel_strategy=parallel_strategy, start_profile=False, hbm_ddr=hbm_ddr, pcie=pcie, sync_enable=sync_enable,
            record_shapes=record_shapes, schedule=schedule, on_trace_ready=on_trace_ready,
        )
        self._starts = start_profile

    def __enter__(self) -> profile:
        if self._starts:
            self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._is_on:
            self.stop()
