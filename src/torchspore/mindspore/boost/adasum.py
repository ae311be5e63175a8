"""Adaptive sums of the servers' weight changes: the mean of two parallel changes, the sum of two orthogonal ones."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message
from torchspore.mindspore import ops
from torchspore.mindspore.common.process_groups import create_group
from torchspore.mindspore.nn.cell import Cell
from torchspore.public_names import missing

_SMALLEST = 1e-12


class AdaSum(Cell):
    """Called with (changes, parameters, old parameters) it writes `old - sum` into each Parameter and returns the Parameters.

    The sum is over the processes with the same index in each of `group_number` servers of `device_number` devices, pairwise: for a and b
    it is (1 - a.b / 2 a.a) a + (1 - a.b / 2 b.b) b; for a Parameter with one element the mean. All processes must call it
    (arXiv 2006.02924). Raises ValueError if the number of servers is not a power of two.
    """

    def __init__(self, rank: int, device_number: int, group_number: int, parameter_tuple: Any) -> None:
        super().__init__()
        if group_number < 1 or group_number & (group_number - 1):
            raise ValueError(message(f"AdaSum(group_number={group_number})", "1, 2, 4, 8 or another power of two"))
        self.rank, self.device_number, self.group_number = rank, device_number, group_number
        self.parameter_tuple = parameter_tuple
        self.calc_times = group_number.bit_length() - 1
        self._pairs = []
        server, index = divmod(rank, device_number)
        for step in range(self.calc_times):
            other = server ^ (1 << step)
            # Every process creates every group, in the same order, as groups require.
            for low in (server_number for server_number in range(group_number) if not server_number & (1 << step)):
                for at in range(device_number):
                    members = [low * device_number + at, (low | (1 << step)) * device_number + at]
                    create_group(f"adasum_{step}_{members[0]}_{members[1]}", members)
            pair = sorted((server * device_number + index, other * device_number + index))
            self._pairs.append(ops.AllGather(group=f"adasum_{step}_{pair[0]}_{pair[1]}"))

    def construct(self, delta_weights: Any, parameters: Any, old_parameters: Any) -> Any:
        """Sum over servers."""
        changes = list(delta_weights)
        for gather in self._pairs:
            changes = [_joined(gather, change) for change in changes]
        for parameter, old, change in zip(parameters, old_parameters, changes):
            ops.assign(parameter, old - change)
        return parameters


def _joined(gather: Any, change: Any) -> Any:
    """Return the sum of this server's change and its partner's."""
    low, high = (part.reshape(change.shape) for part in ops.split(gather(change.reshape((1, -1))), 1))
    if change.size == 1:
        return (low + high) / 2
    between = (low * high).sum() + _SMALLEST
    return (1 - between / (2 * ((low * low).sum() + _SMALLEST))) * low + (1 - between / (2 * ((high * high).sum() + _SMALLEST))) * high


__getattr__ = missing(__name__)
