"""`enable_parallel_optimizer`: optimizer states, gradients and weights that are split among the processes with equal Parameters.

A Parameter whose first axis divides is updated by rows. Each process stores the state of its rows (`level1`), sums the gradients of its
rows (`level2`), and after the step receives the other rows, or stores only its own (`level3`, `sliced`). The numbers equal those of an
optimizer without splitting.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.base.lazy_modules import import_lazily
from torchspore.base.text import message
from torchspore.context.store import STORE
from torchspore.distributed.comm.groups import Group
from torchspore.distributed.data_parallel import fusion, option_effects, settings
from torchspore.distributed.data_parallel.gradient_reduction import is_traced
from torchspore.distributed.data_parallel.sharded_weights import RowShardedWeight
from torchspore.engine.autograd.gradient_listeners import LISTENERS, GradientListener
from torchspore.engine.memory import reserved_zeros
from torchspore.engine.split_layouts.sharded_layout import ShardedLayout
from torchspore.engine.split_layouts.sharded_value import ShardedValue, local_part
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.delayed_values import DelayedValue, is_delayed
from torchspore.engine.tensors.tensor import frame, raw, wrap

if TYPE_CHECKING:
    from torchspore.distributed.comm import operators
    from torchspore.distributed.data_parallel import gradient_scatters
else:
    import_lazily(globals(), "torchspore.distributed.comm.operators", "torchspore.distributed.data_parallel.gradient_scatters")

OPTION = "auto_parallel.enable_parallel_optimizer"
_CONFIG = "auto_parallel.parallel_optimizer_config."
MARK = "_share"
"""The attribute of an optimizer-state Parameter that stores some rows of a full value."""


@dataclass(frozen=True)
class Share:
    """The rows of a Parameter that belong to this process."""

    group: Group
    """The processes that have all rows together."""
    others: Group
    """The processes with the same rows, if there are several such groups."""
    start: int
    rows: int
    full_shape: tuple[int, ...]
    """The shape of all rows."""
    scatters: bool
    """True if gradients are summed for the own rows alone."""
    slices: bool = False
    """True if the weight itself is kept by rows."""

    def of(self, t: torch.Tensor) -> torch.Tensor:
        """Return this process's rows of a full value, in its memory."""
        return t.narrow(0, self.start, self.rows)

    def is_cut(self, t: torch.Tensor) -> bool:
        """Return whether these are the own rows already."""
        return tuple(t.shape) != self.full_shape


NONE: tuple[Share | None, ...] = ()


def is_requested(optimizer: str) -> bool:
    """Return whether the context asks for shares. Raises RuntimeError in a mode in which MindSpore does not have them either."""
    if not STORE.get(OPTION):
        return False
    mode = settings.mode()
    if mode in ("stand_alone", "hybrid_parallel"):
        raise RuntimeError(message(
            f"{optimizer} with enable_parallel_optimizer=True in parallel_mode={mode!r}",
            "parallel_mode 'data_parallel', 'semi_auto_parallel' or 'auto_parallel'",
        ))
    return mode == "data_parallel"


def of(optimizer: str, parameters: Sequence[Any], refusal: str = "") -> tuple[Share | None, ...]:
    """Return a share for each Parameter that is split; empty if none is. `refusal` states why an optimizer cannot work on rows."""
    if not is_requested(optimizer):
        return NONE
    from torchspore.distributed.comm import groups

    options = _sharding_options()
    if settings.processes() == 1:
        option_effects.report_shares(optimizer, parameters, NONE, "there is one process")
        return NONE
    if refusal:
        option_effects.report_shares(optimizer, parameters, NONE, refusal)
        return NONE
    settings.check()
    size = _size(groups.size(), options.largest_group)
    position, block = groups.rank() % size, groups.rank() // size
    group = groups.of_ranks(tuple(range(block * size, (block + 1) * size)))
    others = groups.of_ranks(tuple(range(position, groups.size(), size)))
    shares = tuple(_share(parameter, group, others, position, options) for parameter in parameters)
    option_effects.report_shares(optimizer, parameters, shares, "")
    return shares if any(shares) else NONE


@dataclass(frozen=True)
class _ShardingOptions:
    """The members of `parallel_optimizer_config`."""

    smallest: int
    """The smallest number of bytes for which a Parameter is split."""
    level: str
    largest_group: int
    cuts_sums: bool


def _sharding_options() -> _ShardingOptions:
    threshold = 1024 * int(STORE.get(_CONFIG + "parallel_optimizer_threshold"))
    size = int(STORE.get("auto_parallel.optimizer_weight_shard_size"))
    return _ShardingOptions(threshold, STORE.get(_CONFIG + "optimizer_level"), size, STORE.get(_CONFIG + "gradient_accumulation_shard"))


def _size(processes: int, limit: int) -> int:
    """Return how many processes share a Parameter: all, or as many as `optimizer_weight_shard_size` allows."""
    if limit < 1 or limit >= processes:
        return processes
    return max(size for size in range(1, limit + 1) if processes % size == 0)


def _share(parameter: Any, group: Group, others: Group, position: int, options: _ShardingOptions) -> Share | None:
    t = parameter._t
    if t.nbytes < options.smallest or t.ndim == 0 or t.shape[0] % group.size or group.size == 1:
        return None
    if not parameter.parallel_optimizer or parameter.layerwise_parallel:
        return None
    rows = t.shape[0] // group.size
    return Share(
        group, others, position * rows, rows, tuple(t.shape), options.cuts_sums or options.level != "level1", options.level == "level3",
    )


def cut_weights(parameters: Sequence[Any], shares: Sequence[Share | None]) -> None:
    """Reduce weights that are stored as rows to this process's rows."""
    for parameter, share in zip(parameters, shares):
        if share is not None and share.slices and not isinstance(parameter._t, RowShardedWeight):
            parameter._t = RowShardedWeight(wrap(share.of(parameter._t).clone()), share)
            change_counters.rebinds += 1


def cut_state(state: Any, share: Share | None) -> Any:
    """A Parameter of state, with the own rows alone."""
    if share is not None:
        state._t = share.of(state._t).clone()
        state.__dict__[MARK] = share
    return state


def cut_moment(state: Any, share: Share | None) -> Any:
    """A Parameter of an optimizer's state, with the own rows alone; its sum, say, is refused outside of the optimizer (`at_hand`)."""
    if share is not None:
        cut = ShardedLayout((share.group.size,), (0, *(-1,) * (len(share.full_shape) - 1)), share.full_shape)
        state._t = ShardedValue(cut_state(state, share)._t, cut)
    return state


def reserve_moment(state: Any) -> None:
    """Delay the memory of a Parameter of zeros until it is written, if a graph is going to split it (`distributed.shard`).

    A graph splits it when the first step is compiled. The full state of all Parameters would be in memory until then.
    """
    if STORE.get(OPTION) and settings.mode() in ("semi_auto_parallel", "auto_parallel") and settings.processes() > 1:
        state._t = reserved_zeros.zeros_like(state._t)


@contextmanager
def at_hand(states: Sequence[Any]) -> Iterator[None]:
    """A block in which an optimizer computes with the own rows of its state."""
    stored = [(state, state._t) for state in states if isinstance(state._t, ShardedValue)]
    for state, t in stored:
        state._t = t.part
    try:
        yield
    finally:
        for state, t in stored:
            state._t = t


# ---- an update by rows


class Update:
    """A step of an optimizer for some Parameters: its operands, and the gather of the results."""

    def __init__(self, parameters: Sequence[Any], gradients: Sequence[torch.Tensor], shares: Sequence[Share | None]) -> None:
        self._cut: list[tuple[torch.Tensor, Share]] = []
        self.parameters = [self._rows(parameter, share) for parameter, share in zip(parameters, shares)]
        self.gradients = [
            g if share is None else local_rows(g, share) for g, share in zip(gradients, shares)
        ]

    def _rows(self, parameter: Any, share: Share | None) -> torch.Tensor:
        if isinstance(parameter._t, RowShardedWeight):
            return raw(parameter._t.rows)
        t = raw(parameter)
        if share is None:
            return t
        self._cut.append((t, share))
        return share.of(t)

    def gather(self) -> None:
        """Send each process's rows to all others."""
        kinds: dict[Any, list[tuple[torch.Tensor, Share]]] = {}
        is_in_place = not is_traced()
        waits: list[Callable[[], None]] = []
        for full, share in self._cut:
            if is_in_place and full.nbytes >= _WORTH and full.is_contiguous():
                if len(waits) == _MOST_GATHERS:
                    waits.pop(0)()
                waits.append(operators.start_all_gather(full, share.of(full), share.group.key))
            else:
                kinds.setdefault(full.dtype, []).append((full, share))
        for pairs in kinds.values():
            for indices in fusion.by_size([full.nbytes for full, _ in pairs], _limit()):
                _gather([pairs[index] for index in indices])
        for wait in waits:
            wait()


_LARGEST = 4 * fusion.MEGABYTE
_WORTH = fusion.MEGABYTE // 4
"""The smallest number of bytes for which a Parameter travels separately, directly to its memory."""
_MOST_GATHERS = 2
"""The number of such messages that run at the same time."""


def _limit() -> int:
    """Return the bytes of a message of new rows: the context's limit, but no more than its memory is worth."""
    return min(fusion.rule("allgather").limit, _LARGEST)


def _gather(pairs: list[tuple[torch.Tensor, Share]]) -> None:
    from torchspore.distributed.comm import collectives

    parts = [share.of(full).reshape(-1) for full, share in pairs]
    row = parts[0] if len(parts) == 1 else torch.cat(parts)
    group = pairs[0][1].group
    columns = collectives.all_gather(row, group).view(group.size, -1).split([t.numel() for t in parts], 1)
    for (full, _), column in zip(pairs, columns):
        full.copy_(column.reshape(full.shape))


def length(t: torch.Tensor, share: Share | None) -> torch.Tensor:
    """The length of a value of which this process has the own rows, over all rows."""
    if share is None:
        return t.norm()
    from torchspore.distributed.comm import collectives

    return collectives.all_reduce((t * t).sum(), "sum", share.group).sqrt()


def full_value(t: torch.Tensor, share: Share) -> torch.Tensor:
    """Return all rows of a value of which each process has some; every process of the group must make this call."""
    from torchspore.distributed.comm import collectives

    return collectives.all_gather(local_part(t).detach(), share.group)


def local_rows(t: torch.Tensor, share: Share) -> torch.Tensor:
    """Return this process's rows of a full value; rows are returned unchanged."""
    if isinstance(t, DelayedValue) and is_delayed(t) and not share.is_cut(t):
        rows = slice(share.start, share.start + share.rows)
        return t.initial.draw([rows, *(slice(0, size) for size in share.full_shape[1:])])
    return t if share.is_cut(t) else share.of(t)


# ---- gradients by rows


class _Scattered(torch.autograd.Function):
    """The full weight as a function of this process's rows: the incoming gradient is summed over the processes for these rows alone."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, weight: torch.Tensor, share: Share, step: _Step) -> torch.Tensor:
        ctx.share, ctx.step, ctx.leaf = share, step, rows
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        from torchspore.distributed.comm import collectives

        share: Share = ctx.share
        step: _Step = ctx.step
        if type(gradients[0]) is torch.Tensor and not is_traced() and not torch.is_grad_enabled():
            return step.scatters.add(gradients[0], ctx.leaf, share.group, share.others), None, None, None
        rows = collectives.reduce_scatter(gradients[0].float(), "sum", share.group)
        if share.others.size > 1:
            rows = collectives.all_reduce(rows, "sum", share.others)
        if step.factor is not None:
            rows = rows * step.factor
        return rows.to(gradients[0].dtype), None, None, None


class _Step:
    """A step that runs: by the ids of weights their shares, what sums are multiplied by, and the messages of its backward pass."""

    def __init__(self, shares: dict[int, Share], factor: float | None) -> None:
        self.shares, self.factor = shares, factor
        self.scatters = gradient_scatters.Scatters(factor)


_steps: list[_Step] = []
"""The steps that run; the last one is innermost."""


@contextmanager
def scattering(weights: Sequence[Any], shares: Sequence[Share | None], factor: float | None) -> Iterator[None]:
    """Compute gradients of these weights in the block for this process's rows, summed over the processes."""
    scattered = {id(weight): share for weight, share in zip(weights, shares) if share is not None and share.scatters}
    if not scattered:
        yield
        return
    if _LISTENER not in LISTENERS:
        LISTENERS.append(_LISTENER)
    _steps.append(_Step(scattered, factor))
    try:
        yield
    finally:
        _steps.pop().scatters.drop()


class _Listener(GradientListener):
    """Computes the gradients of a scattered weight for this process's rows."""

    def shard_leaf(self, weight: Any) -> torch.Tensor | None:
        share = _steps[-1].shares.get(id(weight)) if _steps else None
        if share is None:
            return None
        rows = raw(weight._t.rows) if isinstance(weight._t, RowShardedWeight) else share.of(raw(weight))
        return None if rows.requires_grad else rows.detach().requires_grad_()

    def must_replace_early(self) -> bool:
        """Return whether a graph is captured that may have branches and loops."""
        around = frame()
        while around is not None:
            watch = getattr(around, "watch", None)
            if watch is not None:
                return watch.converter is not None
            around = around.outer
        return False

    def replace_weight(self, weight: Any, leaf: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        step = _steps[-1]
        with torch.enable_grad():
            return _Scattered.apply(leaf, value.detach(), step.shares[id(weight)], step)


_LISTENER = _Listener()
