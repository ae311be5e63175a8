"""A call of a torch Module with the substitutes of its parameters in MindSpore's gradients and graphs."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch

from torchspore.base.frames import line_prefix
from torchspore.base.text import message
from torchspore.engine.execution import precision
from torchspore.engine.tensors import torch_interop, tree
from torchspore.engine.tensors.tensor import Composite, frame, raw, transform, wrap, write
from torchspore.mindspore.ops.declaration.blame import is_users_error
from torchspore.mindspore.ops.declaration.reasons import is_torch

Place = tuple[torch.nn.Module, dict[str, Any], str]
"""A Module, its dict of parameters or buffers, and the name in it."""


class Stored(NamedTuple):
    """A tensor of a Module, the Tensor of its Cell, and where the Module has it."""

    tensor: Any
    own: torch.Tensor
    places: list[Place]


def lists_with_tensors(module: torch.nn.Module, stored: list[Stored]) -> list[tuple[dict[str, Any], str]]:
    """Return the attributes of a Module that are lists with its parameters in them, such as `_flat_weights`."""
    owned = {id(item.own) for item in stored}
    return [
        (inner.__dict__, name) for inner in module.modules() for name, value in inner.__dict__.items()
        if type(value) in (list, tuple) and any(id(item) in owned for item in value)
    ]


def call(cell: Any, module: Any, stored: list[Stored], lists: list[tuple[dict[str, Any], str]], args: Any, kwargs: Any) -> Any:
    """Return the result of `module` for Tensors, with Tensors. Buffers that it replaces are written into the Cell."""
    name = type(module).__name__
    if frame() is None and not (torch_interop.has_recorded and torch_interop.is_recorded_by_torch(args, kwargs)):
        with torch.no_grad():
            return _entered(name, _result_of(module, args, kwargs))
    values = {id(own): raw(precision.as_stored(tensor) if precision.lowering else tensor) for tensor, own, _ in stored}
    with _autocast(values), _swapped(stored, lists, values):
        result = _result_of(module, args, kwargs)
        replaced = []
        for tensor, own, places in stored:
            _, home, key = places[0]
            if home[key] is not values[id(own)]:
                replaced.append((tensor, home[key]))
    _check_parameters(cell, result)
    for tensor, t in replaced:
        write(tensor, t.detach())
    return _entered(name, result)


_EXPLAINED = (RuntimeError, TypeError, ValueError, IndexError)


def _result_of(module: Any, args: Any, kwargs: Any) -> Any:
    """Return the result with torch tensors. Errors of torch keep its text, with the name of the Module and the line of the program."""
    try:
        return module(*transform(args, raw), **transform(kwargs, raw))
    except _EXPLAINED as error:
        if type(error) in _EXPLAINED and is_torch(error) and not is_users_error(error) and not getattr(error, "explained", False):
            error.args = (f"{line_prefix()}{type(module).__name__}: {error}",)
            vars(error)["explained"] = True
        raise


@contextmanager
def _swapped(stored: list[Stored], lists: list[tuple[dict[str, Any], str]], values: dict[int, torch.Tensor]) -> Iterator[None]:
    """Store `values`, by the ids of the Module's tensors, in its dicts and lists."""
    before = [(home, name, home[name]) for home, name in lists]
    try:
        for item in stored:
            for _, home, name in item.places:
                home[name] = values[id(item.own)]
        for home, name, items in before:
            home[name] = type(items)(values.get(id(item), item) for item in items)
        yield
    finally:
        for item in stored:
            for _, home, name in item.places:
                home[name] = item.own
        for home, name, items in before:
            home[name] = items


def _check_parameters(cell: Any, result: Any) -> None:
    """Raises GradientLost if the result depends on a torch Parameter that the Cell does not have. Checked once for each mode."""
    state = cell.__dict__
    if state.get("_is_checked_") is cell.training:
        return
    for t in tree.leaves(result):
        if isinstance(t, torch.Tensor) and t.requires_grad:
            torch_interop.enter(t)
            state["_is_checked_"] = cell.training


def _autocast(values: dict[int, torch.Tensor]) -> AbstractContextManager[Any]:
    """Return torch's autocast for the dtype in which `to_float` or a level of mixed precision lets Cells compute here."""
    around = frame()
    dtype = precision.dtype_around()
    if dtype is None and around is not None and around.rules is not None:
        dtype = _dtype_of_products(around.rules)
    device = next((t.device.type for t in values.values()), "cpu")
    if dtype in (torch.float16, torch.bfloat16):
        return torch.autocast(device, dtype, cache_enabled=False)
    return nullcontext()


def _dtype_of_products(rules: Any) -> torch.dtype | None:
    """Return the dtype in which rules by operator let a product compute; None if it is that of its inputs."""
    rule: Callable[..., Any] | None = rules.get("dense") or rules.get("matmul")
    if rule is None:
        return None
    dtypes: list[torch.dtype] = []

    def body(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        dtypes.append(x.dtype)
        return x

    rule(body, torch.zeros(1, 1), torch.zeros(1, 1))
    return dtypes[0]


def _entered(name: str, result: Any) -> Any:
    """Return the result with Tensors. Raises TypeError for values in which tensors cannot be seen."""
    def enter(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            if leaf.layout is not torch.strided or leaf.is_nested:
                raise TypeError(message(f"as_cell of {name}: a sparse or nested result", "dense tensors"))
            return wrap(leaf)
        if leaf is None or isinstance(leaf, (bool, int, float, complex, str, Composite)):
            return leaf
        raise TypeError(message(
            f"as_cell of {name}: the result has a value of type {type(leaf).__name__}",
            "tensors, numbers, texts, None, and lists, tuples and dicts of them",
            hint="call as_cell on a Module that returns the tensors of the result; transformers' models take use_cache=False",
        ))

    return tree.mapped(result, enter)
