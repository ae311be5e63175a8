"""Functions over functions and over nested structures: `HyperMap`, `Map`, `MultitypeFuncGraph`, `partial`, clipping of gradients."""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message, short
from torchspore.engine.execution import thread_state
from torchspore.engine.execution.precision import changed, lowered_to
from torchspore.engine.formulas.row_gradients import RowsBase
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import dtypes, structured_types
from torchspore.engine.tensors.structured_types import TensorType
from torchspore.engine.tensors.tensor import TensorBase, raw, transform, wrap
from torchspore.errors import NotFinite
from torchspore.mindspore.common.flags import precision_flag, report_compiler_flags
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.ops.declaration.declare import explaining
from torchspore.mindspore.ops.declaration.primitive import Primitive
from torchspore.mindspore.ops.gradients.gradient import GradOperation as GradOperation

_PYTHON_TYPES: dict[type, Any] = {
    TensorType: TensorBase, structured_types.Tuple: tuple, structured_types.List: list, structured_types.Dict: dict,
    structured_types.Slice: slice, structured_types.TypeNone: type(None), structured_types.TypeEllipsis: type(...),
    structured_types.TypeType: dtypes.Type, structured_types.RowTensorType: RowsBase, dtypes.String: str, dtypes.Bool: bool,
}


class MultitypeFuncGraph:
    """One name for several functions, chosen by the types of the arguments: `@graph.register("Tensor", "Number")`."""

    def __init__(self, name: str, read_value: bool = False) -> None:
        self.name = name
        self.entries: list[tuple[tuple[dtypes.Type, ...], Callable[..., Any]]] = []

    def register(self, *type_names: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the decorated function for arguments of these types (names such as 'Tensor', or dtypes).

        Raises:
            RuntimeError: no type has this name.
        """
        types = tuple(structured_types.str_to_type(name) if isinstance(name, str) else name for name in type_names)

        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            self.entries.append((types, function))
            return function

        return keep

    def __call__(self, *args: Any) -> Any:
        for types, function in self.entries:
            if len(types) == len(args) and all(_is_of(a, t) for a, t in zip(args, types)):
                return function(*args)
        kinds = ", ".join(type(a).__name__ for a in args)
        raise TypeError(
            f"MultitypeFuncGraph {self.name!r}: no function is registered for ({kinds}).\n\nhint: @{self.name}.register({kinds})."
        )


def _is_of(value: Any, kind: dtypes.Type) -> bool:
    """Return whether a value has a type as MindSpore compares them: a bool is a Number and no Int, and so is a complex number."""
    python_type = _PYTHON_TYPES.get(type(kind))
    if python_type is not None:
        return isinstance(value, python_type)
    if isinstance(kind, structured_types.Function):
        return callable(value)
    if kind == dtypes.int_:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == dtypes.float_:
        return isinstance(value, float)
    return isinstance(value, (int, float, complex)) if isinstance(kind, dtypes.Number) else type(value).__name__ == str(kind)


class HyperMap:
    """Applies an operation to all leaves of nested tuples and lists of equal structure."""

    def __init__(self, ops: Any = None, reverse: bool = False) -> None:
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args: Any) -> Any:
        operation, *structures = (self.ops, *args) if self.ops is not None else args
        return self._map(operation, structures)

    def _map(self, operation: Any, structures: list[Any]) -> Any:
        if all(isinstance(s, (tuple, list)) for s in structures):
            _check_equal_structures("HyperMap", structures)
            items = [self._map(operation, list(parts)) for parts in zip(*structures)]
            return tuple(items) if isinstance(structures[0], tuple) else items
        return operation(*structures)


class Map:
    """Applies an operation to the elements of tuples and lists, without recursion."""

    def __init__(self, ops: Any = None, reverse: bool = False) -> None:
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args: Any) -> Any:
        operation, *structures = (self.ops, *args) if self.ops is not None else args
        _check_equal_structures("Map", structures)
        return tuple(operation(*parts) for parts in zip(*structures))


def _check_equal_structures(name: str, structures: list[Any]) -> None:
    """Raise ValueError for tuples of different lengths, TypeError for a tuple beside a list; PyNative mode allows both, as in MindSpore."""
    if not thread_state.is_in_graph():
        return
    if len({isinstance(structure, list) for structure in structures}) > 1:
        raise TypeError(f"{name}: the types of arguments in {name} must be consistent, got a tuple and a list.")
    lengths = [len(structure) for structure in structures]
    if len(set(lengths)) > 1:
        kind = "lists" if isinstance(structures[0], list) else "tuples"
        raise ValueError(f"{name}: The {kind} in {name} should have the same length. Got {', '.join(map(str, lengths))}.")


class Partial(Primitive):
    """Combines a function and its first arguments."""

    def __call__(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return functools.partial(function, *args, **kwargs)


def partial(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return `function` with its first arguments bound."""
    return functools.partial(function, *args, **kwargs)


@explaining
def clip_by_norm(x: Any, max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Scales Tensors down together so that their norm is at most `max_norm`."""
    if isinstance(norm_type, (int, float)) and norm_type == 0:
        raise ValueError("expected norm_type other than 0.")
    alone = isinstance(x, TensorBase)
    values = [t if t.is_floating_point() or t.is_complex() else t.float() for t in ([raw(x)] if alone else [raw(t) for t in x])]
    total = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(v, norm_type) for v in values]), norm_type)
    if error_if_nonfinite and not bool(torch.isfinite(total)):
        raise NotFinite("the norm is not finite.\n\nhint: write error_if_nonfinite=False to scale anyway.")
    scale = (raw(max_norm) if isinstance(max_norm, TensorBase) else max_norm) / (total + 1e-6)
    scale = torch.where(scale < 1, scale, 1)                              # a norm that is NaN changes nothing
    out = [wrap(v * scale) for v in values]
    return out[0] if alone else tuple(out)


def clip_by_global_norm(x: Any, clip_norm: float = 1.0, use_norm: Any = None) -> Any:
    """Scales a tuple or list of Tensors, or one Tensor, down so that their common norm is at most `clip_norm`."""
    if isinstance(clip_norm, (int, float)) and clip_norm <= 0:
        raise ValueError(message(f"clip_by_global_norm(clip_norm={short(clip_norm)})", "a number above 0"))
    alone = isinstance(x, TensorBase)
    values = [raw(t) for t in ((x,) if alone else x)]
    norm = torch.sqrt(sum(torch.sum(torch.square(v.float())) for v in values)) if use_norm is None else raw(use_norm)
    scale = clip_norm / torch.clamp(norm, min=clip_norm)
    clipped = tuple(wrap((v * scale).to(v.dtype)) for v in values)
    return clipped[0] if alone else clipped


def add_flags(fn: Any = None, **flags: Any) -> Any:
    """Add flags to a Cell or a function, as `_func_graph_flags`. Return the Cell or the function; without `fn`, a decorator.

    A true `fp16`, `fp32` or `bf16` makes the Cell or function compute in that dtype.

    Raises:
        TypeError: `fn` is neither a Cell nor a function.
    """
    if fn is None:
        return functools.partial(add_flags, **flags)
    if not callable(fn):
        raise TypeError(message(f"add_flags({fn!r:.40})", "a function or a Cell"))
    if FRONT.cell is not None and isinstance(fn, FRONT.cell):
        return fn.add_flags(**flags)  # type: ignore[attr-defined]
    dtype = precision_flag(flags)
    if dtype is not None:
        fn = functools.wraps(fn)(changed(fn, lowered_to(dtype), Parameter))
    report_compiler_flags(f"add_flags({getattr(fn, '__name__', type(fn).__name__)})", flags)
    fn._func_graph_flags = {**getattr(fn, "_func_graph_flags", {}), **flags}
    return fn


def core(fn: Any = None, **flags: Any) -> Any:
    """`add_flags` with core=True: MindSpore's mark for functions that its compiler treats as built-in."""
    return functools.partial(core, **flags) if fn is None else add_flags(fn, core=True, **flags)


def mixed_precision_cast(dst_dtype: Any, x: Any) -> Any:
    """Cast the Tensors of real numbers in x, also inside tuples and dicts, to `dst_dtype`; other values stay unchanged."""
    target_dtype = dtypes.to_torch(dst_dtype)

    def cast_real(tensor: Any) -> Any:
        return wrap(raw(tensor).to(target_dtype)) if raw(tensor).is_floating_point() else tensor

    return transform(x, cast_real)


def hyper_add(*args: Any) -> Any:
    """The sums of the leaves of two nested structures."""
    return HyperMap(operator.add)(*args)


def _augmented(name: str, compute: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        x, y = args
        return compute(x, y)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{compute.__name__}` of two values, as in an augmented assignment; returns a new value."
    return function


augassign_add = _augmented("augassign_add", operator.add)
augassign_sub = _augmented("augassign_sub", operator.sub)
augassign_mul = _augmented("augassign_mul", operator.mul)
augassign_div = _augmented("augassign_div", operator.truediv)
augassign_floordiv = _augmented("augassign_floordiv", operator.floordiv)
augassign_mod = _augmented("augassign_mod", operator.mod)


def ms_hasnext(*args: Any) -> bool:
    """Return whether a tuple, list or Tensor has another element."""
    return len(args[0]) > 0


def ms_next(*args: Any) -> Any:
    """Return the first element of a tuple, list or Tensor, and the remaining ones."""
    return args[0][0], args[0][1:]


def iter_converter(*args: Any) -> Any:
    """Return the iterable of a loop: a tuple, list or Tensor itself, or the keys of a dict as a tuple."""
    return tuple(args[0]) if isinstance(args[0], dict) else args[0]


def environ_create(*args: Any) -> dict[Any, Any]:
    """Return an empty environment, which maps keys to values."""
    if args:
        raise TypeError(f"environ_create: expected no argument, got {len(args)}.")
    return {}


def ref_to_embed(variable: Any) -> Any:
    """Return the key of a Parameter in an environment."""
    return getattr(variable, "name", variable)


def environ_set(env: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    """Return an environment with another value for a key."""
    return {**env, key: value}


def environ_get(env: dict[Any, Any], key: Any, default: Any) -> Any:
    """Return the value of a key in an environment, or `default`."""
    return env.get(key, default)


def environ_add(first: dict[Any, Any], other: dict[Any, Any]) -> dict[Any, Any]:
    """Merge two environments; add the values of common keys."""
    return {**first, **other, **{key: first[key] + other[key] for key in first.keys() & other.keys()}}


def env_get(env: dict[Any, Any], parameter: Any) -> Any:
    """Return the value of a Parameter in an environment, or zeros in its shape."""
    value = env.get(ref_to_embed(parameter))
    return wrap(torch.zeros_like(raw(parameter))) if value is None else value


class ControlDepend(Primitive):
    """Set the order of two operators until MindSpore 1.1. It has no effect, because operators run in Python's order. Returns True."""

    def __init__(self, depend_mode: int = 0) -> None:
        super().__init__("ControlDepend")
        if depend_mode not in (0, 1):
            raise ValueError(f"ControlDepend(depend_mode={depend_mode!r}): expected 0 or 1.")
        self.add_prim_attr("depend_mode", depend_mode)

    def __call__(self, src: Any, dst: Any) -> bool:
        return True


def control_depend(src: Any, dst: Any) -> bool:
    """Set the order of two operators until MindSpore 1.1. It has no effect, because operators run in Python's order. Returns True."""
    return ControlDepend()(src, dst)
