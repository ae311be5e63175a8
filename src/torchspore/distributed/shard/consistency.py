"""Checks that all processes agree before a graph is split over them: on Parameters, which each process created, and on random numbers.

MindSpore creates equal parts from equal seeds. Here the values of process 0 replace differing ones.
"""
from __future__ import annotations

import weakref
import zlib
from collections.abc import Sequence
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE
from torchspore.distributed.comm import agreement, collectives, groups, object_collectives
from torchspore.distributed.data_parallel import settings
from torchspore.engine.random import generators
from torchspore.engine.split_layouts.sharded_layout import sharded_layout_of
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.delayed_values import DelayedValue, is_delayed

_alike: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""The ids of Parameters that are equal on all processes."""


def report_context() -> None:
    """Report the current values of `set_auto_parallel_context` for the comparison between processes; `init()` compared earlier values."""
    for key in agreement.PARALLEL:
        setting = STORE.source(key)[1]
        line = None if setting is None else setting.where
        groups.report_terms(None, f"set_auto_parallel_context({OPTIONS[key].name})", agreement.describe_value(STORE.get(key)), line)


def agree(inputs: Sequence[Any]) -> None:
    """Copy the unsplit Parameters among the inputs of a graph, and the state of MindSpore's generator, from process 0 to all others.

    Every process must make this call. Raises ValueError if the Parameters of the processes differ in name, shape or dtype: their messages
    would have different lengths, at which gloo ends the process.
    """
    named_inputs = [item for item in inputs if hasattr(item, "name") and hasattr(item, "_t")]
    forms = [
        (str(item.name), tuple(item._t.shape) if (layout := sharded_layout_of(item)) is None else layout.shape, str(item._t.dtype))
        for item in named_inputs
    ]
    first = ", ".join(name for name, _, _ in forms[:2]) + (", .." if len(forms) > 2 else "")
    check_equal(f"a call with {len(forms)} Parameters ({first})", repr(sorted(forms)))
    new = [item for item in named_inputs if sharded_layout_of(item) is None and id(item) not in _alike]
    if not new:
        return
    to_compare, changed = _agree_on_delayed(new)
    state = generators.current_state()
    world = groups.world()
    differs = _differ([*(_digest(item._t) for item in to_compare), _digest(state)])
    unequal = [item for item, differ in zip(to_compare, differs) if differ]
    for item in unequal:
        with torch.no_grad():
            item._t.copy_(collectives.broadcast(item._t.detach().contiguous(), 0, world))
    if differs[-1]:
        generators.go_on_from(collectives.broadcast(state, 0, world))
    changed += unequal
    if changed:
        names = ", ".join(str(item.name) for item in changed[:3]) + (", .." if len(changed) > 3 else "")
        effects.note("distribution", f"{len(changed)} Parameters ({names}) differed between processes: those of process 0 are used")
    for item in new:
        _alike[id(item)] = item


def _agree_on_delayed(parameters: list[Any]) -> tuple[list[Any], list[Any]]:
    """Give delayed values the description that process 0 has. Return the Parameters that are not delayed everywhere, and those changed.

    A Parameter whose values one process has drawn already, for example to print them, must be compared by its values.
    """
    if not (settings.is_set("init_param_in_compile") and STORE.get("auto_parallel.init_param_in_compile")):
        return parameters, []
    drawn = torch.tensor([not is_delayed(item._t) for item in parameters], dtype=torch.int64)
    drawn_anywhere = collectives.all_reduce(drawn, "max", groups.world()).tolist()
    delayed = [item for item, is_drawn in zip(parameters, drawn_anywhere) if not is_drawn]
    differs = _differ([zlib.crc32(repr(item._t.initial).encode()) for item in delayed])
    changed = [item for item, differ in zip(delayed, differs) if differ]
    if changed:
        descriptions = object_collectives.broadcast([item._t.initial for item in changed], 0, groups.world())
        for item, description in zip(changed, descriptions):
            item._t = DelayedValue(description)
            item._t.belongs_to(item)
        change_counters.rebinds += 1
    return [item for item, is_drawn in zip(parameters, drawn_anywhere) if is_drawn], changed


def check_equal(what: str, text: str) -> None:
    """Raise ValueError if this text differs from that of process 0. Every process must make this call."""
    if _differ([zlib.crc32(text.encode())])[0]:
        raise ValueError(message(f"{what} that differs between processes", "one program with inputs of equal shapes in all processes"))


def _differ(digests: list[int]) -> list[bool]:
    """Return the positions at which some process has another number than process 0."""
    local = torch.tensor(digests, dtype=torch.int64)
    first = collectives.broadcast(local, 0, groups.world())
    return [bool(differs) for differs in collectives.all_reduce((local != first).to(torch.int64), "max", groups.world())]


def _digest(t: torch.Tensor) -> int:
    flat = t.detach().cpu().contiguous().reshape(-1)
    return zlib.crc32(flat.view(torch.uint8).numpy().data) if flat.numel() else 0
