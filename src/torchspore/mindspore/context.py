"""`mindspore.context`: the setters, getters and constants of the context, and the internal object that older programs use."""
from types import SimpleNamespace as _Names

from torchspore.context import public as _public
from torchspore.context.options import names_of as _names_of
from torchspore.context.public import *  # noqa: F403
from torchspore.context.public import get_auto_parallel_context as _get_auto_parallel_context  # noqa: F401
from torchspore.context.public import get_ps_context as _get_ps_context  # noqa: F401
from torchspore.context.public import reset_auto_parallel_context as _reset_auto_parallel_context  # noqa: F401
from torchspore.context.public import reset_ps_context as _reset_ps_context  # noqa: F401
from torchspore.context.public import set_auto_parallel_context as _set_auto_parallel_context  # noqa: F401
from torchspore.context.public import set_ps_context as _set_ps_context  # noqa: F401
from torchspore.context.upstream import K_CONTEXT, _context, get_jit_config  # noqa: F401

ms_ctx_param = _Names(**{name: name for name in _names_of("context")})
"""The arguments of `K_CONTEXT.get_param` and `set_param`: here the options' names."""

__all__ = [
    name for name, value in vars(_public).items()
    if not name.startswith("_") and (isinstance(value, int) or getattr(value, "__module__", "") == _public.__name__)
]


def _get_mode() -> int:
    """Return the mode of the context, 0 or 1, of which packages read the number."""
    return int(_public.get_context("mode"))
