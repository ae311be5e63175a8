"""Arguments of `compile` with open lengths, where a graph is split: a graph for representative lengths shows the strategies and layouts."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import TensorBase, wrap

IS_EXAMPLE = "_is_example_"
"""The attribute of a Tensor whose lengths stand for open ones."""
_MOST_TRIED = 6
_FACTOR = 7
"""No divisor of a number of devices: a length is divisible by a number of parts only if the Symbol says so."""


def other_lengths(owner: Any, value: Any) -> list[int]:
    """Return lengths to try if the first representative ones do not fit together: those of Parameters and closed axes, the longest first.

    The last one is 1, which broadcasts.
    """
    parameters = owner.get_parameters() if hasattr(owner, "get_parameters") else ()
    tensors = [leaf for leaf in (*parameters, *tree.leaves(value)) if isinstance(leaf, TensorBase)]
    sizes = {size for leaf in tensors for size in (getattr(leaf, "symbolic", None) or leaf._t.shape) if isinstance(size, int) and size > 1}
    return [*sorted(sizes, reverse=True)[:_MOST_TRIED], 1]


def with_lengths(value: Any, preferred: int | None = None) -> tuple[Any, bool]:
    """Return arguments in which a Tensor with lengths stands for each Tensor that was declared by `shape=[None, ...]` or by Symbols.

    Each open axis gets the `preferred` length if its declaration allows it. The second result says whether there is an open axis.
    """
    has_open_lengths = False
    lengths: dict[int, int] = {}

    def length_of(size: Any) -> int:
        if isinstance(size, int) and size != -1:
            return size
        if preferred is not None and (not hasattr(size, "fits") or size.fits(preferred)):
            return preferred
        if not hasattr(size, "fits"):
            return _FACTOR                                     # as in MindSpore, no number of parts divides it
        if size.unique and id(size) in lengths:
            return lengths[id(size)]
        count = max(_FACTOR, -(-size.min // size.divisor))
        length = size.divisor * count + size.remainder
        if not size.fits(length):
            length = size.max - (size.max - size.remainder) % size.divisor
        lengths[id(size)] = length
        return length

    def closed(leaf: Any) -> Any:
        nonlocal has_open_lengths
        shape = getattr(leaf, "symbolic", None) if isinstance(leaf, TensorBase) else None
        if not shape:
            return leaf
        has_open_lengths = True
        example = wrap(torch.zeros([length_of(size) for size in shape], dtype=leaf._t.dtype, device=leaf._t.device))
        example.__dict__[IS_EXAMPLE] = True
        return example

    return tree.mapped(value, closed), has_open_lengths
