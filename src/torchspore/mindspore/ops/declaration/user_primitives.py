"""Primitives that a program defines: the gradient that `get_bprop` returns, and primitives that only infer shapes and dtypes.

MindSpore compiles a call of a primitive without its Python `__call__`: it calls `infer_shape` and `infer_dtype` (or `__infer__`), and looks
for a kernel when the graph runs. A program may therefore compile a graph that contains a primitive without a kernel.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.autograd.bprop import with_gradient
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import TensorBase, frame, raw, wrap
from torchspore.engine.torch_internals.custom_operators import define
from torchspore.graph.capture.running_trace import current


def _refuse(inputs: list[torch.Tensor], name: str, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    del inputs, shape, dtype
    raise RuntimeError(message(f"{name}: a primitive whose __call__ computes nothing", "a primitive that computes its result",
                               hint=f"define __call__(self, *inputs) on {name}; the graph compiles without it"))


def _empty(inputs: list[torch.Tensor], name: str, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    del name
    return torch.empty(shape, dtype=dtype, device=inputs[0].device if inputs else "cpu")


_without_kernel = define("without_kernel(Tensor[] inputs, str name, SymInt[] shape, ScalarType dtype) -> Tensor", _refuse, _empty)
"""An operator for a primitive without Python code: it infers the result's shape and dtype, and its kernel raises RuntimeError."""


def with_inferred_result(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the `__call__` of a primitive that the program defines.

    If `call` raises NotImplementedError while a graph is captured, the wrapper returns results of the inferred shapes and dtypes.
    """

    @functools.wraps(call)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return call(self, *args, **kwargs)
        except NotImplementedError:
            if frame() is None or current() is None or not (hasattr(self, "infer_shape") or hasattr(self, "__infer__")):
                raise
        # As in MindSpore 2.10, a primitive with Python code has the gradient of its operators; `get_bprop` is not called.
        get_bprop = getattr(self, "get_bprop", None)
        inferred = functools.partial(_inferred_result, self)
        return (inferred if get_bprop is None else with_gradient(inferred, get_bprop(), self.name))(*args)

    return __call__


def _inferred_result(primitive: Any, *args: Any) -> Any:
    """Return Tensors of the inferred shapes and dtypes, whose kernel raises."""
    shapes, types = _infer(primitive, args)
    inputs = [raw(item) for item in args if isinstance(item, TensorBase)]

    def result(shape: Any, dtype: Any) -> Any:
        if isinstance(dtype, (tuple, list)):
            return tuple(map(result, shape, dtype))
        element_type = getattr(dtype, "element_type", dtype)
        torch_dtype = dtypes.to_torch(element_type() if callable(element_type) else element_type)
        return wrap(_without_kernel(inputs, primitive.name, [int(size) for size in shape], torch_dtype))

    return result(shapes, types)


def _infer(primitive: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the shapes and dtypes of the results, as the primitive's own functions infer them."""
    shapes = [list(item.shape) if isinstance(item, TensorBase) else [] for item in args]
    types = [item.dtype if isinstance(item, TensorBase) else type(item) for item in args]
    if hasattr(primitive, "infer_shape"):
        shape, dtype = primitive.infer_shape(*shapes), primitive.infer_dtype(*types)
    else:
        values = [None if isinstance(item, TensorBase) else item for item in args]
        described = [{"shape": s, "dtype": t, "value": v} for s, t, v in zip(shapes, types, values)]
        inferred = primitive.__infer__(*described)
        shape, dtype = inferred["shape"], inferred["dtype"]
    if isinstance(shape, tuple) and shape and isinstance(shape[0], (list, tuple)) and not isinstance(dtype, (list, tuple)):
        dtype = (dtype,) * len(shape)
    return shape, dtype
