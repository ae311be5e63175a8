"""`mindspore.recompute`: one call whose values are computed again in the backward pass instead of being kept."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

_SWITCHES = ("mp_comm_recompute", "parallel_optimizer_comm_recompute", "recompute_slice_activation")


def check_options(use_reentrant: Any, output_recompute: Any, early_stop: Any, context_fn: Any, others: dict[str, Any]) -> None:
    """Raises TypeError or ValueError for an option of `recompute` that is not one."""
    flags = {"use_reentrant": use_reentrant, "output_recompute": output_recompute, "early_stop": early_stop, **others}
    for name, value in flags.items():
        if name in others and name not in _SWITCHES:
            raise ValueError(f"recompute({name}={value!r:.40}): there is no such option.\n\nhint: there are {', '.join(_SWITCHES)}.")
        if not isinstance(value, bool):
            raise TypeError(f"recompute({name}={value!r:.40}): expected a bool, got {type(value).__name__}.")
    if context_fn is not None and not callable(context_fn):
        raise TypeError(f"recompute(context_fn={context_fn!r:.40}): expected a function that gives two contexts.")


def with_kept_values(call: Callable[..., Any], name: str, **rules: Any) -> Callable[..., Any]:
    """`call`, a Cell's, with what it was told of values that are kept for a gradient: computed again (`contexts`), moved out, `hooks`."""
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
    """Calls `block` with the arguments; what it computes inside is not kept for the backward pass but computed again.

    Raises TypeError where `block` is no Cell, unless `use_reentrant` is False: then any function will do.
    """
    from torchspore.engine.autograd.recompute import recomputed

    check_options(use_reentrant, output_recompute, early_stop, context_fn, {})
    if not (hasattr(block, "construct") or (callable(block) and not use_reentrant)):
        raise TypeError(f"recompute({block!r:.40}): expected a Cell.\n\nhint: with use_reentrant=False it takes a function too.")
    return recomputed(block, getattr(block, "__name__", type(block).__name__), context_fn)(*args, **kwargs)
