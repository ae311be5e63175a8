"""`parse_print`: reads the file of ops.Print that `print_file_path` names."""
from __future__ import annotations

import os
import warnings
from typing import Any

from torchspore.base.text import message
from torchspore.engine.execution import print_file
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.tensor import Tensor


def parse_print(print_file_name: str) -> list[Any]:
    """Reads the file that ops.Print wrote to: a list of its texts and Tensors, in the order in which they were printed.

    Raises FileNotFoundError if there is none, ValueError for an empty file and for another format, RuntimeError if no value in it can be
    read. From a damaged file (a killed program may leave an incomplete value at the end) the readable part is returned, with a warning
    that names the position.
    """
    if not isinstance(print_file_name, str):
        raise TypeError(message(f"parse_print({print_file_name!r:.40})", "the path of a file"))
    path = os.path.realpath(print_file_name)
    if not os.path.exists(path):
        raise FileNotFoundError(f"parse_print({print_file_name!r}): expected the path of a file that exists.")
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise ValueError(f"parse_print({print_file_name!r}): the file is empty; expected one that ops.Print wrote to.")
    values: list[Any] = []
    damages = []
    for item in print_file.read(path):
        if isinstance(item, print_file.Damaged):
            damages.append(item)
        else:
            values.append(item if isinstance(item, str) else _tensor(*item))
    if damages and not values:
        kind = ValueError if damages[0].is_frame else RuntimeError
        raise kind(f"parse_print({print_file_name!r}): failed to read the print file: {damages[0]}.")
    for damage in damages:
        warnings.warn(f"parse_print({print_file_name!r}): {damage}; the readable part is returned.", stacklevel=2)
    return values


def _tensor(values: Any, kind: str) -> Any:
    tensor: Any = Tensor(values)
    return tensor.astype(mstype.bfloat16) if kind == "BFloat16" else tensor
