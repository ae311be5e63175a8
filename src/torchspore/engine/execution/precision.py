"""Computing in another dtype: all of a Cell (`Cell.to_float`), or single operators in it, as levels of mixed precision say."""
from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.blackbox import marks
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.devices.npu import options
from torchspore.engine.execution import unsupported_dtypes
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import dtypes, tree
from torchspore.engine.tensors.tensor import Frame, TensorBase, follow_operators, frame, raw, thread_state, transform, wrap

_FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})

Rule = Callable[..., Any]
"""Takes the body of an operator, then its arguments, as torch tensors."""


@dataclass(frozen=True)
class Lowered:
    """All operators of a Cell compute in `dtype`; its results are cast to `back`, if that is a dtype."""

    dtype: torch.dtype
    back: torch.dtype | None = None


@dataclass(frozen=True)
class ByOperator:
    """Operators in a Cell or function compute by rules, found by the names of their functions."""

    rules: Mapping[str, Rule]
    only_in_graphs: bool = False


class _Lowered(Frame):
    """Hands out Parameters, and the Tensors whose ids are `attributes`, in another floating-point dtype; outer rules end here."""

    has_rules = True

    def __init__(self, dtype: torch.dtype, parameter: type[TensorBase], attributes: frozenset[int]) -> None:
        self._dtype, self._parameter, self._attributes = dtype, parameter, attributes

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        if not isinstance(tensor, self._parameter) and id(tensor) not in self._attributes:
            return super().resolve(tensor)
        around = self.outer                              # a nested Cell with a separate dtype receives the values unrounded
        while isinstance(around, (_Lowered, _Ruled)):
            around = around.outer
        t = tensor._t if around is None else around.resolve(tensor)
        return t if _reading.as_stored or not t.is_floating_point() else t.to(self._dtype)

    def host(self, tensor: TensorBase) -> torch.Tensor:
        return tensor._t if self.outer is None else self.outer.host(tensor)

    def __enter__(self) -> None:
        global lowering
        with _lock:
            lowering += 1
        super().__enter__()

    def __exit__(self, *error: Any) -> None:
        global lowering
        super().__exit__(*error)
        with _lock:
            lowering -= 1


_lock = threading.Lock()
lowering = 0
"""How many frames hand out Parameters in another dtype, in all threads."""


class _Reading(threading.local):
    as_stored = False


_reading = _Reading()


def reads_as_stored() -> bool:
    """Return whether `as_stored` is asking in this thread."""
    return _reading.as_stored


def dtype_around() -> torch.dtype | None:
    """The dtype in which the innermost Cell with one computes here."""
    around = frame() if lowering else None
    while around is not None and not isinstance(around, _Lowered):
        around = around.outer
    return None if around is None else around._dtype


def as_stored(value: Any) -> Any:
    """Return a Parameter as a Tensor of its stored dtype, regardless of the enclosing Cells' dtype; writes into it in place persist."""
    if not lowering or not isinstance(value, TensorBase):
        return value
    _reading.as_stored = True
    try:
        return wrap(raw(value))
    finally:
        _reading.as_stored = False


class _Ruled(Frame):
    """Operators inside compute by its rules."""

    has_rules = True

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self.rules = rules


def changed(
    call: Callable[..., Any], how: Lowered | ByOperator, parameter: type[TensorBase], cell: Any = None,
) -> Callable[..., Any]:
    """Return `call`, the construct of `cell` if there is one, computing as `how` says. Parameters are instances of `parameter`."""
    return _by_operator(call, how) if isinstance(how, ByOperator) else _lowered(call, how, parameter, cell)


def _attribute_tensors(cell: Any) -> frozenset[int]:
    """Return the ids of the Tensors that are attributes of `cell`, or items of a list or tuple that is an attribute."""
    ids = set()
    for value in cell.__dict__.values():
        for item in value if type(value) in (list, tuple) else (value,):
            if isinstance(item, TensorBase):
                ids.add(id(item))
    return frozenset(ids)


def ruling(how: ByOperator) -> AbstractContextManager[None]:
    """Operators that this thread runs in the block compute as `how` says."""
    return _Ruled(how.rules).open()


def _by_operator(call: Callable[..., Any], how: ByOperator) -> Callable[..., Any]:
    def computed(*args: Any, **kwargs: Any) -> Any:
        if how.only_in_graphs and not STORE.graph_mode:
            return call(*args, **kwargs)
        with _Ruled(how.rules).open():
            return call(*args, **kwargs)

    return computed


def _lowered(call: Callable[..., Any], how: Lowered, parameter: type[TensorBase], cell: Any) -> Callable[..., Any]:
    def cast(dtype: torch.dtype) -> Callable[[TensorBase], Any]:
        def cast_tensor(tensor: TensorBase) -> Any:
            t = raw(tensor)
            return wrap(t.to(dtype)) if t.is_floating_point() and t.dtype is not dtype else tensor

        return cast_tensor

    def computed(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = transform(args, cast(how.dtype)), transform(kwargs, cast(how.dtype))
        attributes = frozenset() if cell is None else _attribute_tensors(cell)
        with _Lowered(how.dtype, parameter, attributes).open():
            out = call(*args, **kwargs)
        return out if how.back is None else transform(out, cast(how.back))

    return computed


def lowered_to(dtype: Any, back: Any = None) -> Lowered:
    """All of a Cell in a dtype of MindSpore's."""
    return Lowered(dtypes.to_torch(dtype), None if back is None else dtypes.to_torch(back))


def ruled(body: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the body of the operator `name`, as changed by the rules that apply in this thread."""
    if marks.is_enabled:
        body = marks.with_mark(body, name)
    around = thread_state.frame
    rules = None if around is None else around.rules
    if rules is None:
        if not _policy_options:
            return body
        rules = _policy_rules(around)
    rule = None if rules is None else rules.get(name)
    return body if rule is None else partial(rule, body)


_policy_options: set[str] = set()
"""The options with a value that names a policy for operators outside of graphs."""


def follow_mode(mode: str) -> Outcome | None:
    """Apply `precision_mode` to operators outside of graphs. Without Ascend, the first operator whose dtype changes reports the outcome."""
    outcome = options.set_precision_mode(mode)
    return outcome or _follow("precision_mode", mode if mode != "must_keep_origin_dtype" else "")


def follow_auto_mixed(enabled: bool) -> Outcome | None:
    """Make operators outside of graphs follow `enable_auto_mixed_precision`, as `follow_mode` does."""
    return _follow("enable_auto_mixed_precision", enabled)


def _follow(option: str, value: Any) -> Outcome | None:
    if bool(value) != (option in _policy_options):
        follow_operators(bool(value))
        (_policy_options.add if value else _policy_options.remove)(option)
    return None


def _policy_rules(around: Frame | None) -> Mapping[str, Rule] | None:
    """Return the rules of the policy for an operator that PyNative runs, or None in graphs, whose own pass follows the policy."""
    if STORE.graph_mode:
        return None
    while around is not None:
        if getattr(around, "traces", False):
            return None
        around = around.outer
    mode = STORE.get("precision_mode")
    option = "precision_mode" if mode else "enable_auto_mixed_precision"
    rules: Mapping[str, Rule] | None = FRONT.precision_rules(mode or ("allow_mix_precision" if STORE.get(option) else ""))
    if rules:
        effects.report(option, _IN_PYNATIVE)
    return rules


_IN_PYNATIVE = Outcome.applied("PyNative casts the inputs of operators as the policy states, and casts their results back")


def computing_from(sources: frozenset[torch.dtype], dtype: torch.dtype) -> Rule:
    """Return the rule of an operator that computes in `dtype` if an input has one of the dtypes `sources`, with its results cast back.

    Numbers (Tensors without axes) alone change nothing, as in graphs. An operator without a kernel in `dtype` computes in its own dtype.
    """
    def cast_down(value: Any) -> Any:
        return value.to(dtype) if isinstance(value, torch.Tensor) and value.dtype in sources else value

    def rule(body: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        inputs = [t for t in _tensors((arguments, tuple(keywords.values()))) if t.dtype in sources]
        if not any(t.ndim for t in inputs):
            return body(*arguments, **keywords)
        source = inputs[0].dtype
        try:
            result = body(*tree.mapped(arguments, cast_down), **{key: tree.mapped(value, cast_down) for key, value in keywords.items()})
        except (RuntimeError, NotImplementedError) as error:
            if not unsupported_dtypes.is_cause_of(error):
                raise
            return body(*arguments, **keywords)
        return tree.mapped(result, lambda out: out.to(source) if isinstance(out, torch.Tensor) and out.dtype is dtype else out)

    return rule


def cast(value: Any, dtype: torch.dtype) -> Any:
    """A torch tensor of floats in `dtype`, also each in a list or tuple; anything else as it is."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.dtype in _FLOATS else value
    return type(value)([cast(item, dtype) for item in value]) if type(value) in (list, tuple) else value


class Otherwise(dict[str, Rule]):
    """Rules by name, with one for all other operators."""

    def __init__(self, rules: Mapping[str, Rule], otherwise: Rule) -> None:
        super().__init__(rules)
        self._otherwise = otherwise

    def get(self, name: str, default: Any = None) -> Any:
        """The rule of this name, or the one for all others."""
        del default
        return super().get(name, self._otherwise)


def computing_in(dtype: torch.dtype, back: torch.dtype | None = None, positions: Sequence[int] = ()) -> Rule:
    """Return the rule of an operator that computes in `dtype`, with its result in `back`; `positions` are those of the cast arguments, by
    default all."""
    def rule(body: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        if positions:
            return body(*[cast(a, dtype) if index in positions else a for index, a in enumerate(arguments)], **keywords)
        out = body(*cast(arguments, dtype), **{key: cast(value, dtype) for key, value in keywords.items()})
        return out if back is None else cast(out, back)

    return rule


def computing_in_but_for_bias(dtype: torch.dtype, position: int, axis: int, back: torch.dtype | None = None) -> Rule:
    """The rule of a product with a bias, argument `position`: the product is in `dtype`; the bias is added along `axis`, in the wider."""
    without = computing_in(dtype, back)

    def rule(body: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        new_arguments = list(arguments)
        bias = keywords.pop("bias", None) if len(new_arguments) <= position else new_arguments[position]
        if len(new_arguments) > position:
            new_arguments[position] = None
        out = without(body, *new_arguments, **keywords)
        if bias is None:
            return out
        shape = [1] * out.ndim
        shape[axis] = -1
        common = torch.promote_types(out.dtype, bias.dtype)
        return out.to(common) + bias.to(common).reshape(shape)

    return rule


def adding_product_in(dtype: torch.dtype) -> Rule:
    """The rule of beta * input + alpha * product: the product is in `dtype`, the sum in the wider of its dtype and that of the input."""
    low = computing_in(dtype)

    def rule(body: Callable[..., Any], input: torch.Tensor, *factors: torch.Tensor, beta: Any = 1, **keywords: Any) -> Any:
        product = low(body, torch.zeros_like(input, dtype=dtype), *factors, **keywords)
        common = torch.promote_types(input.dtype, dtype)
        return input.to(common) * beta + product.to(common)

    return rule


def computing_in_widest(body: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """The rule of an operator whose inputs are cast to the widest dtype among them."""
    dtypes_found = [t.dtype for t in _tensors((arguments, tuple(keywords.values()))) if t.dtype in _FLOATS]
    if not dtypes_found:
        return body(*arguments, **keywords)
    widest = dtypes_found[0]
    for dtype in dtypes_found[1:]:
        widest = torch.promote_types(widest, dtype)
    return body(*cast(arguments, widest), **{key: cast(value, widest) for key, value in keywords.items()})


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []
