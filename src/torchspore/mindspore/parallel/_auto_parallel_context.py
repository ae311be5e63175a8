"""The object with the options of parallel execution, under its upstream name."""
from torchspore.context.upstream import auto_parallel_context

__all__ = ["auto_parallel_context"]
