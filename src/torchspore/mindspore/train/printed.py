"""`parse_print`: what ops.Print wrote into the file that `print_file_path` named."""
from __future__ import annotations

import os
import warnings
from typing import Any

from torchspore.base.text import message
from torchspore.engine.core import print_file
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.tensor import Tensor


def parse_print(print_file_name: str) -> list[Any]:
    """Reads the file that ops.Print wrote to: a list of its texts and Tensors, in the order in which they were printed.

    Raises FileNotFoundError where there is none, ValueError for an empty file and for one that is none of these, RuntimeError where no
    value in it can be read. Of a damaged file (a program that was killed leaves half a value at the end, say) what can be read is given,
    with a warning that names the place.
    """
    if not isinstance(print_file_name, str):
        raise TypeError(message(f"parse_print({print_file_name!r:.40})", "the path of a file"))
    path = os.path.realpath(print_file_name)
    if not os.path.exists(path):
        raise FileNotFoundError(f"parse_print({print_file_name!r}): expected the path of a file that exists.")
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise ValueError(f"parse_print({print_file_name!r}): the file is empty; expected one that ops.Print wrote to.")
    found: list[Any] = []
    damages = []
    for one in print_file.read(path):
        if isinstance(one, print_file.Damaged):
            damages.append(one)
        else:
            found.append(one if isinstance(one, str) else _tensor(*one))
    if damages and not found:
        kind = ValueError if damages[0].is_frame else RuntimeError
        raise kind(f"parse_print({print_file_name!r}): failed to read the print file: {damages[0]}.")
    for damage in damages:
        warnings.warn(f"parse_print({print_file_name!r}): {damage}; what can be read is given.", stacklevel=2)
    return found


def _tensor(values: Any, kind: str) -> Any:
    made: Any = Tensor(values)
    return made.astype(mstype.bfloat16) if kind == "BFloat16" else made
