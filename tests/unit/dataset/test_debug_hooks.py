"""Hooks between the transforms of a map, checks that programs put before their own transforms, and functions on lists of transforms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.debug as debug
import mindspore.dataset.transforms as transforms
import mindspore.dataset.transforms.py_transforms_util as util
import mindspore.dataset.vision as vision
import numpy as np
import pytest
from mindspore.dataset.transforms.validators import check_random_apply, check_random_transform_ops

SEEN: list[Any] = []


class Look(debug.DebugHook):
    def __init__(self) -> None:
        super().__init__()

    def compute(self, *args: Any) -> None:
        SEEN.append([(value.dtype, value.shape) for value in args[0]])  # one tuple, as in MindSpore


@pytest.fixture(autouse=True)
def after() -> Iterator[None]:
    yield
    ds.config.set_debug_mode(False)
    SEEN.clear()


def rows() -> list[np.ndarray]:
    images = ds.NumpySlicesDataset(np.ones((2, 4, 4, 3), np.uint8), ["image"], shuffle=False)
    images = images.map([vision.Rescale(2.0, 0.0), lambda image: image + 1], "image")
    return [row[0] for row in images.create_tuple_iterator(output_numpy=True, num_epochs=1)]


def test_hooks_stand_around_every_transform(capsys: pytest.CaptureFixture[str]) -> None:
    ds.config.set_debug_mode(True, [Look()])
    assert np.array_equal(rows(), np.full((2, 4, 4, 3), 3, np.float32))
    assert [call[0][0] for call in SEEN] == [np.uint8, np.float32, np.float32] * 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["map, before Rescale:", "map, after Rescale:", "map, after <lambda>:"]
    ds.config.set_debug_mode(False)
    SEEN.clear()
    rows()
    assert not SEEN


def test_hooks_that_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    ds.config.set_debug_mode(True)
    rows()
    assert capsys.readouterr().out.splitlines()[:2] == ["map, before Rescale:", "  column 0: uint8 [4, 4, 3]"]
    ds.config.set_debug_mode(True, [debug.PrintDataHook(), debug.PrintMetaDataHook()])
    rows()
    assert "  column 0: [[[1 1 1]" in capsys.readouterr().out
    ds.config.set_debug_mode(False)
    by_hand = ds.NumpySlicesDataset([1, 2], ["a"]).map([Look(), lambda value: value + 1], "a")
    assert len(list(by_hand.create_tuple_iterator(num_epochs=1))) == 2 and len(SEEN) == 2
    for wrong in ([3], 3, [Look]):
        with pytest.raises(TypeError):
            ds.config.set_debug_mode(True, wrong)


def test_checks_for_custom_transforms() -> None:
    class Own:
        @check_random_transform_ops
        def __init__(self, transforms: Any, size: int = 3) -> None:
            self.transforms, self.size = transforms, size

    class Chance:
        @check_random_apply
        def __init__(self, transforms: Any, prob: float = 0.5) -> None:
            self.prob = prob

    assert Own([len], size=4).size == 4 and Chance([len], 1).prob == 1
    for wrong, kind in ((([],), ValueError), (([3],), TypeError), ((3,), TypeError)):
        with pytest.raises(kind):
            Own(*wrong)
    with pytest.raises(TypeError) as caught:
        Own([3])
    assert str(caught.value).endswith("Own: transforms[0] = 3: expected a function or transform, got int.")
    with pytest.raises(ValueError):
        Chance([len], 2.0)


def test_functions_on_lists_of_transforms() -> None:
    twice, more = (lambda value: value * 2), (lambda value: value + 1)
    assert util.compose([twice, more], 3) == 7
    assert util.one_hot_encoding(1, 3, 0.3).round(3).tolist() == [0.1, 0.8, 0.1]
    assert util.random_apply(3, [twice], 1.0) == 6 and util.random_choice(3, [twice]) == 6 and util.random_order(3, [more]) == 4
    assert util.all_numpy((np.zeros(1),)) and not util.all_numpy((1,))
    assert issubclass(transforms.TypeCast, transforms.transforms.TensorOperation) and transforms.PyTensorOperation
    assert transforms.OneHot(3, 0.3)(np.array([0, 2], np.int32)).round(3).tolist() == [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]
    assert transforms.PadEnd([None, 3], 7)(np.ones((2, 2), np.int32)).tolist() == [[1, 1, 7], [1, 1, 7]]
    assert transforms.Slice(slice(None, None, -1))(np.arange(3)).tolist() == [2, 1, 0]


def test_a_plugin_is_refused_by_name() -> None:
    with pytest.raises(RuntimeError) as caught:
        transforms.Plugin("lib.so", "Decode")
    assert str(caught.value).endswith(
        "Plugin('lib.so', 'Decode'): expected a transform in Python: the library was built for MindSpore's own C++ data engine.\n\n"
        "hint: write a Python function, and give it to map."
    )
    with pytest.raises(TypeError):
        transforms.Plugin(3, "Decode")
    assert ms.dataset.DebugHook is debug.DebugHook
