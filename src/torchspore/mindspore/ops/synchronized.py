"""Batch normalisation by the batches of several processes."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.distributed.comm import groups
from torchspore.distributed.comm.groups import Group
from torchspore.distributed.parallel import settings
from torchspore.engine.core import change_counters
from torchspore.mindspore.ops.declare import op

T = torch.Tensor


def sharers(name: str) -> Group | None:
    """The group of that name, where its processes have batches of their own; None where there is one, or where graphs are split.

    In a graph that is split the batch is whole, so that its statistics are those of all devices. Raises ValueError for no such group.
    """
    group = groups.find(name)
    is_split = settings.mode() in ("semi_auto_parallel", "auto_parallel")
    return None if group.size == 1 or is_split else group


@op(states=("running_mean", "running_var"))
def synced_batch_norm(
    input_x: T, running_mean: T | None, running_var: T | None, weight: T | None, bias: T | None, momentum: Any, eps: float, group: Any,
) -> T:
    """Normalised over all axes but axis 1 by the values of all processes; the running values take in the share `momentum` of those.

    One exchange of means, sums of squares and counts, so that batches may differ in length.
    """
    from torchspore.distributed.comm import collectives

    own = input_x if input_x.dtype == torch.float64 else input_x.float()
    axes, shape = [axis for axis in range(own.ndim) if axis != 1], [1, -1] + [1] * (own.ndim - 2)
    count = own.numel() // own.shape[1]
    mean = own.sum(axes) / max(1, count)
    squares = ((own - mean.view(shape)) ** 2).sum(axes)
    row = torch.cat([mean, squares, own.new_full((1,), float(count))])
    means, sums, counts = collectives.all_gather(row.unsqueeze(0), group).split([len(mean), len(mean), 1], 1)
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    squares = (sums + counts * (means - mean) ** 2).sum(0)
    out = (own - mean.view(shape)) * torch.rsqrt(squares / total + eps).view(shape)
    if weight is not None:
        out = out * weight.to(own.dtype).view(shape)
    if bias is not None:
        out = out + bias.to(own.dtype).view(shape)
    if running_mean is not None and running_var is not None:
        with torch.no_grad():
            for running, now in ((running_mean, mean), (running_var, squares / (total - 1))):
                running.copy_(running * (1 - momentum) + now.to(running.dtype) * momentum)
        change_counters.batch_norms += 1
    return out.to(input_x.dtype)
