"""Convolutions of packed weights in C++ equal those of torch in float64."""
from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import conv2d

from torchspore.engine.native import operators
from torchspore.engine.native.convolutions import packed_operators

pytestmark = pytest.mark.skipif(not operators.is_loaded(), reason="`torchspore doctor --build` builds the library")


def both(
    image: tuple[int, ...], weight: tuple[int, ...], stride: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1), tile: int = 0,
    has_bias: bool = True, adds_image: bool = False, has_relu: bool = False, is_channels_last: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The result in C++ and that of torch in float64."""
    packed = packed_operators()
    assert packed is not None
    generator = torch.Generator().manual_seed(0)
    x, w, b = (torch.randn(shape, generator=generator) for shape in (image, weight, weight[:1]))
    bias = b if has_bias else None
    expected = conv2d(x.double(), w.double(), None if bias is None else bias.double(), stride, padding, dilation)
    other = torch.randn(expected.shape, generator=generator) if adds_image else None
    if other is not None:
        expected = expected + other
    if has_relu:
        expected = expected.relu()
    if is_channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    out = packed.convolve(x, packed.pack(w, tile), bias, other, weight[0], weight[2:], stride, padding, dilation, tile, has_relu)
    assert out.shape == expected.shape and out.is_contiguous(memory_format=torch.channels_last)
    return out, expected


def check(limit: float, *arguments: Any, **how: Any) -> None:
    out, expected = both(*arguments, **how)
    assert float((out - expected).abs().max()) <= limit * float(expected.abs().max())


@pytest.mark.parametrize("image, weight, stride, padding, dilation", [
    ((1, 16, 5, 7), (16, 16, 1, 1), (1, 1), (0, 0), (1, 1)), ((2, 3, 23, 19), (20, 3, 7, 7), (2, 2), (3, 3), (1, 1)),
    ((3, 13, 9, 6), (5, 13, 3, 3), (1, 2), (0, 1), (1, 1)), ((1, 300, 6, 5), (33, 300, 1, 1), (1, 1), (0, 0), (1, 1)),
    ((1, 7, 12, 11), (31, 7, 3, 3), (1, 1), (2, 2), (2, 2)), ((1, 5, 9, 9), (1, 5, 2, 5), (3, 1), (1, 2), (1, 2)),
    ((2, 150, 4, 4), (17, 150, 3, 3), (2, 2), (1, 1), (1, 1)), ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), (0, 0), (1, 1)),
    ((1, 8, 40, 41), (24, 8, 1, 1), (2, 3), (1, 0), (1, 1)), ((1, 9, 3, 300), (16, 9, 3, 3), (1, 1), (3, 2), (1, 1)),
])
@pytest.mark.parametrize("how", [{}, {"adds_image": True, "has_relu": True}, {"has_bias": False, "is_channels_last": False}])
def test_direct(image: Any, weight: Any, stride: Any, padding: Any, dilation: Any, how: Any) -> None:
    check(1e-6, image, weight, stride, padding, dilation, **how)


@pytest.mark.parametrize("tile, limit", [(2, 1e-6), (4, 2e-5)])
@pytest.mark.parametrize("image, weight, padding", [
    ((1, 16, 8, 8), (16, 16, 3, 3), (1, 1)), ((3, 13, 9, 7), (5, 13, 3, 3), (0, 2)), ((1, 300, 5, 6), (33, 300, 3, 3), (1, 1)),
    ((1, 3, 3, 3), (1, 3, 3, 3), (0, 0)), ((2, 8, 41, 30), (24, 8, 3, 3), (3, 1)), ((1, 1, 1, 1), (20, 1, 3, 3), (1, 1)),
    ((1, 600, 30, 31), (600, 600, 3, 3), (1, 1)),
])
@pytest.mark.parametrize("how", [{}, {"adds_image": True, "has_relu": True}, {"has_bias": False, "is_channels_last": False}])
def test_winograd(tile: int, limit: float, image: Any, weight: Any, padding: Any, how: Any) -> None:
    check(limit, image, weight, padding=padding, tile=tile, **how)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_each_number_of_threads(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for tile, limit in ((0, 1e-6), (2, 1e-6), (4, 2e-5)):
            check(limit, (2, 24, 30, 33), (40, 24, 3, 3), padding=(1, 1), tile=tile)
    finally:
        torch.set_num_threads(before)


def test_nan_passes_through_relu() -> None:
    packed = packed_operators()
    assert packed is not None
    x = torch.tensor([[[[float("nan"), -1.0, 2.0]]]])
    out = packed.convolve(x, packed.pack(torch.ones(16, 1, 1, 1), 0), None, None, 16, [1, 1], [1, 1], [0, 0], [1, 1], 0, True)
    assert out[0, 3, 0].isnan().tolist() == [True, False, False] and out[0, 3, 0, 1:].tolist() == [0.0, 2.0]


def test_wrong_operands_are_refused() -> None:
    packed = packed_operators()
    assert packed is not None
    x, weights = torch.ones(1, 2, 4, 4), packed.pack(torch.ones(3, 2, 3, 3), 0)
    how: Any = ([3, 3], [1, 1], [0, 0], [1, 1])
    with pytest.raises(RuntimeError, match="expected the result of pack_convolution"):
        packed.convolve(x, weights, None, None, 30, *how, 0, False)
    with pytest.raises(RuntimeError, match="no tiles of 2 for this convolution"):
        packed.convolve(x, weights, None, None, 3, [3, 3], [2, 2], [0, 0], [1, 1], 2, False)
    with pytest.raises(RuntimeError, match="smaller than the kernel"):
        packed.convolve(x[:, :, :2], weights, None, None, 3, *how, 0, False)
    with pytest.raises(RuntimeError, match="a bias per channel"):
        packed.convolve(x, weights, torch.ones(2), None, 3, *how, 0, False)
    with pytest.raises(RuntimeError, match="an added image of the result's shape"):
        packed.convolve(x, weights, None, x, 3, *how, 0, False)
    with pytest.raises(RuntimeError, match="no tiles of 3"):
        packed.pack(torch.ones(3, 2, 3, 3), 3)


@pytest.mark.parametrize("tile", [0, 2, 4])
def test_no_images(tile: int) -> None:
    out, expected = both((0, 5, 9, 7), (4, 5, 3, 3), padding=(1, 1), tile=tile, adds_image=True)
    assert out.shape == expected.shape == (0, 4, 9, 7)


@pytest.mark.parametrize("size, stride, padding", [
    ((2, 9), (2, 1), (0, 0)), ((9, 2), (1, 4), (0, 0)), ((1, 2), (3, 3), (0, 0)), ((1, 9), (7, 1), (2, 0)),
])
def test_an_image_smaller_than_the_kernel_is_refused_with_each_stride(size: Any, stride: Any, padding: Any) -> None:
    packed = packed_operators()
    assert packed is not None
    kernel = (6, 3) if padding[0] else (3, 3)
    weights = packed.pack(torch.ones(3, 2, *kernel), 0)
    with pytest.raises(RuntimeError, match="smaller than the kernel"):
        packed.convolve(torch.ones(1, 2, *size), weights, None, None, 3, kernel, stride, padding, (1, 1), 0, False)


@pytest.mark.parametrize("name, value", [("kernel", [0, 3]), ("stride", [0, 1]), ("padding", [0, -1]), ("dilation", [1, 0])])
def test_numbers_that_describe_no_convolution_are_refused(name: str, value: list[int]) -> None:
    packed = packed_operators()
    assert packed is not None
    how = {"kernel": [3, 3], "stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], name: value}
    with pytest.raises(RuntimeError, match="expected a positive kernel, stride and dilation, and no negative padding"):
        packed.convolve(torch.ones(1, 2, 5, 5), packed.pack(torch.ones(3, 2, 3, 3), 0), None, None, 3, *how.values(), 0, False)
    how[name] = [1, 1, 1]
    with pytest.raises(RuntimeError, match="expected two numbers"):
        packed.convolve(torch.ones(1, 2, 5, 5), packed.pack(torch.ones(3, 2, 3, 3), 0), None, None, 3, *how.values(), 0, False)


def test_images_and_weights_without_channels_are_refused() -> None:
    packed = packed_operators()
    assert packed is not None
    how: Any = ([1, 1], [1, 1], [0, 0], [1, 1], 0, False)
    for image, weight in (((1, 0, 5, 5), (3, 0, 1, 1)), ((1, 2, 5, 5), (0, 2, 1, 1))):
        with pytest.raises(RuntimeError, match="expected channels"):
            packed.convolve(torch.ones(image), packed.pack(torch.ones(weight), 0), None, None, weight[0], *how)
