"""What the transforms that are made of others do, as functions of their own."""
from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from torchspore.mindspore.dataset.core.operation import run_chain
from torchspore.mindspore.dataset.transforms.transforms import OneHot, RandomApply, RandomChoice, RandomOrder


class Implementation(IntEnum):
    """Which of a transform's two forms a program means: the C++ one of 1.x's c_transforms, or the one in Python."""

    C = 0
    PY = 1


def compose(transforms: Any, *args: Any) -> Any:
    """The values after all transforms, one after the other: one, or a tuple."""
    found = run_chain(list(transforms), args)
    return found[0] if len(found) == 1 else found


def one_hot_encoding(label: Any, num_classes: int, epsilon: float) -> np.ndarray:
    """Class numbers as rows of `num_classes`, smoothed by `epsilon`."""
    return OneHot(num_classes, epsilon)(np.asarray(label))


def random_apply(img: Any, transforms: Any, prob: float) -> Any:
    """All transforms one after the other, with probability `prob`."""
    return RandomApply(transforms, prob)(img)


def random_choice(img: Any, transforms: Any) -> Any:
    """One of the transforms."""
    return RandomChoice(transforms)(img)


def random_order(img: Any, transforms: Any) -> Any:
    """All transforms in random order."""
    return RandomOrder(transforms)(img)


def all_numpy(args: Any) -> bool:
    """Whether a value, or each of a tuple of them, is an array."""
    return all(isinstance(one, np.ndarray) for one in (args if isinstance(args, tuple) else (args,)))
