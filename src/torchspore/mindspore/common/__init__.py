"""`mindspore.common`: Tensor, Parameter, dtypes, seeds, `jit`."""
from torchspore.mindspore.common import dtype, generator
from torchspore.mindspore.common._grad_function import _Function
from torchspore.mindspore.common.api import JitConfig, constexpr, flops_collection, jit, jit_class, ms_function, ms_memory_recycle
from torchspore.mindspore.common.dtype import *
from torchspore.mindspore.common.dtype import bool, float, int
from torchspore.mindspore.common.executor import _function_forbid_reuse, _no_grad, _pynative_executor
from torchspore.mindspore.common.generator import Generator, get_rng_state, initial_seed, manual_seed, set_rng_state
from torchspore.mindspore.common.initializer import Initializer
from torchspore.mindspore.common.mutable import mutable
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.quant import QuantDtype
from torchspore.mindspore.common.recompute import recompute
from torchspore.mindspore.common.seed import get_seed, set_seed
from torchspore.mindspore.common.sparse_tensor import COOTensor, CSRTensor, RowTensor, RowTensorInner
from torchspore.mindspore.common.tensor import Tensor, swap_tensors, tensor

from_numpy = Tensor.from_numpy
seed = generator.seed          # after the module of that name, which it hides, as in MindSpore

__all__ = [
    "COOTensor", "CSRTensor", "Generator", "QuantDtype", "RowTensor", "RowTensorInner", "get_rng_state", "initial_seed", "manual_seed",
    "seed", "set_rng_state", "from_numpy",
    "Initializer", "JitConfig", "Parameter", "ParameterTuple", "Tensor", "constexpr", "flops_collection", "get_seed", "jit", "jit_class",
    "ms_function", "ms_memory_recycle", "mutable", "recompute", "set_seed", "swap_tensors", "tensor", *dtype.__all__,
]
