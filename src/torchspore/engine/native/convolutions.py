"""Convolutions of packed weights in C++ (convolution.h), as operators of torch. The library of the short paths contains them."""
from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch

from torchspore.engine.native import operators

TILES = (2,)
"""The tiles of Winograd's algorithm that graphs use; tile 0 is the direct convolution. The C++ code also has tile 4, which is faster, but a
large pixel there lowers the precision of all results of its tile, also of those that do not depend on it."""


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
