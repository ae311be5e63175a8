"""The operators that MindSpore writes by a generator: those of `ops.auto_generate` that have a kernel on the CPU."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore.ops import auto_generate as generated
from parity.case import case

ALONE = """
    SiLU Any Max Min Contiguous SoftplusExt MeanExt SumExt ProdExt FlattenExt FFT IFFT FFT2 IFFT2 FFTN IFFTN RFFT IRFFT HFFT IHFFT FFTShift
    IFFTShift RFFT2 IRFFT2 RFFTN IRFFTN HFFT2 HFFTN IHFFT2 IHFFTN TExt
"""
PAIRS = "AddExt SubExt DivMod InplaceCopy ExpandAs ViewAs"
WITH_A_NUMBER = "Divs EqScalar Muls PowTensorScalar"


def drawn(*shape: int) -> Any:
    return ms.Tensor((np.random.RandomState(len(shape)).rand(*shape) * 0.8 + 0.1).astype(np.float32))


def values(result: Any) -> Any:
    parts = [output.asnumpy() for output in (result if isinstance(result, (tuple, list)) else [result])]
    return np.concatenate([np.atleast_1d(np.append(part.shape, part.reshape(-1))) for part in parts])


@case(rtol=1e-4, atol=1e-6)
def alone_and_in_pairs() -> Any:
    results = {name: values(getattr(generated, name)()(drawn(2, 3))) for name in ALONE.split()}
    results |= {name: values(getattr(generated, name)()(drawn(2, 3), drawn(2, 3) + 1)) for name in PAIRS.split()}
    return results | {name: values(getattr(generated, name)()(drawn(2, 3), 0.5)) for name in WITH_A_NUMBER.split()}


@case(rtol=1e-4, atol=1e-6)
def with_arguments() -> Any:
    four, tensor = drawn(4, 3), ms.Tensor([1, 2, 3])
    called = {
        "AnyExt": (four > 0.5, 1), "BatchMatMulExt": (drawn(3, 2, 4), drawn(3, 4, 2)), "BitwiseAndTensor": (tensor, ms.Tensor([3, 1, 2])),
        "BroadcastToView": (drawn(3), (2, 3)), "Chunk": (four, 2), "ChunkView": (four, 2, 1), "ClampScalar": (four, 0.2, 0.5),
        "ClampTensor": (four, four * 0.9, None), "ExpandDimsView": (four, 0), "MatMulExt": (drawn(2, 3), drawn(3, 2)), "MaxDim": (four, 1),
        "MinDim": (four, 1, True), "Narrow": (four, 0, 1, 2), "NarrowView": (four, 0, 1, 2), "PowScalarTensor": (2.0, four),
        "SelectExtView": (four, 0, 1), "SplitTensor": (four, 2), "SplitTensorView": (four, 3, 0), "SplitWithSize": (four, (1, 3)),
        "SplitWithSizeView": (four, (1, 3)), "UnstackExtView": (four, 1), "PixelShuffle": (drawn(1, 4, 2, 2), 2),
        "GatherNdExt": (four, ms.Tensor([[0, 1]])), "FFTFreq": (5,), "RFFTFreq": (5,), "NewOnes": (four, (2, 3)),
        "NewZeros": (four, (2, 3)),
        "View": (four, (3, 4)), "GroupNorm": (drawn(2, 4, 3), 2, drawn(4), drawn(4)), "UpsampleNearest1D": (drawn(1, 2, 4), (8,)),
        "UpsampleNearest2D": (drawn(1, 2, 4, 4), None, (2.0, 2.0)), "DivMod": (four, drawn(3), "floor"),
    }
    return {name: values(getattr(generated, name)()(*arguments)) for name, arguments in called.items()}


@case(rtol=1e-5)
def functions_and_instances() -> Any:
    x, y = drawn(2, 3), drawn(2, 3) + 1
    return {
        "add_ext": generated.add_ext(x, y, 2).asnumpy(), "add_ext_op": generated.add_ext_op(x, y, 2).asnumpy(),
        "sum_ext": generated.sum_ext(x, 1).asnumpy(), "matmul_ext": generated.matmul_ext(x, y.swapaxes(0, 1)).asnumpy(),
        "select_ext_view": generated.select_ext_view(x, 0, 1).asnumpy(), "silu": generated.silu(x).asnumpy(),
        "max_": generated.max_(x).asnumpy(), "divs": generated.divs(x, 2.0).asnumpy(),
    }
