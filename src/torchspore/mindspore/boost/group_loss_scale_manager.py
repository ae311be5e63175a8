"""`GroupLossScaleManager`: a separate loss scale for each group of layers, which adapts to that group's overflows."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore import ops
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell

LOWER, HIGHER = 2**-0.5, 2 ** (1 / 1000)
"""The factors of a group's scale after an overflow in it, and after a step without one."""


class _ScaledBackward(Cell):
    """Returns `x` unchanged; its gradient is multiplied by `ratio`."""

    def construct(self, x: Any, _: Any) -> Any:
        """Returns x."""
        return x

    def bprop(self, _: Any, ratio: Any, __: Any, dout: Any) -> tuple[Any, Any]:
        """Returns the gradient times `ratio`, in its dtype."""
        return dout * ratio.astype(dout.dtype), ops.zeros_like(ratio)


class GroupLossScaleManager(Cell):
    """Scales the gradients of groups of layers by separate factors: a network calls it between the groups.

    `loss_scale_groups` are lists of Parameters, in the network's order; `init_loss_scale` is the initial scale of all groups, or a list
    with one for each. A network calls `manager(x, 0, 1)` on its input, `manager(x, i, i + 1)` after group i and `manager(x, n, n + 1)`
    after the last one: in the backward pass the gradient enters group i with its scale. It acts with
    `Model(loss_scale_manager=manager, boost_level='O1', boost_config_dict={'boost': {'mode': 'manual', 'loss_scale_group': True}})`.
    """

    def __init__(self, init_loss_scale: Any, loss_scale_groups: list[Any]) -> None:
        super().__init__()
        self._loss_scale = init_loss_scale
        self.loss_scale_groups = loss_scale_groups
        self.loss_scale_number = 0
        self.layer_loss_scale: Any = None
        self.dynamic_loss_scale: Any = None

    def set_loss_scale_status(self, loss_scale_number: int, init_loss_scale: Any) -> None:
        """Creates the scales of `loss_scale_number` groups, and of the layers before and after them, which stay 1."""
        if isinstance(init_loss_scale, (list, tuple)) and len(init_loss_scale) != loss_scale_number:
            call_text = f"GroupLossScaleManager(init_loss_scale={short(init_loss_scale)})"
            raise ValueError(message(call_text, f"a number, or one for each of the {loss_scale_number} groups"))
        self.loss_scale_number = loss_scale_number
        scales = list(init_loss_scale) if isinstance(init_loss_scale, (list, tuple)) else [init_loss_scale] * loss_scale_number
        self.layer_loss_scale = _ScaledBackward()
        self.dynamic_loss_scale = ParameterTuple(
            Parameter(Tensor(float(value), mstype.float32), name=f"layer_loss_scale_{index}", requires_grad=False)
            for index, value in enumerate([1.0, *scales, 1.0])
        )

    def update_loss_scale_status(self, layer: int, update_ratio: Any) -> Any:
        """Multiplies the scale of group `layer`, counted from 0, by `update_ratio`; returns the new one."""
        scale = self.dynamic_loss_scale[layer + 1]
        ops.assign(scale, scale * update_ratio)
        return scale * 1.0

    def construct(self, x: Any, layer1: int, layer2: int) -> Any:
        """Returns `x`, whose gradient is multiplied by the scale of `layer1` divided by that of `layer2`; unchanged before a training."""
        if self.layer_loss_scale is None:
            return x
        return self.layer_loss_scale(x, self.dynamic_loss_scale[layer1] / self.dynamic_loss_scale[layer2])

    def get_loss_scale(self) -> Any:
        """Returns the initial scale or scales."""
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Returns True: a step that overflows is skipped."""
        return True

    def get_update_cell(self) -> GroupLossScaleManager:
        """Returns itself."""
        return self


def groups_of(parameters: Any, manager: GroupLossScaleManager) -> list[int]:
    """Return the group number of each of an optimizer's Parameters. Raises ValueError for one in no group, or in two."""
    numbers = []
    for parameter in parameters:
        inside = [number for number, group in enumerate(manager.loss_scale_groups) if any(member is parameter for member in group)]
        if len(inside) != 1:
            subject = f"GroupLossScaleManager(loss_scale_groups=...): {parameter.name!r} stands in {len(inside)} of its groups"
            raise ValueError(message(subject, "each Parameter of the optimizer in one", hint="set loss_scale_groups before the Model"))
        numbers.append(inside[0])
    return numbers
