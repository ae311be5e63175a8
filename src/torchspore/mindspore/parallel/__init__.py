"""`mindspore.parallel`: what programs ask of the parallel context; running on several devices is not built yet."""
from torchspore.mindspore.parallel import _auto_parallel_context, _utils

__all__: list[str] = []
