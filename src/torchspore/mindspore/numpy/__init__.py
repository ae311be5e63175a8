"""`mindspore.numpy`: NumPy's functions on Tensors, with MindSpore's dtypes: float32 and int32 for Python's numbers."""
from __future__ import annotations

from torchspore.mindspore.numpy import array_creations, array_ops, dtypes, fft, logic_ops, math_ops
from torchspore.mindspore.numpy import array_creations as array_creations_module
from torchspore.mindspore.numpy import array_ops as array_ops_module
from torchspore.mindspore.numpy import logic_ops as logic_module
from torchspore.mindspore.numpy import math_ops as math_module
from torchspore.mindspore.numpy.array_creations import *
from torchspore.mindspore.numpy.array_ops import *
from torchspore.mindspore.numpy.dtypes import *
from torchspore.mindspore.numpy.logic_ops import *
from torchspore.mindspore.numpy.math_ops import *
from torchspore.mindspore.numpy.math_ops import abs, divmod, round
from torchspore.mindspore.numpy.reductions import max, min, sum
from torchspore.public_names import missing

__getattr__ = missing(__name__)

_PRIVATE = ("MGridClass", "OGridClass")
__all__ = [
    "array_creations", "array_ops", "dtypes", "fft", "logic_ops", "math_ops", "array_creations_module", "array_ops_module", "logic_module",
    "math_module", "abs", "divmod", "max", "min", "sum",
    *(name for module in (array_creations, array_ops, dtypes, logic_ops, math_ops) for name in module.__all__ if name not in _PRIVATE),
]
