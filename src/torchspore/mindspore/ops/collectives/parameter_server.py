"""`Push` and `Pull` of the parameter server of MindSpore 1.x, which does not exist here."""
from __future__ import annotations

from typing import Any, NoReturn

from torchspore.base.text import message
from torchspore.mindspore.ops.declaration.primitive import Primitive, prim_attr_register

_HINT = "remove Parameter.set_param_ps: the optimizer then updates its Parameters itself"


class Push(Primitive):
    """Sends an optimizer's inputs to a parameter server. A call raises NotImplementedError, because there is no server."""

    @prim_attr_register
    def __init__(self, optim_type: str = "ApplyMomentum", only_shape_indices: Any = None) -> None:
        if not isinstance(optim_type, str):
            raise TypeError(message(f"Push({optim_type!r:.40})", "an optimizer's name"))
        self.add_prim_attr("only_shape_indices", list(only_shape_indices or ()))
        self.init_prim_io_names(["optim_inputs", "optim_input_shapes"], ["key"])

    def __call__(self, optim_inputs: Any, optim_input_shapes: Any) -> NoReturn:
        description = f"{len(optim_inputs)} inputs, {len(optim_input_shapes)} shapes"
        raise NotImplementedError(message(f"Push({description})", "a parameter server", hint=_HINT))


class Pull(Primitive):
    """Fetches a weight from a parameter server. A call raises NotImplementedError, because there is no server."""

    @prim_attr_register
    def __init__(self) -> None:
        self.init_prim_io_names(["key", "weight"], ["output"])

    def __call__(self, key: Any, weight: Any) -> NoReturn:
        raise NotImplementedError(message(f"Pull({key!r:.20}, {getattr(weight, 'name', weight)!r:.40})", "a parameter server", hint=_HINT))
