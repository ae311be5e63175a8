"""Write safetensors files. A full disk raises OSError, as for any other file."""
from __future__ import annotations

import errno
import os
import re

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file


def write(tensors: dict[str, torch.Tensor], path: str, metadata: dict[str, str] | None = None) -> None:
    """Write host tensors; no two may share memory. Raises OSError."""
    try:
        save_file(tensors, path, metadata=metadata)
    except SafetensorError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))          # the errno appears only in the message text
        if number is None:
            raise OSError(errno.EIO, str(error)) from None
        raise OSError(int(number.group(1)), os.strerror(int(number.group(1)))) from None
