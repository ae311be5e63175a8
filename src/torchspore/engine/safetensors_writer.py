"""Files of safetensors; a full disk raises OSError, as with any other file."""
from __future__ import annotations

import errno
import os
import re

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file


def write(tensors: dict[str, torch.Tensor], path: str, metadata: dict[str, str] | None = None) -> None:
    """Write tensors of the host, of which no two share memory. Raises OSError."""
    try:
        save_file(tensors, path, metadata=metadata)
    except SafetensorError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))          # the library's text is all that says why
        if number is None:
            raise OSError(errno.EIO, str(error)) from None
        raise OSError(int(number.group(1)), os.strerror(int(number.group(1)))) from None
