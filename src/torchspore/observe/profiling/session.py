"""Profiles this process with torch's profiler, and reads the result."""
from __future__ import annotations

import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import torch

from torchspore.base.frames import warn
from torchspore.engine.devices import device, gpu_kinds
from torchspore.engine.torch_internals.torch_private import TELLS_PYTHON, profile_events
from torchspore.graph.report import provenance
from torchspore.observe.profiling import event_reader, instrumentation
from torchspore.observe.profiling.profile_data import ProfileData
from torchspore.translations import translate

MOST = 30_000
"""The number of operators after which the profile of an entire program ends automatically."""
_BYTES, _SHARE = 30_000, 4
"""The bytes that torch stores for an operator of PyNative mode until a profile is read; the share of the free memory for them."""

_lock = threading.Lock()


class _Active:
    """The running session."""

    def __init__(self) -> None:
        self.session: ProfilerSession | None = None


ACTIVE = _Active()


def expect() -> None:
    """Make graphs that are captured from now on record their Cells, which a later profile names."""
    provenance.keep_all()


class Busy(Exception):
    """Another profile is active; torch has one profiler for a process."""


_ACTIVITIES = {gpu_kinds.CUDA: torch.profiler.ProfilerActivity.CUDA, gpu_kinds.XPU: torch.profiler.ProfilerActivity.XPU}
"""The activities of torch's profiler on a GPU."""


class ProfilerSession:
    """One profile, from `start` to `stop`.

    `with_shapes`, `with_memory` and `with_stack` make torch note more and cost more. After `most` operators (by default as many as a
    quarter of the free memory holds) it stops by itself, between two calls, and calls `full`.
    """

    def __init__(
        self, on_cpu: bool = True, on_device: bool = True, with_shapes: bool = True, with_memory: bool = False, with_stack: bool = False,
        most: int | None = None, full: Callable[[], None] | None = None,
    ) -> None:
        if with_stack and not TELLS_PYTHON:
            warn(f"with_stack: torch {torch.__version__} notes no calls of Python.\n\nhint: pip install -U torch.")
        # torch's profiler has no activity for Apple's mps: its operators are timed on the host alone.
        activity = _ACTIVITIES.get(gpu_kinds.device_type()) if gpu_kinds.is_available() else None
        has_gpu = activity is not None
        activities = [torch.profiler.ProfilerActivity.CPU] if on_cpu or not has_gpu else []
        if on_device and activity is not None:
            activities.append(activity)
        self._options: dict[str, Any] = {
            "activities": activities, "profile_memory": with_memory, "with_stack": with_stack, "record_shapes": with_shapes,
            "acc_events": False,                          # torch would make its own objects of all events at once
        }
        self._most, self._full = most or max(MOST, _free() // _SHARE // _BYTES), full
        self._profile: torch.profiler.profile | None = None
        self._points = instrumentation.Points(self._look)
        self._bytes_before: dict[str, int] = {}
        self.is_full = False

    def start(self) -> None:
        """Watches from now on. Raises Busy where another watch does."""
        with _lock:
            if ACTIVE.session is not None:
                raise Busy
            ACTIVE.session = self
        try:
            expect()
            os.environ.setdefault("KINETO_LOG_LEVEL", "6")            # it writes its own beginning and end to stderr otherwise
            self._profile = torch.profiler.profile(**self._options)
            module = gpu_kinds.module()
            if module.is_available() and module.is_initialized():
                self._bytes_before = {f"GPU:{n}": module.memory_allocated(n) for n in range(module.device_count())}
            with warnings.catch_warnings():                           # torch 2.11 explains `acc_events` to everybody
                warnings.simplefilter("ignore")
                self._profile.start()
            self._points.begin()
        except BaseException:
            _end(self)
            raise

    @property
    def has_begun(self) -> bool:
        """True if an operator was seen."""
        return self._points.seen > 0

    @property
    def with_memory(self) -> bool:
        """True if allocations are noted."""
        return bool(self._options["profile_memory"])

    def stop(self) -> None:
        """Watches no longer; once more does nothing."""
        if self._profile is None or ACTIVE.session is not self:
            return
        try:
            if device.has_queue():
                torch.accelerator.synchronize()
            self._points.end()
            self._profile.stop()
        finally:
            _end(self)

    def export(self, target: BinaryIO) -> None:
        """Writes torch's own trace. Raises OSError."""
        if self._profile is None:
            return
        with tempfile.TemporaryDirectory() as folder:      # torch skips values that it cannot write, and leaves an incomplete file
            path = Path(folder) / "trace.json"
            self._profile.export_chrome_trace(str(path))
            with path.open("rb") as file:
                shutil.copyfileobj(file, target)

    def read(self, forward_point: str = "", backward_point: str = "") -> ProfileData:
        """Return the profile. `forward_point` and `backward_point` name the operators at which forward begins and the gradient ends."""
        events = [] if self._profile is None else profile_events(self._profile)
        profile = event_reader.read(events, self._points.graphs, self._bytes_before, forward_point, backward_point)
        profile.device = str(gpu_kinds.module().get_device_name()) if profile.kernels else "CPU"
        if self.is_full:
            text = translate("The profile ended automatically after {count:,} operators; a schedule selects the steps to profile.")
            profile.notes.append(text.format(count=self._most))
        return profile

    def _look(self) -> None:
        if self._points.seen > self._most and not self.is_full and threading.current_thread() is threading.main_thread():
            self.is_full = True
            self.stop()
            if self._full is not None:
                self._full()


def _free() -> int:
    """Bytes of memory that programs can still have."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0


def _end(watch: ProfilerSession) -> None:
    with _lock:
        if ACTIVE.session is watch:
            ACTIVE.session = None
