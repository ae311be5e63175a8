"""Pictures of truth values, such as masks, go through transforms as in MindSpore 2.10; sums of pixels recorded from it."""
from __future__ import annotations

from typing import Any

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import vision as V

MASK = np.random.RandomState(0).rand(6, 5, 3) * 255 > 128
OF: dict[str, tuple[Any, str, int]] = {
    "Resize": (V.Resize((4, 4)), "bool", 19), "cubic": (V.Resize((12, 10), V.Inter.BICUBIC), "bool", 180),
    "ResizedCrop": (V.ResizedCrop(1, 1, 3, 3, (5, 5)), "bool", 32), "Rotate": (V.Rotate(30), "bool", 38),
    "Affine": (V.Affine(10.0, [1, 1], 1.1, 5.0), "bool", 0), "RandomRotation": (V.RandomRotation((30, 30)), "bool", 38),
    "ConvertColor": (V.ConvertColor(V.ConvertMode.COLOR_RGB2GRAY), "bool", 13), "Equalize": (V.Equalize(), "uint8", 11475),
    "AutoContrast": (V.AutoContrast(1.0), "uint8", 11475), "AdjustSharpness": (V.AdjustSharpness(1.5), "uint8", 46),
    "RandomAdjustSharpness": (V.RandomAdjustSharpness(1.5, 1.0), "uint8", 46), "GaussianBlur": (V.GaussianBlur(3, 1.0), "uint8", 44),
    "Pad": (V.Pad(1, (1, 2, 3)), "uint8", 201), "PadToSize": (V.PadToSize((8, 8)), "uint8", 45),
    "RandomCrop": (V.RandomCrop((6, 5)), "uint8", 45),
}


@pytest.mark.parametrize("name", OF)
def test_it_is_as_in_mindspore(name: str) -> None:
    transform, dtype, total = OF[name]
    result = transform(MASK)
    assert result.dtype == dtype and int(result.sum()) == total
    rows = ds.NumpySlicesDataset(np.stack([MASK] * 40), ["x"], shuffle=False).map(transform, ["x"])
    for row in rows.create_tuple_iterator(num_epochs=1, output_numpy=True):
        assert np.array_equal(row[0], result) and row[0].dtype == dtype


def test_patches_of_a_mask_take_the_filling() -> None:
    patches = V.SlicePatches(4, 2, V.SliceMode.PAD, 7)(MASK)
    assert {box.dtype.name for box in patches} == {"uint8"} and [int(box.sum()) for box in patches] == [13, 49, 9, 46, 4, 50, 126, 126]
