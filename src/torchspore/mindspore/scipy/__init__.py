"""`mindspore.scipy`: SciPy's linear algebra, cosine transforms and optimization on Tensors."""
from __future__ import annotations

from torchspore.mindspore.scipy import fft, linalg, ops, optimize
from torchspore.public_names import missing

__getattr__ = missing(__name__)
__all__ = ["fft", "linalg", "ops", "optimize"]
