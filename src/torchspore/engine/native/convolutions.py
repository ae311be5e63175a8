"""Convolutions of packed weights in C++ (convolution.h), as operators of torch. The library of the short paths contains them."""
from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch

from torchspore.engine.native import operators

TILES = (2, 4)
"""The tiles of Winograd's algorithm; tile 0 is the direct convolution."""


class Operators(NamedTuple):
    """`pack(weight, tile)`, and `convolve(x, packed, bias, other, channels, kernel, stride, padding, dilation, tile, relu)`."""

    pack: Any
    convolve: Any


@functools.cache
def packed_operators() -> Operators | None:
    """Return the operators; None without the library. `convolve` returns channels-last images."""
    if not operators.register_convolutions():
        return None
    return Operators(torch.ops.torchspore.pack_convolution.default, torch.ops.torchspore.convolve_packed.default)
