"""What a primitive or layer is made with is looked at when it is made: an argument of another kind is no silent default."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.ops import operations as P

WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: P.ReduceSum("yes"), TypeError, "ReduceSum(keep_dims='yes'): expected a bool, got str."),
    (lambda: P.ReduceSum(1), TypeError, "ReduceSum(keep_dims=1): expected a bool, got int."),
    (lambda: P.ScatterAdd(use_locking=None), TypeError, "ScatterAdd(use_locking=None): expected a bool, got NoneType."),
    (lambda: P.Argmax(True), TypeError, "Argmax(axis=True): expected an int, got bool."),
    (lambda: P.LRN(depth_radius=1.5), TypeError, "LRN(depth_radius=1.5): expected an int, got float."),
    (lambda: P.LRN(bias="x"), TypeError, "LRN(bias='x'): expected a float, got str."),
    (lambda: P.AvgPool(pad_mode=3), TypeError, "AvgPool(pad_mode=3): expected a str, got int."),
    (lambda: P.AvgPool(pad_mode="full"), ValueError, "AvgPool(pad_mode='full'): expected 'same', 'valid' or 'pad'."),
    (lambda: P.SmoothL1Loss(reduction="avg"), ValueError, "SmoothL1Loss(reduction='avg'): expected 'mean', 'sum' or 'none'."),
    (lambda: P.UniformReal(seed=1.5), TypeError, "UniformReal(seed=1.5): expected an int from 0 on, got float."),
    (lambda: P.Gamma(seed=-3), ValueError, "Gamma(seed=-3): expected an int from 0 on, got -3."),
    (lambda: P.GridSampler2D(interpolation_mode=np.float64(3)), TypeError,
     f"GridSampler2D(interpolation_mode={np.float64(3)!r}): expected a str, got float64."),
    (lambda: P.GridSampler2D(padding_mode="edge"), ValueError,
     "GridSampler2D(padding_mode='edge'): expected 'zeros', 'border' or 'reflection'."),
    (lambda: nn.LRN(beta=True), TypeError, "LRN(beta=True): expected a float, got bool."),
    (lambda: nn.AvgPool2d(ceil_mode="x"), TypeError, "AvgPool2d(ceil_mode='x'): expected a bool, got str."),
    (lambda: nn.AvgPool3d(count_include_pad=1.5), TypeError, "AvgPool3d(count_include_pad=1.5): expected a bool, got float."),
    (lambda: nn.MaxPool1d(return_indices=1), TypeError, "MaxPool1d(return_indices=1): expected a bool, got int."),
    (lambda: nn.MaxPool2d(padding="x"), TypeError, "MaxPool2d(padding='x'): expected an int or a tuple of ints, got str."),
    (lambda: nn.MaxPool2d(padding=-1), ValueError, "MaxPool2d(padding=-1): expected ints from 0 on."),
    (lambda: nn.MaxPool2d(2, padding=1), ValueError, "MaxPool2d(padding=1): it needs pad_mode='pad', not 'valid'."),
    (lambda: nn.AvgPool3d(2, pad_mode="same", padding=(1, 0, 0)), ValueError,
     "AvgPool3d(padding=(1, 0, 0)): it needs pad_mode='pad', not 'same'."),
    (lambda: nn.AvgPool2d(data_format="NCWH"), ValueError, "AvgPool2d(data_format='NCWH'): expected 'NCHW' or 'NHWC'."),
    (lambda: nn.CrossEntropyLoss(ignore_index=1.5), TypeError, "CrossEntropyLoss(ignore_index=1.5): expected an int, got float."),
    (lambda: nn.CrossEntropyLoss(label_smoothing="x"), TypeError, "CrossEntropyLoss(label_smoothing='x'): expected a float, got str."),
    (lambda: nn.NLLLoss(ignore_index=True), TypeError, "NLLLoss(ignore_index=True): expected an int, got bool."),
    (lambda: nn.SmoothL1Loss("x"), TypeError, "SmoothL1Loss(beta='x'): expected a float, got str."),
    (lambda: nn.HingeEmbeddingLoss("x"), TypeError, "HingeEmbeddingLoss(margin='x'): expected a float, got str."),
    (lambda: nn.MultiMarginLoss(p=1.5), TypeError, "MultiMarginLoss(p=1.5): expected an int, got float."),
    (lambda: nn.MultiMarginLoss(p=3), ValueError, "MultiMarginLoss(p=3): expected 1 or 2."),
    (lambda: nn.GaussianNLLLoss(full=None), TypeError, "GaussianNLLLoss(full=None): expected a bool, got NoneType."),
]


@pytest.mark.parametrize(("make", "kind", "text"), WRONG, ids=[text.split(":")[0] for _, _, text in WRONG])
def test_another_kind_is_refused(make: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        make()
    assert text in str(caught.value)


def test_what_is_meant_is_taken() -> None:
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert P.Argmax(np.int64(0))(x).asnumpy().tolist() == [1, 1, 1]
    assert P.Elu(np.float32(1))(x).shape == (2, 3) and P.LRN(5, 1.0, 1.0, 1.0)(x.reshape(1, 1, 2, 3)).shape == (1, 1, 2, 3)
    assert nn.AvgPool1d(2, 1, "pad", np.int64(1))(x.reshape(1, 2, 3)).shape == (1, 2, 4)
