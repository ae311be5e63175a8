"""cuDNN through ctypes: the library that torch has loaded, a handle for each thread, and convolutions by named algorithms.

Experimental: no GPU has run this code yet. Tests run it with a stand-in of the library (tests/support/fake_cudnn.py), and call those
functions of the library itself that need no GPU. torch chooses algorithms itself and accepts no name; cuDNN 9 has functions that do.
"""
from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.engine.devices.gpu import cudnn_calls as calls
from torchspore.engine.devices.gpu.cudnn_calls import SUCCESS, Direction, Trial
from torchspore.errors import DeviceFailed, DeviceNotFound

PATH = "TORCHSPORE_CUDNN"
"""Names the library's file if it is not torch's own."""
_TYPES = {torch.float16: calls.HALF, torch.float32: calls.FLOAT, torch.float64: calls.DOUBLE, torch.bfloat16: calls.BFLOAT16}
DTYPES = tuple(_TYPES)


class Refused(Exception):
    """cuDNN can't compute a convolution by the algorithm that was asked for; the text is its own word."""


@dataclass(frozen=True)
class Job:
    """A convolution in one direction: the shapes of x, w and y, and everything else that an algorithm may depend on."""

    direction: Direction
    x: tuple[int, ...]
    w: tuple[int, ...]
    y: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    padding: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    may_round: bool
    """True if float32 may be rounded to TF32; `conv_allow_tf32`."""
    ordered: bool
    """True if sums must come out the same in each run; `deterministic`."""

    def __str__(self) -> str:
        sizes = f"x {_shown(self.x)}, weight {_shown(self.w)}, {str(self.dtype).removeprefix('torch.')}"
        arrays = {"stride": (self.stride, 1), "padding": (self.padding, 0), "dilation": (self.dilation, 1)}
        return sizes + "".join(f", {name} {_shown(value)}" for name, (value, usual) in arrays.items() if set(value) != {usual}) + (
            f", {self.groups} groups" if self.groups > 1 else "")


def _shown(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))


# ---- the library

@cache
def _loaded(named: str) -> Any:
    tried = [named] if named else list(_library_paths())
    for path in tried:
        try:
            loaded = ctypes.CDLL(path)
            calls.declare(loaded)
            return loaded
        except (OSError, AttributeError):
            continue
    raise DeviceNotFound(
        f"gpu_config: a convolution algorithm by name needs cuDNN 9, and it is not among {', '.join(tried)}.\n\n"
        f"hint: pip install nvidia-cudnn-cu{(torch.version.cuda or '12').partition('.')[0]}, or name the file of libcudnn.so.9 by {PATH}."
    )


@dataclass(frozen=True)
class Runtime:
    """The source of cuDNN's functions and streams."""

    library: Callable[[], Any] = lambda: _loaded(os.environ.get(PATH, ""))
    stream_of: Callable[[torch.device], int] = lambda device: int(torch.cuda.current_stream(device).cuda_stream)
    kind: str = "cuda"
    """The type of the devices whose arrays it computes with."""
    most_plans: int = 1024
    """How many plans are stored; beyond that number the store starts empty again."""


class _Library:
    """The loaded library, and the handles of each thread."""

    def __init__(self) -> None:
        self.threads = threading.local()
        self.runtime = Runtime()


_LIBRARY = _Library()


@contextmanager
def run_by(runtime: Runtime) -> Iterator[None]:
    """Use another library than torch's in the block; existing handles are unchanged."""
    before = _LIBRARY.runtime, _LIBRARY.threads
    _LIBRARY.runtime, _LIBRARY.threads = runtime, threading.local()
    try:
        yield
    finally:
        _LIBRARY.runtime, _LIBRARY.threads = before


def library() -> Any:
    """Return cuDNN's functions. Raises DeviceNotFound without cuDNN 9."""
    return _LIBRARY.runtime.library()


def most_plans() -> int:
    """Return how many plans are cached."""
    return _LIBRARY.runtime.most_plans


def computes(x: torch.Tensor) -> bool:
    """Return whether an array lies where cuDNN computes, in a dtype that it has."""
    return x.device.type == _LIBRARY.runtime.kind and x.dtype in DTYPES


def _library_paths() -> list[str]:
    """Yield possible paths of cuDNN: the library that torch has loaded, NVIDIA's wheel, torch's folder."""
    spec = find_spec("nvidia.cudnn") if find_spec("nvidia") is not None else None
    wheels = [str(Path(folder) / "lib" / "libcudnn.so.9") for folder in (spec.submodule_search_locations or ())] if spec else []
    return ["libcudnn.so.9", *wheels, str(Path(torch.__file__).parent / "lib" / "libcudnn.so.9")]


def _check(status: int, doing: str) -> None:
    """Raises Refused or DeviceFailed for a status that is none of success."""
    if status == SUCCESS:
        return
    cudnn = library()
    text = ctypes.create_string_buffer(512)
    cudnn.cudnnGetLastErrorString(text, len(text))
    name = cudnn.cudnnGetErrorString(status).decode(errors="replace").removeprefix("CUDNN_STATUS_")
    error_text = text.value.decode(errors="replace").strip()
    word = f"{name}: {error_text}" if error_text else name
    if status in calls.NOT_SUPPORTED:
        raise Refused(word)
    raise DeviceFailed(f"cuDNN: {doing} ended with {word}.\n\nhint: torchspore doctor computes something small on the GPU and tells more")


def _handle(device: torch.device) -> Any:
    """This thread's handle for a device, set to the stream that operators run on."""
    handles = _LIBRARY.threads.__dict__.setdefault("handles", {})
    if device not in handles:
        handle = ctypes.c_void_p()
        _check(library().cudnnCreate(ctypes.byref(handle)), "cudnnCreate")
        handles[device] = handle
    _check(library().cudnnSetStream(handles[device], stream_of(device)), "cudnnSetStream")
    return handles[device]


def stream_of(device: torch.device) -> int:
    """The address of the stream that operators run on."""
    return _LIBRARY.runtime.stream_of(device)


# ---- descriptors

def _numbers(values: tuple[int, ...]) -> Any:
    return (ctypes.c_int * len(values))(*values)


class Descriptors:
    """cuDNN's descriptors of a convolution: its three arrays and its strides. They are freed with this object."""

    def __init__(self, job: Job) -> None:
        self.of: dict[str, Any] = {}
        cudnn = library()
        kind = _TYPES[job.dtype]
        for name, sizes in (("x", job.x), ("y", job.y)):
            self._make(name, "Tensor")
            strides = torch.empty(sizes, device="meta").stride()
            _check(cudnn.cudnnSetTensorNdDescriptor(self.of[name], kind, len(sizes), _numbers(sizes), _numbers(tuple(strides))), str(job))
        self._make("w", "Filter")
        _check(cudnn.cudnnSetFilterNdDescriptor(self.of["w"], kind, calls.NCHW, len(job.w), _numbers(job.w)), str(job))
        self._make("convolution", "Convolution")
        kernel = self.of["convolution"]
        summed = kind if kind == calls.DOUBLE else calls.FLOAT
        _check(cudnn.cudnnSetConvolutionNdDescriptor(
            kernel, len(job.stride), _numbers(job.padding), _numbers(job.stride), _numbers(job.dilation), calls.CROSS_CORRELATION, summed,
        ), str(job))
        _check(cudnn.cudnnSetConvolutionGroupCount(kernel, job.groups), str(job))
        self.set_math(math_of(job))

    def _make(self, name: str, what: str) -> None:
        descriptor, cudnn = ctypes.c_void_p(), library()
        _check(getattr(cudnn, f"cudnnCreate{what}Descriptor")(ctypes.byref(descriptor)), f"cudnnCreate{what}Descriptor")
        weakref.finalize(self, getattr(cudnn, f"cudnnDestroy{what}Descriptor"), descriptor)
        self.of[name] = descriptor

    def set_math(self, math: int) -> None:
        """Set the units that compute the products."""
        _check(library().cudnnSetConvolutionMathType(self.of["convolution"], math), "cudnnSetConvolutionMathType")

    def sizes_of_y(self, axes: int) -> tuple[int, ...]:
        """The shape of y as cuDNN reckons it."""
        sizes = _numbers((0,) * axes)
        _check(library().cudnnGetConvolutionNdForwardOutputDim(self.of["convolution"], self.of["x"], self.of["w"], axes, sizes), "y")
        return tuple(sizes)


def math_of(job: Job) -> int:
    """Return the units for a dtype: tensor cores for two-byte dtypes, for float32 by `conv_allow_tf32`."""
    if job.dtype in (torch.float16, torch.bfloat16):
        return calls.TENSOR_OP_MATH
    return calls.FMA_MATH if job.dtype is torch.float32 and not job.may_round else calls.DEFAULT_MATH


# ---- computing

class Plan:
    """A convolution by one algorithm, stored for all calls of its shape. `trials` are the measurements of a search for the fastest."""

    def __init__(self, job: Job, algorithm: str) -> None:
        self.job, self.algorithm = job, algorithm
        self.descriptors = Descriptors(job)
        self.trials: list[tuple[str, str, float, int, bool]] = []
        self._number = -1 if algorithm == "performance" else job.direction.algorithms[algorithm]
        self._workspace = 0 if algorithm == "performance" else self.bytes(self._number)
        self._lock = threading.Lock()

    @property
    def chosen(self) -> str:
        """The algorithm that runs; empty before a search has found one."""
        return self.job.direction.name_of(self._number) if self._number >= 0 else ""

    def run(self, first: torch.Tensor, second: torch.Tensor, out: torch.Tensor) -> None:
        """Writes the result of two arrays into `out`; all are contiguous. Raises Refused where the algorithm can't do it."""
        with torch.cuda.device(self.job.device) if self.job.device.type == "cuda" else nullcontext():
            if self._number < 0:
                with self._lock:
                    if self._number < 0:
                        self._search(first, second, out)
            self._compute(first, second, out)

    def _compute(self, first: torch.Tensor, second: torch.Tensor, out: torch.Tensor) -> None:
        job, of = self.job, self.descriptors.of
        scalar = ctypes.c_double if job.dtype is torch.float64 else ctypes.c_float
        one_factor, zero = scalar(1), scalar(0)
        space = torch.empty(self._workspace, dtype=torch.uint8, device=job.device)
        status = getattr(library(), job.direction.compute)(
            _handle(job.device), ctypes.addressof(one_factor), of[job.direction.first], first.data_ptr(), of[job.direction.second],
            second.data_ptr(), of["convolution"], self._number, space.data_ptr(), self._workspace, ctypes.addressof(zero),
            of[job.direction.out], out.data_ptr(),
        )
        _check(status, f"{job.direction.compute} by {self.chosen} ({job})")

    def bytes(self, number: int) -> int:
        """Return the workspace that an algorithm needs. Raises Refused if it does not support the shape."""
        size, of, side = ctypes.c_size_t(), self.descriptors.of, self.job.direction
        _check(getattr(library(), side.workspace)(
            _handle(self.job.device), of[side.first], of[side.second], of["convolution"], of[side.out], number, ctypes.byref(size),
        ), side.workspace)
        return size.value

    def _search(self, first: torch.Tensor, second: torch.Tensor, out: torch.Tensor) -> None:
        """Tries all algorithms and keeps the fastest."""
        job, of = self.job, self.descriptors.of
        side = job.direction
        space = self._room()
        results, count = (Trial * (2 * len(side.algorithms)))(), ctypes.c_int()
        _check(getattr(library(), side.find)(
            _handle(job.device), of[side.first], first.data_ptr(), of[side.second], second.data_ptr(), of["convolution"], of[side.out],
            out.data_ptr(), len(results), ctypes.byref(count), results, space.data_ptr(), space.numel(),
        ), f"{side.find} ({job})")
        right = [trial for trial in results[: count.value] if trial.status == SUCCESS and trial.memory <= space.numel()]
        self.trials = [(side.name_of(t.algorithm), calls.MATHS.get(t.math, str(t.math)), t.time, t.memory,
                        t.determinism == calls.DETERMINISTIC) for t in right]
        fit = [trial for trial in right if not job.ordered or trial.determinism == calls.DETERMINISTIC]
        exact = math_of(job) == calls.FMA_MATH
        if exact:          # cuDNN tries kernels that round all the same, and calls the units of the others `default`
            fit = [trial for trial in fit if trial.math in (calls.DEFAULT_MATH, calls.FMA_MATH)]
        if not fit:
            raise Refused("no algorithm can do it" + (" with equal bits run for run" if right else ""))
        best = min(fit, key=lambda trial: trial.time)
        self.descriptors.set_math(calls.FMA_MATH if exact else best.math)
        self._workspace, self._number = best.memory, best.algorithm

    def _room(self) -> torch.Tensor:
        """A workspace in which all algorithms fit, as far as the device has room."""
        workspace_bytes = 0
        for number in self.job.direction.algorithms.values():
            try:
                workspace_bytes = max(workspace_bytes, self.bytes(number))
            except Refused:
                continue
        while True:
            try:
                return torch.empty(workspace_bytes, dtype=torch.uint8, device=self.job.device)
            except torch.OutOfMemoryError:
                if workspace_bytes < 1 << 20:
                    raise
                workspace_bytes //= 2


def able(job: Job) -> list[str]:
    """The algorithms that cuDNN says can do this shape."""
    trials, plan = [], Plan(job, "performance")
    for name, number in job.direction.algorithms.items():
        try:
            plan.bytes(number)
        except Refused:
            continue
        trials.append(name)
    return trials
