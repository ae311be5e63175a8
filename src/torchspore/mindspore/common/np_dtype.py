"""`mindspore.common.np_dtype`: NumPy types for dtypes that NumPy lacks."""
from ml_dtypes import bfloat16

__all__ = ["bfloat16"]
