"""cuDNN's functions for convolutions as data: their arguments, the numbers of enumerations, the function of each direction.

Experimental: no GPU has run these calls yet. The data is from the headers of cuDNN 9 (cudnn_graph_v9.h, cudnn_ops_v9.h, cudnn_cnn_v9.h);
tests/unit/engine/test_cudnn_library.py compares both if the headers are installed. Every function except three returns a status.
"""
from __future__ import annotations

import ctypes
from dataclasses import dataclass

SUCCESS = 0
NOT_SUPPORTED = range(3000, 4000)
"""The statuses that say that an algorithm can't do a shape, a dtype, or this GPU."""

HALF, FLOAT, DOUBLE, BFLOAT16 = 2, 0, 1, 9
NCHW = 0
CROSS_CORRELATION = 1
DEFAULT_MATH, TENSOR_OP_MATH, FMA_MATH = 0, 1, 3
MATHS = {0: "default", 1: "tensor cores", 2: "tensor cores, rounded", 3: "fma"}
DETERMINISTIC = 1


class Trial(ctypes.Structure):
    """cuDNN's measurement of one algorithm: milliseconds, bytes of workspace."""

    _fields_ = [
        ("algorithm", ctypes.c_int), ("status", ctypes.c_int), ("time", ctypes.c_float), ("memory", ctypes.c_size_t),
        ("determinism", ctypes.c_int), ("math", ctypes.c_int), ("reserved", ctypes.c_int * 3),
    ]


_WORDS = {
    "int": ctypes.c_int, "size": ctypes.c_size_t, "int[]": ctypes.POINTER(ctypes.c_int), "int*": ctypes.POINTER(ctypes.c_int),
    "size*": ctypes.POINTER(ctypes.c_size_t), "trial*": ctypes.POINTER(Trial), "text": ctypes.c_char_p,
    **dict.fromkeys(("handle", "stream", "tensor", "filter", "convolution", "data"), ctypes.c_void_p),
    **dict.fromkeys(("handle*", "tensor*", "filter*", "convolution*"), ctypes.POINTER(ctypes.c_void_p)),
}
_RESULTS = {"cudnnGetVersion": ctypes.c_size_t, "cudnnGetErrorString": ctypes.c_char_p, "cudnnGetLastErrorString": None}

_WORKSPACE = "convolution {out} int size*"
_COMPUTE = "convolution int data size data {out} data"
_FIND = "convolution {out} data int int* trial* data size"
SIGNATURES: dict[str, str] = {
    "cudnnGetVersion": "",
    "cudnnGetErrorString": "int",
    "cudnnGetLastErrorString": "text size",
    "cudnnCreate": "handle*",
    "cudnnSetStream": "handle stream",
    "cudnnCreateTensorDescriptor": "tensor*",
    "cudnnSetTensorNdDescriptor": "tensor int int int[] int[]",
    "cudnnDestroyTensorDescriptor": "tensor",
    "cudnnCreateFilterDescriptor": "filter*",
    "cudnnSetFilterNdDescriptor": "filter int int int int[]",
    "cudnnDestroyFilterDescriptor": "filter",
    "cudnnCreateConvolutionDescriptor": "convolution*",
    "cudnnSetConvolutionNdDescriptor": "convolution int int[] int[] int[] int int",
    "cudnnSetConvolutionGroupCount": "convolution int",
    "cudnnSetConvolutionMathType": "convolution int",
    "cudnnDestroyConvolutionDescriptor": "convolution",
    "cudnnGetConvolutionNdForwardOutputDim": "convolution tensor filter int int[]",
    "cudnnGetConvolutionForwardWorkspaceSize": "handle tensor filter " + _WORKSPACE.format(out="tensor"),
    "cudnnGetConvolutionBackwardDataWorkspaceSize": "handle filter tensor " + _WORKSPACE.format(out="tensor"),
    "cudnnGetConvolutionBackwardFilterWorkspaceSize": "handle tensor tensor " + _WORKSPACE.format(out="filter"),
    "cudnnConvolutionForward": "handle data tensor data filter data " + _COMPUTE.format(out="tensor"),
    "cudnnConvolutionBackwardData": "handle data filter data tensor data " + _COMPUTE.format(out="tensor"),
    "cudnnConvolutionBackwardFilter": "handle data tensor data tensor data " + _COMPUTE.format(out="filter"),
    "cudnnFindConvolutionForwardAlgorithmEx": "handle tensor data filter data " + _FIND.format(out="tensor"),
    "cudnnFindConvolutionBackwardDataAlgorithmEx": "handle filter data tensor data " + _FIND.format(out="tensor"),
    "cudnnFindConvolutionBackwardFilterAlgorithmEx": "handle tensor data tensor data " + _FIND.format(out="filter"),
}
"""The arguments of each function, in order; enumerations are ints, `data` is memory of the device (of the host for the two factors)."""


@dataclass(frozen=True, eq=False)
class Direction:
    """One of the three convolutions: its option, its functions, its operands among (x, w, y), and its algorithms by name.

    `half` is the algorithm that MindSpore uses for float16 regardless of the option; `unordered` names algorithms that sum in any order.
    """

    option: str
    compute: str
    workspace: str
    find: str
    first: str
    second: str
    out: str
    algorithms: dict[str, int]
    half: str
    unordered: tuple[str, ...] = ()

    def name_of(self, number: int) -> str:
        """The name of an algorithm; its number where MindSpore has none for it."""
        return next((name for name, algorithm in self.algorithms.items() if algorithm == number), f"number {number}")


FORWARD = Direction(
    "conv_fprop_algo", "cudnnConvolutionForward", "cudnnGetConvolutionForwardWorkspaceSize", "cudnnFindConvolutionForwardAlgorithmEx",
    "x", "w", "y", {
        "implicit_gemm": 0, "precomp_gemm": 1, "gemm": 2, "direct": 3, "fft": 4, "fft_tiling": 5, "winograd": 6, "winograd_nonfused": 7,
    }, half="precomp_gemm",
)
DATA = Direction(
    "conv_dgrad_algo", "cudnnConvolutionBackwardData", "cudnnGetConvolutionBackwardDataWorkspaceSize",
    "cudnnFindConvolutionBackwardDataAlgorithmEx", "w", "y", "x",
    {"algo_0": 0, "algo_1": 1, "fft": 2, "fft_tiling": 3, "winograd": 4, "winograd_nonfused": 5}, half="algo_1", unordered=("algo_0",),
)
FILTER = Direction(
    "conv_wgrad_algo", "cudnnConvolutionBackwardFilter", "cudnnGetConvolutionBackwardFilterWorkspaceSize",
    "cudnnFindConvolutionBackwardFilterAlgorithmEx", "x", "y", "w",
    {"algo_0": 0, "algo_1": 1, "fft": 2, "algo_3": 3, "winograd_nonfused": 5, "fft_tiling": 6}, half="algo_1",
    unordered=("algo_0", "algo_3"),
)
DIRECTIONS = (FORWARD, DATA, FILTER)


def declare(library: ctypes.CDLL) -> None:
    """Declare the functions' arguments and results to ctypes."""
    for name, words in SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes = [_WORDS[word] for word in words.split()]
        function.restype = _RESULTS.get(name, ctypes.c_int)
