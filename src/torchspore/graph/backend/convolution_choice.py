"""The fastest algorithm of each convolution on this machine: each shape is measured once per process, or once with a store of choices."""
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.native.convolutions import TILES, packed_operators
from torchspore.engine.torch_internals import torch_private
from torchspore.graph.backend import measurement
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.fx.fingerprint import of_text
from torchspore.graph.passes.packed_convolutions import Convolution

WORTH = 0.95
"""A C++ convolution is used if it needs at most this share of oneDNN's time; a smaller difference is noise."""
SMALL = 2**20
"""Convolutions of fewer multiplications are not measured."""
NEAR = 1e-5
"""The largest error of an algorithm on normally distributed numbers, as a share of the greatest value."""
COLD, MOST_COPIES = 2**26, 16
"""Bytes of weights, and copies of them, that take turns in a measurement: a deep net finds the weights of a layer in no cache."""
_TURNS = measurement.Turns(least=4, most=12, longest=0.02)
_ONEDNN = "oneDNN"
_mkldnn = torch.ops.mkldnn


def choose_tile(convolution: Convolution) -> int | None:
    """Return the tile with which the C++ convolution is the fastest, None if that is oneDNN; measures if it is not known yet."""
    image, weight = convolution.image, convolution.weight
    if image[0] * image[2] * image[3] * weight[0] * weight[1] * weight[2] * weight[3] < SMALL:
        return None
    key = of_text("convolution", repr(convolution))
    choice = autotune_cache.find(key)
    if choice is None or choice not in (_ONEDNN, *map(str, _tiles(convolution))):
        choice = _measured(convolution)
        autotune_cache.keep(key, choice)
    return None if choice == _ONEDNN else int(choice)


def _tiles(convolution: Convolution) -> tuple[int, ...]:
    is_winograd = convolution.weight[2:] == (3, 3) and convolution.stride == convolution.dilation == (1, 1)
    return (0, *TILES) if is_winograd else (0,)


def _measured(convolution: Convolution) -> str:
    with torch_private.without_modes(), torch.no_grad():
        ways = _ways(convolution)
        expected = ways[_ONEDNN]()
        for name in list(ways):
            if name != _ONEDNN and not measurement.differs([expected], [ways[name]()]) <= NEAR:
                del ways[name]
        took = measurement.seconds(ways, [], _TURNS)
    best = min(took, key=took.__getitem__)
    return best if took[best] < WORTH * took[_ONEDNN] else _ONEDNN


def _ways(convolution: Convolution) -> dict[str, Any]:
    """Return the convolution of normally distributed numbers by each algorithm."""
    generator = torch.Generator().manual_seed(0)
    image, shape, stride, padding, dilation, has_bias, adds_image, has_relu = convolution
    normal = functools.partial(torch.randn, generator=generator, dtype=torch.float32, device="cpu")
    x = normal(image).contiguous(memory_format=torch.channels_last)
    weight = normal(shape)
    bias = normal(shape[0]) if has_bias else None
    activation = "relu" if has_relu else "none"

    def convolve(reordered: torch.Tensor) -> torch.Tensor:
        return _mkldnn._convolution_pointwise(x, reordered, bias, padding, stride, dilation, 1, activation, [], "")

    def convolve_and_add(reordered: torch.Tensor) -> torch.Tensor:
        how: Any = ("relu", [], "") if has_relu else (None, [], None)
        return _mkldnn._convolution_pointwise.binary(x, other, reordered, bias, padding, stride, dilation, 1, "add", 1.0, *how)

    reordered = _copies(lambda: _mkldnn._reorder_convolution_weight(weight, padding, stride, dilation, 1, image), weight.nbytes)
    other = None
    if adds_image:
        other = normal(convolve(reordered[0]).shape).contiguous(memory_format=torch.channels_last)
    ways = {_ONEDNN: _in_turn(convolve_and_add if adds_image else convolve, reordered)}
    operators = packed_operators()
    for tile in _tiles(convolution) if operators is not None else ():
        packed = operators.pack(weight, tile)  # type: ignore[union-attr]

        def convolve_packed(packed: torch.Tensor, tile: int = tile) -> torch.Tensor:
            return operators.convolve(x, packed, bias, other, shape[0], shape[2:], stride, padding, dilation, tile, has_relu)  # type: ignore[union-attr]

        ways[str(tile)] = _in_turn(convolve_packed, _copies(packed.clone, packed.nbytes))
    return ways


def _copies(create: Callable[[], torch.Tensor], size: int) -> list[torch.Tensor]:
    return [create() for _ in range(max(1, min(MOST_COPIES, COLD // size)))]


def _in_turn(compute: Callable[[torch.Tensor], torch.Tensor], weights: list[torch.Tensor]) -> Callable[[], torch.Tensor]:
    """Return a function that computes with another one of the weights each time."""
    turns = itertools.cycle(weights)
    return lambda: compute(next(turns))
