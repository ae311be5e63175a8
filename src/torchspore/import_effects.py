"""Changes that `import mindspore` makes in a process outside its own modules, because programs rely on them."""
from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

_EINOPS = "einops._backends"
PROTOBUF_VARIABLE = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"


def apply() -> None:
    """Make `PIL.Image` reachable as an attribute of `PIL`, and select protobuf's Python implementation, as MindSpore's import does.

    `PIL.Image` loads at its first use. A value of the protobuf variable in the environment is kept.
    """
    os.environ.setdefault(PROTOBUF_VARIABLE, "python")
    _load_lazily("PIL.Image")
    if _EINOPS in sys.modules:
        from torchspore import einops_backend

        einops_backend.add_if_loaded()


def spec_with_tensors(name: str, path: object) -> importlib.machinery.ModuleSpec | None:
    """Return the spec of einops' backends, with one for Tensors; None for all other modules."""
    if name != _EINOPS:
        return None
    from torchspore import einops_backend

    return einops_backend.spec_of_backends(path)


def _load_lazily(name: str) -> None:
    """Put the module `name` into `sys.modules` so that its code runs at the first access to an attribute."""
    parent, _, child = name.rpartition(".")
    if name in sys.modules or importlib.util.find_spec(parent) is None:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader = importlib.util.LazyLoader(spec.loader)
    spec.loader = loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    setattr(sys.modules[parent], child, module)
