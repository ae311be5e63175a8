"""A last layer with normalized inputs and weights, and a network in which it replaces the last dense layer."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.mindspore import ops
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.basic import Dense
from torchspore.public_names import missing


class CommonHeadLastFN(Cell):
    """A dense layer on vectors of length 1: `multiplier * (norm(x) @ norm(weight).T + bias)`; `multiplier` (1,) is learned, initially 1.

    x (N, in_channels) -> (N, out_channels).
    """

    def __init__(
        self, in_channels: int, out_channels: int, weight_init: Any = "normal", bias_init: Any = "zeros", has_bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = Parameter(initializer(weight_init, [out_channels, in_channels]), name="weight")
        self.x_norm, self.w_norm = ops.L2Normalize(axis=1), ops.L2Normalize(axis=1)
        self.multiplier = Parameter(initializer("ones", [1], mstype.float32), name="multiplier")
        self.has_bias = has_bias
        if has_bias:
            self.bias = Parameter(initializer(bias_init, [out_channels]), name="bias")

    def construct(self, x: Any) -> Any:
        """Computes the layer."""
        product = ops.matmul(self.x_norm(x), self.w_norm(self.weight).T)
        return self.multiplier * (product + self.bias if self.has_bias else product)


class LessBN(Cell):
    """`network`; with `fn_flag` the last `nn.Dense` of each Cell is replaced by a `CommonHeadLastFN` without bias.

    The batch norms that MindSpore's graphs remove in residual blocks are computed here, and `explain` reports it. Raises TypeError unless
    `network` is a Cell.
    """

    def __init__(self, network: Cell, fn_flag: bool = False) -> None:
        super().__init__()
        if not isinstance(network, Cell):
            raise TypeError(message(f"LessBN({short(network)})", f"a Cell, got {type(network).__name__}"))
        self.network = network
        if "less_bn" in network.get_flags():
            return
        network.set_boost("less_bn")
        network.update_cell_prefix()
        if fn_flag:
            _replace_last_dense(network)
        effects.note("training", "LessBN: every batch norm is computed; MindSpore's graphs leave out those before a residual sum")

    def construct(self, *inputs: Any) -> Any:
        """Returns the network's output."""
        return self.network(*inputs)


def _replace_last_dense(cell: Cell) -> None:
    """Replace the last dense layer among the Cells of `cell`, and of each Cell inside it."""
    last = None
    for name, inner in cell.name_cells().items():
        if isinstance(inner, Dense):
            last = (name, inner)
        else:
            _replace_last_dense(inner)
    if last is not None:
        name, dense = last
        head = CommonHeadLastFN(dense.in_channels, dense.out_channels, dense.weight, has_bias=False)
        head.update_parameters_name(f"{dense.param_prefix}.")
        cell.insert_child_to_cell(name, head)


__getattr__ = missing(__name__)
