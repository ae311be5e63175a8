"""`mindspore.multiprocessing`: Python's own module. Processes that it forks compute, and Tensors travel between them."""
from __future__ import annotations

import multiprocessing as _own
from multiprocessing import *
from multiprocessing import context as _context

from torchspore.names import missing

Process = _context.Process
__all__ = list(_own.__all__)  # type: ignore[attr-defined]
__getattr__ = missing(__name__)
