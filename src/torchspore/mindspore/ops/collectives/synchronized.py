"""Batch normalization over the batches of several processes."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.distributed.comm import groups
from torchspore.distributed.comm.groups import Group
from torchspore.distributed.data_parallel import settings
from torchspore.engine.tensors import change_counters
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


def sharers(name: str) -> Group | None:
    """Return the group of that name if its processes have separate batches; None for a single process or if graphs are split.

    A split graph sees the full batch, so its statistics are those of all devices. Raises ValueError for an unknown group.
    """
    group = groups.find(name)
    is_split = settings.mode() in ("semi_auto_parallel", "auto_parallel")
    return None if group.size == 1 or is_split else group


@op(states=("running_mean", "running_var"))
def synced_batch_norm(
    input_x: T, running_mean: T | None, running_var: T | None, weight: T | None, bias: T | None, momentum: Any, eps: float, group: Any,
) -> T:
    """Normalize over all axes except axis 1 by the values of all processes; update the running values by the fraction `momentum`.

    There is one exchange of means, sums of squares and counts, so batches may differ in length.
    """
    from torchspore.distributed.comm import collectives

    numbers = input_x if input_x.dtype == torch.float64 else input_x.float()
    axes, shape = [axis for axis in range(numbers.ndim) if axis != 1], [1, -1] + [1] * (numbers.ndim - 2)
    count = numbers.numel() // numbers.shape[1]
    mean = numbers.sum(axes) / max(1, count)
    squares = ((numbers - mean.view(shape)) ** 2).sum(axes)
    row = torch.cat([mean, squares, numbers.new_full((1,), float(count))])
    means, sums, counts = collectives.all_gather(row.unsqueeze(0), group).split([len(mean), len(mean), 1], 1)
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    squares = (sums + counts * (means - mean) ** 2).sum(0)
    out = (numbers - mean.view(shape)) * torch.rsqrt(squares / total + eps).view(shape)
    if weight is not None:
        out = out * weight.to(numbers.dtype).view(shape)
    if bias is not None:
        out = out + bias.to(numbers.dtype).view(shape)
    if running_mean is not None and running_var is not None:
        with torch.no_grad():
            for running, now in ((running_mean, mean), (running_var, squares / (total - 1))):
                running.copy_(running * (1 - momentum) + now.to(running.dtype) * momentum)
        change_counters.batch_norms += 1
    return out.to(input_x.dtype)
