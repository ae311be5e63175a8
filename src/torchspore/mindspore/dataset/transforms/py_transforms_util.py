"""Functional forms of the transforms that combine others."""
from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from torchspore.mindspore.dataset.core.operation import run_chain
from torchspore.mindspore.dataset.transforms.transforms import OneHot, RandomApply, RandomChoice, RandomOrder


class Implementation(IntEnum):
    """The two forms of a transform: the C++ one of 1.x's c_transforms, or the one in Python."""

    C = 0
    PY = 1


def compose(transforms: Any, *args: Any) -> Any:
    """Apply all transforms in sequence; returns a value or a tuple."""
    results = run_chain(list(transforms), args)
    return results[0] if len(results) == 1 else results


def one_hot_encoding(label: Any, num_classes: int, epsilon: float) -> np.ndarray:
    """Convert class numbers to rows of `num_classes`, smoothed by `epsilon`."""
    return OneHot(num_classes, epsilon)(np.asarray(label))


def random_apply(img: Any, transforms: Any, prob: float) -> Any:
    """Apply all transforms in sequence, with probability `prob`."""
    return RandomApply(transforms, prob)(img)


def random_choice(img: Any, transforms: Any) -> Any:
    """Apply one of the transforms."""
    return RandomChoice(transforms)(img)


def random_order(img: Any, transforms: Any) -> Any:
    """Apply all transforms in random order."""
    return RandomOrder(transforms)(img)


def all_numpy(args: Any) -> bool:
    """Return whether a value, or each value of a tuple, is an array."""
    return all(isinstance(item, np.ndarray) for item in (args if isinstance(args, tuple) else (args,)))
