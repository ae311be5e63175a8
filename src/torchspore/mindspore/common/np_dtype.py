"""`mindspore.common.np_dtype`: NumPy's view of dtypes that NumPy has not."""
from ml_dtypes import bfloat16

__all__ = ["bfloat16"]
