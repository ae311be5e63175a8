"""`Profiler`, and the later `profile`."""
from __future__ import annotations

import atexit
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchspore.base import json_text
from torchspore.base.arguments import is_int
from torchspore.base.files import atomic_file
from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.engine import process
from torchspore.mindspore import log
from torchspore.mindspore.profiler import arguments
from torchspore.mindspore.profiler.choices import ProfilerActivity, ProfilerLevel
from torchspore.mindspore.profiler.schedules import later
from torchspore.observe.profiling import files, session
from torchspore.observe.profiling.profile_data import ProfileData
from torchspore.translations import translate


class Profiler:
    """Records operators from `start` (immediately, with `start_profile`) to `stop`; `analyse` writes the profile into `output_path`.

    A profile is a folder `HOST_PROCESS_TIME_ascend_ms` with the files of MindSpore 2.x: `ASCEND_PROFILER_OUTPUT/trace_view.json`, which
    Perfetto and `torchspore trace view` draw, tables of operators, steps and memory, and `FRAMEWORK`; `profiler` next to it has those of
    1.x. `data_simplification=False` adds torch's trace. Raises TypeError for an unknown argument, ValueError for one that needs Ascend's
    hardware.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._arguments = arguments.checked(type(self).__name__, kwargs)
        self._folder = Path(str(self._arguments["output_path"])).expanduser()
        self._metadata: dict[str, Any] = {}
        self._watch: session.ProfilerSession | None = None
        self._warming = False
        self._seen: list[tuple[ProfileData, session.ProfilerSession]] = []
        self._sums: dict[tuple[str, str], list[int]] = {}
        self._step = 0
        self._is_on = False
        session.expect()
        if self._arguments["start_profile"]:
            self.start()

    def start(self) -> None:
        """Starts recording, or recording the steps of the schedule. Raises RuntimeError if this or another profiler is recording."""
        if self._is_on:
            raise RuntimeError(message("Profiler.start()", "a profiler that has not been started"))
        self._is_on, self._step = True, 0
        try:
            self._follow()
        except BaseException:
            self._is_on = False
            raise
        atexit.register(self._leave)

    def stop(self) -> None:
        """Stops recording. Raises RuntimeError if it was not recording."""
        if not self._is_on:
            raise RuntimeError(message("Profiler.stop()", "a profiler that was started", hint="call start() before"))
        self._is_on = False
        atexit.unregister(self._leave)
        self._end()

    def _leave(self) -> None:
        """End an open recording, because torch's profiler must end before the interpreter."""
        if self._watch is not None:
            self._watch.stop()

    def step(self) -> None:
        """Marks the end of a step."""
        if not self._is_on:
            raise RuntimeError(message("Profiler.step()", "a profiler that was started", hint="call start() before"))
        plan = self._arguments["schedule"]
        if plan is not None and plan.ends_watch(self._step):
            self._end()
        self._step += 1
        self._follow()

    def _follow(self) -> None:
        """Start or end recording, depending on the schedule's action for the next step."""
        plan = self._arguments["schedule"]
        warms = plan is not None and not plan.is_watched(self._step) and plan(self._step).name == "WARM_UP"
        watched = plan is None or plan.is_watched(self._step)
        if self._watch is not None and self._warming and not warms:
            self._watch.stop()                       # the records of the warm-up are discarded
            self._watch = None
        if self._watch is None and (watched or warms):
            self._begin()
            self._warming = warms

    def _begin(self) -> None:
        values = self._arguments
        activities = values["activities"] or list(ProfilerActivity)
        recording = session.ProfilerSession(
            ProfilerActivity.CPU in activities, ProfilerActivity.GPU in activities, values["record_shapes"], arguments.with_memory(values),
            values["with_stack"], full=lambda: log.warning("the profile is as large as memory allows and ends; a schedule chooses steps"),
        )
        try:
            recording.start()
        except session.Busy:
            hint = "call stop() of the other one, or unset enable_profiling"
            text = message("Profiler.start() while another profiler watches", "one at a time in a process", hint=hint)
            raise RuntimeError(text) from None
        self._watch = recording

    def _end(self) -> None:
        recording, self._watch = self._watch, None
        if recording is not None:
            recording.stop()
            if not self._warming:
                self._seen.append((self._read(recording), recording))
                if self._arguments["on_trace_ready"] is not None:
                    self._arguments["on_trace_ready"](self)

    def _read(self, recording: session.ProfilerSession) -> ProfileData:
        profile = recording.read()
        config = self._arguments["experimental_config"]
        if config is not None:
            stretches = [item for item in profile.stretches if item.kind != "range" or config.keeps(item.name)]
            profile = replace(profile, stretches=stretches)
        if not self._arguments["data_process"] and self._arguments["profiler_level"] is ProfilerLevel.LevelNone:
            profile = replace(profile, operators=[])
        for row in profile.operators:
            sums = self._sums.setdefault((row.kind, ",".join(map(str, row.inputs))), [0, 0, 0])
            sums[0] += 1
            sums[1] += row.cost
            sums[2] += bool(row.device_span)
        return profile

    def analyse(self, offline_path: str | None = None, pretty: bool = False, step_list: Any = None, mode: str = "sync") -> None:
        """Ends an open recording and writes the files; `pretty` indents JSON, `mode` 'async' writes in the background.

        If they can't be written, as on a full disk, it warns, and the program continues.
        `step_list` selects steps, by their numbers from 1. `offline_path` reads an existing profile, as `offline_analyse` does. Raises
        TypeError and ValueError for invalid arguments.
        """
        if offline_path is not None:
            self.offline_analyse(offline_path, pretty, step_list)
            return
        steps = _chosen("Profiler.analyse", step_list)
        if mode not in ("sync", "async"):
            raise ValueError(message(f"Profiler.analyse(mode={short(mode)})", "'sync' or 'async'"))
        if self._is_on:
            self.stop()
        write = self._writer(None, None, pretty, steps)
        later(write) if mode == "async" else write()

    def _writer(
        self, folder: Path | None, worker: str | None, pretty: bool = False, steps: frozenset[int] = frozenset(),
    ) -> Callable[[], None]:
        """Return the function that writes all records that have not been written yet."""
        seen, self._seen = self._seen, []
        target, metadata = folder or self._folder, dict(self._metadata)

        def write() -> None:
            options = arguments.output_options(self._arguments, metadata, pretty, steps)
            for profile, recording in seen:
                profile_folder = files.write(profile, target, options, worker)
                files.write_older(profile, target, options, process.rank())
                if self._arguments["data_process"]:
                    files.write_input(profile, target, process.rank())
                if not self._arguments["data_simplification"]:
                    (profile_folder / "PROF_torch").mkdir()
                    with atomic_file(profile_folder / "PROF_torch" / "trace.json") as file:
                        recording.export(file)
                text = translate("{operators:,} operators in {steps:,} steps: {folder}")
                effects.note("profile", text.format(operators=len(profile.operators), steps=len(profile.steps), folder=profile_folder))

        def write_or_warn() -> None:
            try:
                write()
            except OSError as error:                 # a full disk must not end the training
                log.warning(f"the profile can't be written to {target} ({error.strerror or error}); the program continues without it, and "
                            "what is written stays readable")

        return write_or_warn

    @staticmethod
    def offline_analyse(path: str, pretty: bool = False, step_list: Any = None, data_simplification: bool = True) -> None:
        """Writes the page of each profile below `path` next to its trace, as `trace_view.html`, and its operators as `operators.json`.

        `pretty` indents that, `step_list` selects steps by number. With `data_simplification=False` torch's traces there get a page too.
        Raises ValueError if there is no profile, or a damaged one.
        """
        from torchspore.base.files import write_atomically
        from torchspore.html_pages import trace

        steps = _chosen("Profiler.offline_analyse", step_list)
        traces = sorted(Path(path).expanduser().rglob("trace_view.json"))
        traces += [] if data_simplification else sorted(Path(path).expanduser().rglob("PROF_torch/trace.json"))
        if not traces:
            raise ValueError(message(f"Profiler.offline_analyse({short(path)})", "a folder with a profile (trace_view.json)"))
        for file in traces:
            try:
                read = trace.read(file, steps)
            except trace.NotATrace as error:
                raise ValueError(message(f"Profiler.offline_analyse({short(path)}): {file}: {error}", "a trace")) from None
            write_atomically(file.with_suffix(".html"), trace.page(read, file))
            rows = trace.data(read, file)["operators"]
            write_atomically(file.with_name("operators.json"), json.dumps(rows, indent=2 if pretty else None))

    def op_analyse(self, op_name: str | Iterable[str], device_id: int | None = None) -> str:
        """Returns JSON with the counts and times, in microseconds, of each type of operator for each shape of inputs.

        Raises TypeError unless the names are strs, ValueError for a `device_id` below 0.
        """
        names = [op_name] if isinstance(op_name, str) else list(op_name) if isinstance(op_name, (list, tuple, set)) else None
        if names is None or not all(isinstance(name, str) for name in names):
            raise TypeError(message(f"Profiler.op_analyse({short(op_name)})", f"a str or a list of strs, got {type(op_name).__name__}"))
        if device_id is not None and (not is_int(device_id) or device_id < 0):
            raise ValueError(message(f"Profiler.op_analyse(device_id={short(device_id)})", "an int from 0 on, or None"))
        rows_by_kind: dict[str, Any] = {name: [] for name in names}
        for (kind, shapes), (count, span, on_device) in self._sums.items():
            if kind in rows_by_kind:
                rows_by_kind[kind].append({
                    "op_side": "gpu" if on_device else "cpu", "input_shape": shapes, "op_occurrences": count,
                    "op_total_time(us)": span / 1e3, "op_avg_time(us)": span / 1e3 / count,
                })
        return json.dumps({**rows_by_kind, "device_id": str(process.rank()) if device_id is None else device_id})

    def add_metadata(self, key: str, value: str) -> None:
        """Writes `key: value` into profiler_metadata.json. Raises TypeError unless both are str."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(message(f"add_metadata({short(key)}, {short(value)})", "two strs"))
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Writes `key` and the content of the JSON text `value` into profiler_metadata.json. Raises ValueError for invalid JSON."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(message(f"add_metadata_json({short(key)}, {short(value)})", "two strs"))
        self._metadata[key] = json_text.parse(value)


class profile(Profiler):
    """A Profiler for a `with` block, whose trace `on_trace_ready` handles (or `analyse` writes)."""

    def __init__(
        self, activities: Any = None, with_stack: bool = False, profile_memory: bool = False, data_process: bool = False,
        parallel_strategy: bool = False, start_profile: bool = True, hbm_ddr: bool = False, pcie: bool = False, sync_enable: bool = True,
        record_shapes: bool = False, schedule: Any = None, on_trace_ready: Any = None, experimental_config: Any = None,
    ) -> None:
        super().__init__(
            activities=activities, with_stack=with_stack, profile_memory=profile_memory, data_process=data_process,
            parallel_strategy=parallel_strategy, start_profile=False, hbm_ddr=hbm_ddr, pcie=pcie, sync_enable=sync_enable,
            record_shapes=record_shapes, schedule=schedule, on_trace_ready=on_trace_ready, experimental_config=experimental_config,
        )
        self._starts = start_profile

    def __enter__(self) -> profile:
        if self._starts:
            self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._is_on:
            self.stop()


def analyse(
    profiler_path: str, max_process_number: int = 1, pretty: bool = False, step_list: Any = None, data_simplification: bool = True,
) -> None:
    """`Profiler.offline_analyse`: creates the pages of profiles below `profiler_path` after their program, in one process.

    Raises TypeError and ValueError for invalid arguments.
    """
    if not is_int(max_process_number):
        raise TypeError(message(f"analyse(max_process_number={short(max_process_number)})", "an int from 1 on"))
    if max_process_number < 1:
        raise ValueError(message(f"analyse(max_process_number={max_process_number})", "an int from 1 on"))
    Profiler.offline_analyse(profiler_path, pretty, step_list, data_simplification)


def _chosen(call: str, steps: Any) -> frozenset[int]:
    if steps is None:
        return frozenset()
    if not isinstance(steps, (list, tuple)) or not all(is_int(step) for step in steps):
        raise TypeError(message(f"{call}(step_list={short(steps)})", "a list of ints"))
    return frozenset(steps)
