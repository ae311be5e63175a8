"""Torch tensors that enter and leave MindSpore's gradients, and torch Modules that a program hands to a Cell.

Inside a gradient transform a Tensor holds a torch tensor with a graph. `Tensor.torch()` hands it out as it is, and `enter` takes a result
of torch's functions back with its graph, so that the gradient flows through them. What would lose a gradient without notice raises.
Outside of gradient transforms a tensor that torch.autograd records keeps its record, so that `backward()` passes through operators.
"""
from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message, short
from torchspore.engine.tensors import torch_aliases, torch_transforms, tree
from torchspore.engine.tensors.tensor import TensorBase, frame, is_recording, raw, transform, wrap
from torchspore.engine.torch_internals import torch_private

has_recorded = False
"""True once torch.autograd records a tensor of a Tensor outside of MindSpore's gradients: calls in GRAPH_MODE then look for them."""


class GradientLost(RuntimeError):
    """A value leaves a gradient in a way that would lose its gradient, or a torch Parameter would get none."""


def enter(t: torch.Tensor) -> torch.Tensor:
    """Return `t` for a Tensor that shares its memory: with its graph where a gradient is recorded, by MindSpore or by torch.

    Raises:
        TypeError: `t` is not a torch tensor with elements in memory: sparse, nested, quantized or on the device 'meta'.
        GradientLost: inside a gradient transform, `t` depends on a torch tensor that requires a gradient. No MindSpore gradient reaches it.
    """
    if not isinstance(t, torch.Tensor) or t.is_nested or t.layout is not torch.strided or t.is_quantized or t.device.type == "meta":
        raise _not_dense(t)
    if torch_private.is_transforming():                 # torch.func's transforms, which jvp, jacfwd and vmap use, follow the tensor itself
        return t
    t = torch_aliases.share(torch_aliases.current(t))
    if not t.requires_grad:                             # in a gradient as it is: writes into either of them are seen by both
        return t if is_recording() and not isinstance(t, torch.nn.Parameter) else t.detach()
    if not is_recording():
        return note_recorded(t) if torch.is_grad_enabled() else t.detach()
    foreign = _foreign_leaf(t)
    if foreign is not None:
        raise _foreign("Tensor.from_torch: a result of", foreign)
    return t


def entered(value: Any) -> Any:
    """Return what a function of the program gave to a transform, with Tensors for the torch tensors in it: `value` itself without those."""
    if isinstance(value, TensorBase) or not any(isinstance(leaf, torch.Tensor) for leaf in tree.leaves(value)):
        return value
    return transform(value, lambda tensor: tensor, lambda t: wrap(enter(t)))


def refuse(call: str, value: Any) -> None:
    """Raises TypeError for a torch tensor in an argument of which a gradient is requested."""
    if any(isinstance(leaf, torch.Tensor) for leaf in tree.leaves(value)):
        raise TypeError(message(f"{call} with respect to a torch tensor", "a Tensor", hint="write torchspore.from_torch(x)"))


def _foreign(what: str, t: torch.Tensor) -> GradientLost:
    """Return the error for a torch tensor that requires a gradient and would get none."""
    return GradientLost(message(
        f"{what} the torch {type(t).__name__} of shape {list(t.shape)}, which requires a gradient, inside a gradient of MindSpore",
        "torch tensors that do not require gradients, because no gradient would reach them",
        hint="call requires_grad_(False) on the torch Module, or take the gradient with torch.autograd",
    ))


def note_recorded(t: torch.Tensor) -> torch.Tensor:
    """Return `t`, which torch.autograd records; calls in GRAPH_MODE look for such tensors from now on."""
    global has_recorded
    has_recorded = True
    return t


def is_recorded_by_torch(*values: Any) -> bool:
    """Return whether torch.autograd records the values of a Tensor, or a torch tensor, among `values`."""
    def is_recorded(leaf: Any) -> bool:
        t = leaf._t if isinstance(leaf, TensorBase) else leaf
        return isinstance(t, torch.Tensor) and t.requires_grad

    return torch.is_grad_enabled() and any(is_recorded(leaf) for leaf in tree.leaves(values))


def operand(t: torch.Tensor) -> torch.Tensor:
    """Return the argument of an operator that is a torch tensor which requires a gradient.

    Raises:
        GradientLost: inside a gradient transform, `t` is a torch Parameter. No MindSpore gradient reaches it.
    """
    if not is_recording():
        return note_recorded(t) if t.requires_grad else t
    t = torch_aliases.current(t)
    if isinstance(t, torch.nn.Parameter) and t.requires_grad:
        raise _foreign("an operator of MindSpore: the argument is", t)
    return t


def call_torch(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the result of a torch function for arguments among which are Tensors: torch tensors, as the function itself returns them.

    Raises:
        WriteRefused: the function writes into a Tensor while a gradient or a graph is recorded, which would not follow the write.
    """
    if frame() is None:
        return function(*transform(arguments, raw), **transform(keywords, raw))
    written = _written_argument(function, arguments, keywords)
    if written:
        raise _write_refused(function)
    taken: list[tuple[torch.Tensor, int]] = []

    def take(tensor: TensorBase) -> torch.Tensor:
        t = torch_aliases.torch_tensor(tensor)
        if not t.is_inference():
            taken.append((t, t._version))
        return t

    result = function(*transform(arguments, take), **transform(keywords, take))
    if any(t._version != version for t, version in taken):
        raise _write_refused(function)
    return result


def _let_functions_take_tensors() -> None:
    """Let `apply` of torch.autograd's Functions and torch.nn.Parameter take Tensors, for which they do not ask `__torch_function__`.

    The gradient of the Function would be lost, and the Parameter would be a Tensor, which no Module registers.
    """
    descriptor = torch.autograd.Function.__dict__["apply"]                 # of C from torch 2.15 on

    @functools.wraps(torch.autograd.Function.apply)
    def apply_to_torch(cls: Any, *args: Any, **kwargs: Any) -> Any:
        apply = descriptor.__get__(None, cls)
        if any(isinstance(argument, TensorBase) for argument in args):
            return call_torch(apply, args, kwargs)
        return apply(*(torch_aliases.current(args) if torch_aliases.open_watches else args), **kwargs)

    create = torch.nn.Parameter.__new__

    def create_parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        return create(cls, torch_aliases.torch_tensor(data) if isinstance(data, TensorBase) else data, requires_grad)

    torch.autograd.Function.apply = classmethod(apply_to_torch)  # type: ignore[method-assign, assignment]
    torch.nn.Parameter.__new__ = create_parameter  # type: ignore[method-assign]


_let_functions_take_tensors()
torch_transforms.explain_errors()


class WriteRefused(RuntimeError):
    """A torch function writes into a Tensor inside a gradient or a graph."""


def _written_argument(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Return whether a torch function writes into a Tensor among its arguments, as its name and keywords say."""
    name = getattr(function, "__name__", "")
    is_in_place = (name.endswith("_") and not name.endswith("__")) or (name.startswith("__i") and name not in ("__index__", "__invert__"))
    written = [keywords.get("out")]
    if is_in_place or name == "__setitem__" or keywords.get("inplace") is True:
        written += [*arguments[:1], *(keywords.get(key) for key in ("input", "self"))]
    return any(isinstance(leaf, TensorBase) for leaf in tree.leaves(written))


def _write_refused(function: Callable[..., Any]) -> WriteRefused:
    return WriteRefused(message(
        f"torch's {getattr(function, '__name__', function)}: writes into a Tensor inside a gradient or a graph",
        "a function that returns a new tensor, because the record does not follow this write",
        hint="use MindSpore's function, or write into torchspore.to_torch(x).clone()",
    ))


def _not_dense(t: Any) -> TypeError:
    """Return the error for what Tensor.from_torch does not take."""
    if not isinstance(t, torch.Tensor):
        return TypeError(message(f"Tensor.from_torch({short(t)})", f"a torch tensor, got {type(t).__name__}"))
    kind, hint = (
        ("a nested", "write Tensor.from_torch(torch.nested.to_padded_tensor(t, 0))") if t.is_nested
        else ("a quantized", "write Tensor.from_torch(t.dequantize())") if t.is_quantized
        else ("a sparse", "write Tensor.from_torch(t.to_dense())") if t.layout is not torch.strided
        else ("a meta", "create the tensor on a device that has memory")
    )
    return TypeError(message(f"Tensor.from_torch of {kind} torch tensor", "a dense tensor with elements in memory", hint=hint))


def leave(t: torch.Tensor, how: str) -> torch.Tensor:
    """Return `t` for an export that cannot carry a gradient, such as DLPack. Raises GradientLost if `t` takes part in one."""
    if (t.requires_grad and is_recording()) or torch_private.is_transforming():
        raise GradientLost(message(
            f"{how} inside a gradient of MindSpore", "a value that is detached from it, because the gradient would be lost",
            hint="use torchspore.to_torch and from_torch, which carry the gradient, or ops.stop_gradient(x)",
        ))
    return t


def _foreign_leaf(t: torch.Tensor) -> torch.Tensor | None:
    """Return a leaf of torch.autograd that `t` depends on and no gradient transform of this thread has created, or None."""
    ours = set()
    around = frame()
    while around is not None:
        ours |= around.leaf_ids()
        around = around.outer
    seen, pending = set(), [t.grad_fn if t.grad_fn is not None else t]
    while pending:
        node: Any = pending.pop()
        if isinstance(node, torch.Tensor) or hasattr(node, "variable"):
            leaf: torch.Tensor = node if isinstance(node, torch.Tensor) else node.variable
            if id(leaf) not in ours and (isinstance(leaf, torch.nn.Parameter) or isinstance(node, torch.Tensor)):
                return leaf
        elif node not in seen:
            seen.add(node)
            pending += [following for following, _ in node.next_functions if following is not None]
    return None


def is_name_of_modules(name: str) -> bool:
    """Return whether torch Modules have a public attribute of this name."""
    return not name.startswith("_") and hasattr(torch.nn.Module, name)


def is_torch_module(value: Any) -> bool:
    """Return whether `value` is a torch Module."""
    return isinstance(value, torch.nn.Module)


def as_cell(module: torch.nn.Module) -> Any:
    """Return a Cell of a torch Module. The code that does it is loaded at its first use."""
    return importlib.import_module("torchspore.torch_modules.module_cell").as_cell(module)


def converted_module(value: Any) -> Any:
    """Return a Cell for a torch Module, and another value itself."""
    return as_cell(value) if is_torch_module(value) else value


def converted_data(value: Any) -> Any:
    """Return a data set for torch's loader or data set, and another value itself."""
    if isinstance(value, (torch.utils.data.DataLoader, torch.utils.data.Dataset)):
        return importlib.import_module("torchspore.torch_modules.torch_data").as_dataset(value)
    return value


def converted_metric(value: Any) -> Any:
    """Return a Metric for one of torchmetrics or torcheval, and another value itself."""
    if any(kind.__module__.partition(".")[0] in ("torchmetrics", "torcheval") for kind in type(value).__mro__):
        return importlib.import_module("torchspore.torch_modules.torch_metrics").TorchMetric(value)
    return value
