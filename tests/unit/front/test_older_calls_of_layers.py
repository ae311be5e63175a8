"""Each renamed keyword of layers, Cells and data sets in the table of older calls acts as today's."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.dataset import text, vision
from mindspore.mindrecord import FileWriter

from torchspore.public_names import older_calls

ROW = Tensor(np.arange(1, 13, dtype=np.float32).reshape(3, 4) / 20)
OTHER = Tensor(np.arange(12, 0, -1, dtype=np.float32).reshape(3, 4) / 20)
IMAGE = Tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
LABELS = Tensor([0, 3, 1], ms.int32)

LAYERS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {       # a layer, and the arguments of a call in today's spelling
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(2), {"input": IMAGE[0]}),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(2), {"input": IMAGE}),
    "AdaptiveAvgPool3d": (lambda: nn.AdaptiveAvgPool3d(2), {"input": IMAGE.tile((1, 1, 4, 1, 1))}),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d(2), {"input": IMAGE}),
    "AdaptiveMaxPool3d": (lambda: nn.AdaptiveMaxPool3d(2), {"input": IMAGE.tile((1, 1, 4, 1, 1))}),
    "BCELoss": (nn.BCELoss, {"logits": ROW, "labels": OTHER}),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, {"logits": ROW, "labels": OTHER}),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss, {"logits_x1": ROW, "logits_x2": OTHER, "labels": Tensor([1, -1, 1], ms.int32)}),
    "FocalLoss": (nn.FocalLoss, {"logits": ROW, "labels": LABELS.reshape(3, 1)}),
    "HShrink": (nn.HShrink, {"input": ROW}),
    "HSigmoid": (nn.HSigmoid, {"x": ROW}),
    "L1Loss": (nn.L1Loss, {"logits": ROW, "labels": OTHER}),
    "MSELoss": (nn.MSELoss, {"logits": ROW, "labels": OTHER}),
    "SmoothL1Loss": (nn.SmoothL1Loss, {"logits": ROW, "labels": OTHER}),
    "SoftShrink": (nn.SoftShrink, {"input": ROW}),
    "SoftmaxCrossEntropyWithLogits": (lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True), {"logits": ROW, "labels": LABELS}),
}
BY_HAND = {
    "nn.Cell.insert_child_to_cell", "nn.Cell.insert_param_to_cell", "dataset.MindDataset", "dataset.text.Lookup",
    "dataset.vision.ToType", "dataset.transforms.vision.ToType", "nn.CellHooks.register_backward_hook", "nn.SmoothL1Loss",
}
INTERNAL = {
    "nn.DropoutExt.construct", "dataset.DebugHook.set_previous_op_name", "dataset.vision.not_random", "nn._Step.construct",
    "nn.LGamma.construct", "nn.ReduceLogSumExp.construct", "nn.SampledSoftmaxLoss.construct",
}
"""Rows of functions that programs do not call with keywords, or that today's releases lack or have under another name."""


def _renamed(name: str) -> dict[str, str]:
    rows = older_calls.table().get(f"nn.{name}.construct", [])
    return {new: old for row in rows if row.last != "2.10" for old, new in row.renamed.items()}


def test_each_row_has_its_test() -> None:
    rows = {
        row.name for rows in older_calls.table().values() for row in rows
        if row.renamed and row.last != "2.10" and row.name.startswith(("nn.", "dataset."))
    }
    assert rows == BY_HAND | INTERNAL | {f"nn.{name}.construct" for name in LAYERS}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_takes_the_older_keyword(name: str, mode: int) -> None:
    create, today = LAYERS[name]
    older = {_renamed(name).get(key, key): value for key, value in today.items()}
    assert older.keys() != today.keys()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(np.asarray(create()(**older).asnumpy()), np.asarray(create()(*today.values()).asnumpy()))


CONSTRUCTORS: dict[str, tuple[Callable[[], Any], Callable[[], Any], tuple[Tensor, ...]]] = {      # the older form, today's, the inputs
    "AvgPool": (
        lambda: ops.AvgPool(ksize=2, strides=2, padding="valid"),
        lambda: ops.AvgPool(kernel_size=2, strides=2, pad_mode="valid"), (IMAGE,),
    ),
    "MaxPool": (
        lambda: ops.MaxPool(ksize=3, strides=1, padding="same"),
        lambda: ops.MaxPool(kernel_size=3, strides=1, pad_mode="same"), (IMAGE,),
    ),
    "MaxPoolWithArgmax": (
        lambda: ops.MaxPoolWithArgmax(ksize=2, padding="valid"),
        lambda: ops.MaxPoolWithArgmax(kernel_size=2, pad_mode="valid"), (IMAGE,),
    ),
    "ops.SmoothL1Loss": (lambda: ops.SmoothL1Loss(sigma=0.1), lambda: ops.SmoothL1Loss(beta=0.1), (ROW, OTHER)),
    "nn.SmoothL1Loss": (lambda: nn.SmoothL1Loss(sigma=0.1), lambda: nn.SmoothL1Loss(beta=0.1), (ROW, OTHER)),
}


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_a_constructor_takes_the_older_keywords(name: str, mode: int) -> None:
    older, today, inputs = CONSTRUCTORS[name]
    results = [create()(*inputs) for create in (older, today)]
    first, second = (result[0] if isinstance(result, tuple) else result for result in results)
    np.testing.assert_array_equal(first.asnumpy(), second.asnumpy())


def test_a_dropped_argument_of_a_primitive_names_its_release() -> None:
    with pytest.raises(TypeError, match=r"hint: `window` is an argument of MindSpore 0\.1; today's signature has no such argument"):
        ops.MaxPoolWithArgmax(window=2)
    with pytest.raises(TypeError, match=r"AvgPool\(nonsense=2\): expected AvgPool\(kernel_size=1, .*\)\.$"):
        ops.AvgPool(nonsense=2)


def test_methods_of_cells() -> None:
    cell = nn.Cell()
    cell.insert_child_to_cell("inner", child=nn.ReLU())
    cell.insert_param_to_cell("weight", Parameter(ROW), check_name=False)
    handle = cell.register_backward_hook(fn=lambda cell, gradient, output: gradient)
    assert isinstance(cell.inner, nn.ReLU) and cell.weight.name == "weight" and handle is not None


def test_data_sets(tmp_path: Path) -> None:
    file = str(tmp_path / "rows.mindrecord")
    writer = FileWriter(file)
    writer.add_schema({"number": {"type": "int32"}})
    writer.write_raw_data([{"number": 1}, {"number": 2}])
    writer.commit()
    assert ds.MindDataset(dataset_file=file).get_dataset_size() == 2
    words = text.Vocab.from_list(["a", "b"])
    assert int(text.Lookup(words, unknown="b")("z")) == 1
    assert vision.ToType(output_type=np.float64)(np.ones((2, 2, 3), np.uint8)).dtype == np.float64


def test_a_layer_of_the_program_has_its_keywords_alone() -> None:
    class L1Loss(nn.Cell):
        def construct(self, logits, labels):
            return logits - labels

    with pytest.raises(TypeError, match=r"expected L1Loss.construct\(logits, labels\)"):
        L1Loss()(logits=ROW, target=ROW)
    with pytest.raises(TypeError, match=r"expected L1Loss.construct\(logits, labels\)"):
        nn.L1Loss()(logits=ROW, other=ROW)
