"""`mindspore.multiprocessing`: Python's module. Its forked processes can compute, and Tensors can be sent between them."""
from __future__ import annotations

import multiprocessing as _own
from multiprocessing import *
from multiprocessing import context as _context

from torchspore.public_names import missing

Process = _context.Process
__all__ = list(_own.__all__)  # type: ignore[attr-defined]
__getattr__ = missing(__name__)
