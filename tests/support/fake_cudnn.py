"""A stand-in for cuDNN: real ctypes functions with cuDNN's signatures that note each call and compute convolutions with torch.

It reads what it is given as cuDNN does: shapes out of descriptors, values at addresses. A call with a wrong argument fails in ctypes.
"""
from __future__ import annotations

import ctypes
from typing import Any

import torch

from torchspore.engine.devices.gpu import cudnn_calls as calls

_DTYPES = {calls.HALF: torch.float16, calls.FLOAT: torch.float32, calls.DOUBLE: torch.float64, calls.BFLOAT16: torch.bfloat16}
_UNSUPPORTED = 3002


class FakeCudnn:
    """`calls` are (function, arguments) in order. `refuses` names (function, algorithm) pairs that are NOT_SUPPORTED; `times` the
    milliseconds that the search finds for algorithms, 1 for others; `fails` makes computing end with a status."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.made: dict[int, dict[str, Any]] = {}
        self.refuses: set[tuple[str, int]] = set()
        self.times: dict[int, float] = {}
        self.workspaces: dict[int, int] = {}
        self.fails = 0
        self._keep: list[Any] = []
        for name, words in calls.SIGNATURES.items():
            result = calls._RESULTS.get(name, ctypes.c_int)
            own = getattr(self, f"_{name}", None) or self._of(name)
            shape = ctypes.CFUNCTYPE(ctypes.c_size_t if name == "cudnnGetErrorString" else result,
                                     *[calls._WORDS[word] for word in words.split()])
            kept = shape(self._noting(name, own))
            self._keep.append(kept)
            setattr(self, name, kept)
        self._text = ctypes.create_string_buffer(b"CUDNN_STATUS_NOT_SUPPORTED_SHAPE")
        self.cudnnGetErrorString = lambda status: f"CUDNN_STATUS_NOT_SUPPORTED_{status}".encode()

    def names(self) -> list[str]:
        """The functions that were called, in order."""
        return [name for name, _ in self.calls]

    def _noting(self, name: str, own: Any) -> Any:
        def called(*arguments: Any) -> Any:
            self.calls.append((name, arguments))
            return own(*arguments)

        return called

    def _of(self, name: str) -> Any:
        if name.startswith("cudnnCreate"):
            return lambda where: self._create(name.removeprefix("cudnnCreate").removesuffix("Descriptor"), where)
        if name.startswith("cudnnDestroy"):
            return lambda number: self.made.pop(number) and 0
        if name.endswith("WorkspaceSize"):
            return lambda *given: self._size(name, *given)
        if name.startswith("cudnnFind"):
            return lambda *given: self._find(name, *given)
        return lambda *given: self._compute(name, *given)

    def _create(self, what: str, where: Any) -> int:
        number = 1000 + len(self.calls)
        self.made[number] = {"what": what or "handle"}
        where[0] = number
        return 0

    def _cudnnGetVersion(self) -> int:
        return 92800

    def _cudnnGetErrorString(self, status: int) -> int:
        return ctypes.addressof(self._text)

    def _cudnnGetLastErrorString(self, text: bytes, size: int) -> None:
        return None

    def _cudnnSetStream(self, handle: int, stream: int) -> int:
        self.made[handle]["stream"] = stream
        return 0

    def _cudnnSetTensorNdDescriptor(self, one: int, kind: int, axes: int, sizes: Any, strides: Any) -> int:
        self.made[one].update(dtype=_DTYPES[kind], sizes=tuple(sizes[:axes]), strides=tuple(strides[:axes]))
        return 0

    def _cudnnSetFilterNdDescriptor(self, one: int, kind: int, layout: int, axes: int, sizes: Any) -> int:
        assert layout == calls.NCHW
        sizes = tuple(sizes[:axes])
        self.made[one].update(dtype=_DTYPES[kind], sizes=sizes, strides=torch.empty(sizes, device="meta").stride())
        return 0

    def _cudnnSetConvolutionNdDescriptor(
        self, one: int, axes: int, padding: Any, stride: Any, dilation: Any, mode: int, kind: int,
    ) -> int:
        assert mode == calls.CROSS_CORRELATION
        self.made[one].update(
            padding=tuple(padding[:axes]), stride=tuple(stride[:axes]), dilation=tuple(dilation[:axes]), summed=_DTYPES[kind], groups=1,
        )
        return 0

    def _cudnnSetConvolutionGroupCount(self, one: int, groups: int) -> int:
        self.made[one]["groups"] = groups
        return 0

    def _cudnnSetConvolutionMathType(self, one: int, math: int) -> int:
        self.made[one]["math"] = math
        return 0

    def _cudnnGetConvolutionNdForwardOutputDim(self, kernel: int, x: int, w: int, axes: int, sizes: Any) -> int:
        for axis, size in enumerate(self._forward(torch.empty(self.made[x]["sizes"]), torch.empty(self.made[w]["sizes"]), kernel).shape):
            sizes[axis] = size
        return 0

    def _size(self, name: str, handle: int, first: int, second: int, kernel: int, out: int, algorithm: int, size: Any) -> int:
        if (name, algorithm) in self.refuses:
            return _UNSUPPORTED
        size[0] = self.workspaces.get(algorithm, 64 * algorithm)
        return 0

    def _find(
        self, name: str, handle: int, first: int, a: int, second: int, b: int, kernel: int, out: int, c: int, count: int, found: Any,
        trials: Any, space: int, room: int,
    ) -> int:
        side = next(side for side in calls.DIRECTIONS if side.find == name)
        rows = sorted(side.algorithms.values(), key=lambda number: self.times.get(number, 1.0))[:count]
        for place, number in enumerate(rows):
            trial = trials[place]
            trial.algorithm, trial.time, trial.memory = number, self.times.get(number, 1.0), self.workspaces.get(number, 64 * number)
            trial.status = _UNSUPPORTED if (side.workspace, number) in self.refuses else 0
            trial.determinism, trial.math = int(side.name_of(number) not in side.unordered), 0
        found[0] = len(rows)
        return 0

    def _compute(
        self, name: str, handle: int, one: int, first: int, a: int, second: int, b: int, kernel: int, algorithm: int, space: int,
        room: int, zero: int, out: int, c: int,
    ) -> int:
        if self.fails:
            return self.fails
        scalar = ctypes.c_double if self.made[first]["dtype"] is torch.float64 else ctypes.c_float
        assert (scalar.from_address(one).value, scalar.from_address(zero).value) == (1.0, 0.0)
        assert room == 0 or space
        left, right, result = self._array(first, a), self._array(second, b), self._array(out, c)
        made = self.made[kernel]
        how = (made["stride"], made["padding"], made["dilation"], False, (0,) * len(made["stride"]), made["groups"])
        wide = [t.to(made["summed"]) for t in (left, right)]
        if name == calls.FORWARD.compute:
            result.copy_(self._forward(*wide, kernel))
        elif name == calls.DATA.compute:
            x = torch.empty(result.shape, dtype=made["summed"])
            result.copy_(torch.ops.aten.convolution_backward(wide[1], x, wide[0], None, *how, [True, False, False])[0])
        else:
            w = torch.empty(result.shape, dtype=made["summed"])
            result.copy_(torch.ops.aten.convolution_backward(wide[1], wide[0], w, None, *how, [False, True, False])[1])
        return 0

    def _forward(self, x: torch.Tensor, w: torch.Tensor, kernel: int) -> torch.Tensor:
        made = self.made[kernel]
        zeros = [0] * len(made["stride"])
        return torch.convolution(x, w, None, made["stride"], made["padding"], made["dilation"], False, zeros, made["groups"])

    def _array(self, descriptor: int, address: int) -> torch.Tensor:
        made = self.made[descriptor]
        size = torch.empty(made["sizes"], device="meta").numel()
        memory = (ctypes.c_char * (size * made["dtype"].itemsize)).from_address(address)
        return torch.frombuffer(memory, dtype=made["dtype"], count=size).as_strided(made["sizes"], made["strides"])
