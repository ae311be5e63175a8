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
            implementation = getattr(self, f"_{name}", None) or self._of(name)
            shape = ctypes.CFUNCTYPE(ctypes.c_size_t if name == "cudnnGetErrorString" else result,
                                     *[calls._WORDS[word] for word in words.split()])
            typed_function = shape(self._noting(name, implementation))
            self._keep.append(typed_function)
            setattr(self, name, typed_function)
        self._text = ctypes.create_string_buffer(b"CUDNN_STATUS_NOT_SUPPORTED_SHAPE")
        self.cudnnGetErrorString = lambda status: f"CUDNN_STATUS_NOT_SUPPORTED_{status}".encode()

    def names(self) -> list[str]:
        """The functions that were called, in order."""
        return [name for name, _ in self.calls]

    def _noting(self, name: str, function: Any) -> Any:
        def called(*arguments: Any) -> Any:
            self.calls.append((name, arguments))
            return function(*arguments)

        return called

    def _of(self, name: str) -> Any:
        if name.startswith("cudnnCreate"):
            return lambda where: self._create(name.removeprefix("cudnnCreate").removesuffix("Descriptor"), where)
        if name.startswith("cudnnDestroy"):
            return lambda number: self.made.pop(number) and 0
        if name.endswith("WorkspaceSize"):
            return lambda *arguments: self._size(name, *arguments)
        if name.startswith("cudnnFind"):
            return lambda *arguments: self._find(name, *arguments)
        return lambda *arguments: self._compute(name, *arguments)

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

    def _cudnnSetTensorNdDescriptor(self, descriptor: int, kind: int, axes: int, sizes: Any, strides: Any) -> int:
        self.made[descriptor].update(dtype=_DTYPES[kind], sizes=tuple(sizes[:axes]), strides=tuple(strides[:axes]))
        return 0

    def _cudnnSetFilterNdDescriptor(self, descriptor: int, kind: int, layout: int, axes: int, sizes: Any) -> int:
        assert layout == calls.NCHW
        sizes = tuple(sizes[:axes])
        self.made[descriptor].update(dtype=_DTYPES[kind], sizes=sizes, strides=torch.empty(sizes, device="meta").stride())
        return 0

    def _cudnnSetConvolutionNdDescriptor(
        self, descriptor: int, axes: int, padding: Any, stride: Any, dilation: Any, mode: int, kind: int,
    ) -> int:
        assert mode == calls.CROSS_CORRELATION
        self.made[descriptor].update(
            padding=tuple(padding[:axes]), stride=tuple(stride[:axes]), dilation=tuple(dilation[:axes]), summed=_DTYPES[kind], groups=1,
        )
        return 0

    def _cudnnSetConvolutionGroupCount(self, descriptor: int, groups: int) -> int:
        self.made[descriptor]["groups"] = groups
        return 0

    def _cudnnSetConvolutionMathType(self, descriptor: int, math: int) -> int:
        self.made[descriptor]["math"] = math
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
        self, name: str, handle: int, first: int, a: int, second: int, b: int, kernel: int, out: int, c: int, count: int, result: Any,
        trials: Any, space: int, room: int,
    ) -> int:
        side = next(side for side in calls.DIRECTIONS if side.find == name)
        rows = sorted(side.algorithms.values(), key=lambda number: self.times.get(number, 1.0))[:count]
        for row_number, number in enumerate(rows):
            trial = trials[row_number]
            trial.algorithm, trial.time, trial.memory = number, self.times.get(number, 1.0), self.workspaces.get(number, 64 * number)
            trial.status = _UNSUPPORTED if (side.workspace, number) in self.refuses else 0
            trial.determinism, trial.math = int(side.name_of(number) not in side.unordered), 0
        result[0] = len(rows)
        return 0

    def _compute(
        self, name: str, handle: int, alpha: int, first: int, a: int, second: int, b: int, kernel: int, algorithm: int, space: int,
        room: int, zero: int, out: int, c: int,
    ) -> int:
        if self.fails:
            return self.fails
        scalar = ctypes.c_double if self.made[first]["dtype"] is torch.float64 else ctypes.c_float
        assert (scalar.from_address(alpha).value, scalar.from_address(zero).value) == (1.0, 0.0)
        assert room == 0 or space
        left, right, result = self._array(first, a), self._array(second, b), self._array(out, c)
        state = self.made[kernel]
        how = (state["stride"], state["padding"], state["dilation"], False, (0,) * len(state["stride"]), state["groups"])
        wide = [t.to(state["summed"]) for t in (left, right)]
        if name == calls.FORWARD.compute:
            result.copy_(self._forward(*wide, kernel))
        elif name == calls.DATA.compute:
            x = torch.empty(result.shape, dtype=state["summed"])
            result.copy_(torch.ops.aten.convolution_backward(wide[1], x, wide[0], None, *how, [True, False, False])[0])
        else:
            w = torch.empty(result.shape, dtype=state["summed"])
            result.copy_(torch.ops.aten.convolution_backward(wide[1], wide[0], w, None, *how, [False, True, False])[1])
        return 0

    def _forward(self, x: torch.Tensor, w: torch.Tensor, kernel: int) -> torch.Tensor:
        state = self.made[kernel]
        zeros = [0] * len(state["stride"])
        return torch.convolution(x, w, None, state["stride"], state["padding"], state["dilation"], False, zeros, state["groups"])

    def _array(self, descriptor: int, address: int) -> torch.Tensor:
        state = self.made[descriptor]
        size = torch.empty(state["sizes"], device="meta").numel()
        memory = (ctypes.c_char * (size * state["dtype"].itemsize)).from_address(address)
        return torch.frombuffer(memory, dtype=state["dtype"], count=size).as_strided(state["sizes"], state["strides"])
