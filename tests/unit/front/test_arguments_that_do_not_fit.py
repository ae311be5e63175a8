"""Axes that a Tensor does not have and values of a shape that torch would stretch: 2.10 raises ValueError for each of them."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops


def of(*shape: int) -> Tensor:
    return Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


def ints(*rows: Any) -> Tensor:
    return Tensor(list(rows), ms.int32)


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "gather": (lambda: ops.gather(of(2, 3), ints(0), 5), "expected an axis from -2 to 1, got 5."),
    "gather_before": (lambda: ops.gather(of(2, 3), ints(0), -7), "expected an axis from -2 to 1, got -7."),
    "sparse_gather": (lambda: ops.SparseGatherV2()(of(2, 3), ints(0), 2), "expected an axis from -2 to 1, got 2."),
    "reverse_sequence": (lambda: ops.reverse_sequence(of(2, 3), ints(1, 2), 9), "expected an axis from -2 to 1, got 9."),
    "softmax": (lambda: ops.Softmax((0, 5))(of(2, 3)), "expected an axis from -2 to 1, got 5."),
    "layer_norm": (lambda: nn.LayerNorm((3,), begin_norm_axis=7)(of(2, 3)), "expected an axis from -2 to 1, got 7."),
    "scatter_nd": (lambda: ops.scatter_nd(ints([0], [1]), of(1), (4,)), "expected updates of shape (2,), got (1,)."),
    "tensor_scatter_add": (
        lambda: ops.tensor_scatter_add(of(4, 3), ints([0], [1]), of(2, 1)), "expected updates of shape (2, 3), got (2, 1).",
    ),
    "tensor_scatter_update": (
        lambda: ops.TensorScatterUpdate()(of(4, 3), ints([0, 1]), of(1, 1)), "expected updates of shape (1,), got (1, 1).",
    ),
    "slice_scatter": (lambda: ops.slice_scatter(of(4, 3), of(1, 3), 0, 1, 3), "expected src of shape (2, 3), got (1, 3)."),
    "mirror_pad": (lambda: ops.MirrorPad()(of(4, 3), ints([1, 1], [0, -1])), "paddings=[[1, 1], [0, -1]]: expected ints from 0 on."),
    "segments": (lambda: ops.unsorted_segment_sum(of(4), ints(0, 1, 0, 1), -1), "num_segments=-1: expected an int from 0 on."),
    "crop_size": (
        lambda: ops.crop_and_resize(of(1, 4, 4, 1), of(1, 4), ints(0), (0, 2)), "crop_size=(0, 2): expected ints from 1 on.",
    ),
    "in_top_k": (
        lambda: ops.intopk(of(2, 3), ints(1), 1), "expected one class for each row of scores, got shapes (2, 3) and (1,).",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_refused(name: str) -> None:
    call, message = BAD[name]
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        call()
    assert str(caught.value).endswith(f": {message}")


def test_an_image_that_there_is_not_has_no_part() -> None:
    with pytest.raises(IndexError):
        ops.crop_and_resize(of(2, 4, 4, 1), of(1, 4), ints(-1), (2, 2))
