"""cuDNN itself, where it is there (beside torch, or where TORCHSPORE_CUDNN names libcudnn.so.9): functions, headers, descriptors.

All of it runs without a GPU. `pip download nvidia-cudnn-cu12 --no-deps`, unpacked, has both: 700 MB.
"""
from __future__ import annotations

import os
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from torchspore.engine.devices.gpu import convolution, cudnn
from torchspore.engine.devices.gpu import cudnn_calls as calls
from torchspore.engine.devices.gpu.cudnn import Descriptors, Job
from torchspore.errors import DeviceFailed, DeviceNotFound


@pytest.fixture(scope="module")
def library() -> Any:
    try:
        return cudnn.library()
    except DeviceNotFound:
        pytest.skip("cuDNN is not here")


@pytest.fixture(scope="module")
def headers(library: Any) -> str:
    folder = Path(os.environ.get(cudnn.PATH) or getattr(library, "_name", "")).parent.parent / "include"
    texts = [(folder / f"cudnn_{part}_v9.h") for part in ("graph", "ops", "cnn")]
    if not all(path.exists() for path in texts):
        pytest.skip("cuDNN's headers are not here")
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", "\n".join(path.read_text() for path in texts), flags=re.DOTALL)


def test_it_is_cudnn_9_and_has_every_function(library: Any) -> None:
    assert library.cudnnGetVersion() // 10000 == 9
    assert library.cudnnGetErrorString(3002) == b"CUDNN_STATUS_NOT_SUPPORTED_SHAPE"


_WORDS = {
    "cudnnHandle_t": "handle", "cudaStream_t": "stream", "cudnnTensorDescriptor_t": "tensor", "cudnnFilterDescriptor_t": "filter",
    "cudnnConvolutionDescriptor_t": "convolution", "size_t": "size", "void*": "data", "char*": "text", "int": "int", "int[]": "int[]",
}


def _word(declaration: str) -> str:
    """Our word for a parameter as C declares it; all enumerations are ints."""
    text = re.sub(r"\bconst\b", " ", declaration).strip()
    kind, stars, array = re.match(r"(\w+)\s*(\**)\s*\w*\s*(\[\])?", text).group(1, 2, 3)  # type: ignore[union-attr]
    if kind.endswith("Perf_t"):
        return "trial*"
    if kind in ("void", "char"):
        return _WORDS[kind + "*"]
    return _WORDS.get(kind, "int") + (stars or array or "")


def test_every_signature_is_that_of_the_headers(headers: str) -> None:
    for name, words in calls.SIGNATURES.items():
        match = re.search(rf"\b{name}\(([^)]*)\)\s*;", headers)
        assert match, name
        parameters = [] if match[1].strip() == "void" else [_word(part) for part in match[1].split(",")]
        assert parameters == words.split(), name


def test_every_number_is_that_of_the_headers(headers: str) -> None:
    number = {name: int(value) for name, value in re.findall(r"\b(CUDNN_\w+)\s*=\s*(\d+)\b", headers)}
    begins = {calls.FORWARD: "CUDNN_CONVOLUTION_FWD_ALGO_", calls.DATA: "CUDNN_CONVOLUTION_BWD_DATA_", calls.FILTER:
              "CUDNN_CONVOLUTION_BWD_FILTER_"}
    for side, begin in begins.items():
        for name, algorithm in side.algorithms.items():
            symbol = {"precomp_gemm": "implicit_precomp_gemm"}.get(name, name).upper()
            head = begin if side is calls.FORWARD or symbol.startswith("ALGO") else begin + "ALGO_"
            assert number[head + symbol] == algorithm, name
    for name in ("HALF", "FLOAT", "DOUBLE", "BFLOAT16"):
        assert number[f"CUDNN_DATA_{name}"] == getattr(calls, name)
    for name in ("DEFAULT_MATH", "TENSOR_OP_MATH", "FMA_MATH"):
        assert number[f"CUDNN_{name}"] == getattr(calls, name)
    assert (number["CUDNN_CROSS_CORRELATION"], number["CUDNN_TENSOR_NCHW"]) == (calls.CROSS_CORRELATION, calls.NCHW)
    assert (number["CUDNN_STATUS_SUCCESS"], number["CUDNN_DETERMINISTIC"]) == (calls.SUCCESS, calls.DETERMINISTIC)
    assert {value in calls.NOT_SUPPORTED for name, value in number.items() if "STATUS_NOT_SUPPORTED" in name} == {True}
    fields = re.search(r"typedef struct cudnnConvolutionFwdAlgoPerfStruct \{(.*?)\}", headers, re.DOTALL)
    kinds = re.findall(r"(\w+) \w+(?:\[3\])?;", fields[1]) if fields else []
    assert kinds == ["cudnnConvolutionFwdAlgo_t", "cudnnStatus_t", "float", "size_t", "cudnnDeterminism_t", "cudnnMathType_t", "int"]


@pytest.mark.parametrize(("dtype", "groups"), list(product(cudnn.DTYPES, (1, 2))), ids=str)
def test_descriptors_reckon_the_shapes_that_we_do(library: Any, dtype: torch.dtype, groups: int) -> None:
    x, w = (2, 4, 17, 23), (6, 4 // groups, 3, 5)
    for padding, stride, dilation in product([(0, 0), (1, 2)], [(1, 1), (2, 3)], [(1, 1), (2, 1)]):
        y = torch.convolution(torch.empty(x, device="meta"), torch.empty(w, device="meta"), None, stride, padding, dilation, False,
                              (0, 0), groups).shape
        job = Job(calls.FORWARD, x, w, tuple(y), dtype, torch.device("cpu"), padding, stride, dilation, groups, False, False)
        assert Descriptors(job).sizes_of_y(4) == tuple(y)
    job = Job(calls.FORWARD, (1, 2, 5, 6, 7), (3, 2, 2, 2, 2), (1, 3, 4, 5, 6), dtype, torch.device("cpu"), (0,) * 3, (1,) * 3, (1,) * 3,
              1, True, False)
    assert Descriptors(job).sizes_of_y(5) == (1, 3, 4, 5, 6)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cudnn_s_own_word_is_reported(library: Any) -> None:
    x, w = torch.ones(1, 2, 4, 4), torch.ones(1, 2, 3, 3)
    error_match = pytest.raises(DeviceFailed, match="cuDNN: cudnnCreate ended with NOT_INITIALIZED: cudaGetDeviceCount")
    with cudnn.run_by(cudnn.Runtime(stream_of=lambda device: 0)), error_match:
        convolution.OPERATORS[calls.FORWARD](x, w, [0, 0], [1, 1], [1, 1], 1, "gemm,normal,normal")


def test_a_library_that_is_not_there_names_the_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(cudnn.PATH, str(tmp_path / "libcudnn.so.9"))
    with pytest.raises(DeviceNotFound) as caught:
        cudnn.library()
    wheel = f"nvidia-cudnn-cu{(torch.version.cuda or '12').partition('.')[0]}"
    assert str(caught.value) == (
        f"gpu_config: a convolution algorithm by name needs cuDNN 9, and it is not among {tmp_path}/libcudnn.so.9.\n\n"
        f"hint: pip install {wheel}, or name the file of libcudnn.so.9 by TORCHSPORE_CUDNN."
    )
    (tmp_path / "libcudnn.so.9").write_bytes(b"\x7fELF not a library")
    cudnn._loaded.cache_clear()
    with pytest.raises(DeviceNotFound):
        cudnn.library()
