"""`mindspore.context`: the setters, getters and constants of the context."""
from torchspore.context import public as _public
from torchspore.context.public import *  # noqa: F403

__all__ = [
    name for name, value in vars(_public).items()
    if not name.startswith("_") and (isinstance(value, int) or getattr(value, "__module__", "") == _public.__name__)
]
