"""`mindspore.recompute`: a call whose values are recomputed in the backward pass instead of being stored."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.base.text import message, with_type

_SWITCHES = ("mp_comm_recompute", "parallel_optimizer_comm_recompute", "recompute_slice_activation")


def check_options(use_reentrant: Any, output_recompute: Any, early_stop: Any, context_fn: Any, others: dict[str, Any]) -> None:
    """Raises TypeError or ValueError for a wrong option of `recompute`."""
    flags = {"use_reentrant": use_reentrant, "output_recompute": output_recompute, "early_stop": early_stop, **others}
    for name, value in flags.items():
        if name in others and name not in _SWITCHES:
            raise ValueError(f"recompute({name}={value!r:.40}): this option does not exist.\n\nhint: there are {', '.join(_SWITCHES)}.")
        if not isinstance(value, bool):
            raise TypeError(message(f"recompute({name}={value!r:.40})", with_type("a bool", value)))
    if context_fn is not None and not callable(context_fn):
        raise TypeError(f"recompute(context_fn={context_fn!r:.40}): expected a function that returns two contexts.")


def with_saved_value_rules(call: Callable[..., Any], name: str, **rules: Any) -> Callable[..., Any]:
    """Wrap the call of a Cell with its rules for saved values: recomputation (`contexts`), offloading, `hooks`."""
    if "contexts" in rules:
        from torchspore.engine.autograd.recompute import recomputed

        call = recomputed(call, name, rules["contexts"])
    if "offload" in rules:
        from torchspore.engine.autograd.cell_offload import offloaded

        call = offloaded(call, rules["offload"])
    if "hooks" in rules:
        from torchspore.engine.autograd.saved_tensor_hooks import hooked

        call = hooked(call, *rules["hooks"])
    return call


def recompute(
    block: Any, *args: Any, use_reentrant: bool = True, output_recompute: bool = False, early_stop: bool = True, context_fn: Any = None,
    **kwargs: Any,
) -> Any:
    """Call `block` with the arguments; values computed inside are recomputed in the backward pass instead of being stored.

    Raises TypeError if `block` is not a Cell, unless `use_reentrant` is False, which allows any function.
    """
    from torchspore.engine.autograd.recompute import recomputed

    check_options(use_reentrant, output_recompute, early_stop, context_fn, {})
    if not (hasattr(block, "construct") or (callable(block) and not use_reentrant)):
        raise TypeError(f"recompute({block!r:.40}): expected a Cell.\n\nhint: with use_reentrant=False it takes a function too.")
    return recomputed(block, getattr(block, "__name__", type(block).__name__), context_fn)(*args, **kwargs)
