"""The object behind the options of parallel execution, as upstream programs reach for it."""
from torchspore.context.upstream import auto_parallel_context

__all__ = ["auto_parallel_context"]
