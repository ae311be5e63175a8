"""Loops and functions as operators. MindSpore compiles them; here they run as plain Python."""
from __future__ import annotations

import builtins
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.context.store import STORE
from torchspore.engine.autograd.bprop import with_gradient
from torchspore.engine.execution import thread_state
from torchspore.engine.tensors import creation
from torchspore.engine.tensors.tensor import TensorBase, wrap
from torchspore.graph.capture import running_trace
from torchspore.graph.refusal import Kind
from torchspore.mindspore.ops.declaration.primitive import Primitive


def _function(name: str, argument: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(message(f"{name}({argument}={value!r:.40})", "a function"))


def _number(value: Any) -> int:
    return int(creation.host(value)) if isinstance(value, TensorBase) else value


class WhileLoop(Primitive):
    """Repeat `val = loop_func(val)` while `cond_func(val)` is true, from `init_val` on; return the last value."""

    def __init__(self) -> None:
        super().__init__("WhileLoop")

    def __call__(self, cond_func: Callable[[Any], Any], loop_func: Callable[[Any], Any], init_val: Any) -> Any:
        _function("WhileLoop", "cond_func", cond_func)
        _function("WhileLoop", "loop_func", loop_func)
        while cond_func(init_val):
            init_val = loop_func(init_val)
        return init_val


class ForiLoop(Primitive):
    """Repeat `val = loop_func(i, val)` for i from `lower` to `upper` (exclusive); return the last value. `unroll` has no effect."""

    def __init__(self) -> None:
        super().__init__("ForiLoop")

    def __call__(self, lower: Any, upper: Any, loop_func: Callable[[Any, Any], Any], init_val: Any, unroll: bool = True) -> Any:
        _function("ForiLoop", "loop_func", loop_func)
        if not isinstance(unroll, bool):
            raise TypeError(message(f"ForiLoop(unroll={unroll!r:.40})", "a bool"))
        for i in builtins.range(_number(lower), _number(upper)):
            init_val = loop_func(i, init_val)
        return init_val


class Scan(Primitive):
    """Repeat `carry, y = loop_func(carry, x)` for each x of `xs`; return the last carry and a list of all y. `unroll` has no effect."""

    def __init__(self) -> None:
        super().__init__("Scan")

    def __call__(self, loop_func: Callable[[Any, Any], Any], init: Any, xs: Any, length: int | None = None, unroll: bool = True) -> Any:
        _function("Scan", "loop_func", loop_func)
        if not isinstance(unroll, bool):
            raise TypeError(message(f"Scan(unroll={unroll!r:.40})", "a bool"))
        if xs is None and length is None:
            raise ValueError("Scan(xs=None): expected a length.")
        if xs is not None and length is not None and length != len(xs):
            raise ValueError(f"Scan(length={length}): expected {len(xs)}, the length of xs.")
        outputs = []
        for x in [None] * (length or 0) if xs is None else xs:
            init, y = loop_func(init, x)
            outputs.append(y)
        return init, outputs


class Reusing(Primitive):
    """Mark a function that MindSpore's compiler keeps in one piece; return it."""

    def __init__(self) -> None:
        super().__init__("Reusing")

    def __call__(self, x: Any) -> Any:
        return x


class Morph(Primitive):
    """A function of operators as a primitive, with the gradient `bprop_fn(*inputs, out, dout)` if present.

    `infer_shape` and `infer_dtype`, functions of the inputs' shapes and dtypes, are not called: the shape and the dtype are those of the
    function's result, as in MindSpore's forward pass. Raises RuntimeError for a call in PYNATIVE_MODE outside of `jit`.
    """

    def __init__(self, fn: Callable[..., Any], infer_shape: Any, infer_dtype: Any, bprop_fn: Any = None) -> None:
        super().__init__("Morph")
        for argument, value in (("fn", fn), ("infer_shape", infer_shape), ("infer_dtype", infer_dtype)):
            _function("Morph", argument, value)
        self.fn, self.infer_shape, self.infer_dtype = fn, infer_shape, infer_dtype
        self.run = fn if bprop_fn is None else with_gradient(fn, bprop_fn, "Morph")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not STORE.graph_mode and running_trace.current() is None and not thread_state.local.breaks:
            raise RuntimeError("Morph is only supported in GRAPH_MODE.\n\nhint: write set_context(mode=GRAPH_MODE), or call the function.")
        if kwargs:
            bound = inspect.signature(self.fn).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        return self.run(*args)


class PyFunc(Primitive):
    """A Python function on NumPy arrays with declared inputs and outputs. It runs in each call, whatever `stateful` is.

    A call takes Tensors, or one tuple or list of them, and returns a tuple. An input of the declared shape () is a Python number. Raises
    TypeError and ValueError if types or sizes are not as declared.
    """

    def __init__(
        self, fn: Callable[..., Any], in_types: Any, in_shapes: Any, out_types: Any, out_shapes: Any, stateful: bool = True,
    ) -> None:
        super().__init__("PyFunc")
        _function("PyFunc", "fn", fn)
        self.fn = fn
        for name, value in (
            ("in_types", in_types), ("in_shapes", in_shapes), ("out_types", out_types), ("out_shapes", out_shapes), ("stateful", stateful),
        ):
            self.add_prim_attr(name, value)

    def __call__(self, *inputs: Any) -> Any:
        running_trace.ends_trace("calls a function on NumPy arrays", Kind.READS_VALUES)
        values = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) else inputs
        arrays = [creation.to_numpy(value) for value in values]
        arrays = self._as_declared("input", arrays, self.attrs["in_types"], self.attrs["in_shapes"])
        result = self.fn(*(array if array.shape else array.item() for array in arrays))
        outputs = [np.asarray(value) for value in (result if isinstance(result, (tuple, list)) else (result,))]
        outputs = self._as_declared("result", outputs, self.attrs["out_types"], self.attrs["out_shapes"])
        return tuple(wrap(creation.from_array(value)) for value in outputs)

    def _as_declared(self, kind_of_value: str, arrays: list[Any], types: Any, shapes: Any) -> list[Any]:
        """Return the arrays in their declared shapes, if sizes and types are as declared. A single result is converted to its type."""
        if not len(arrays) == len(types) == len(shapes):
            raise ValueError(f"PyFunc: expected {len(types)} {kind_of_value}s, got {len(arrays)}.")
        declared = []
        for i, (array, kind, shape) in enumerate(zip(arrays, types, shapes)):
            if array.size != math.prod(shape):
                raise ValueError(f"PyFunc: expected shape {tuple(shape)} of {kind_of_value} {i}, got {array.shape}.")
            dtype = creation.to_numpy(wrap(creation.filled((), 0, kind))).dtype
            is_convertible = kind_of_value == "result" and not shape and np.can_cast(array.dtype, dtype, "same_kind")
            if array.dtype != dtype and not is_convertible:
                raise TypeError(f"PyFunc: expected {kind} of {kind_of_value} {i}, got {array.dtype}.")
            declared.append(array.reshape(tuple(shape)).astype(dtype, copy=False))
        return declared
