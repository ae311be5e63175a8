"""The object with the options of parallel execution, and its functions, under their upstream names."""
from torchspore.context.public import get_auto_parallel_context as _get_auto_parallel_context
from torchspore.context.public import reset_auto_parallel_context as _reset_auto_parallel_context
from torchspore.context.public import set_auto_parallel_context as _set_auto_parallel_context
from torchspore.context.upstream import auto_parallel_context

__all__ = ["_get_auto_parallel_context", "_reset_auto_parallel_context", "_set_auto_parallel_context", "auto_parallel_context"]
