"""Activation functions as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_counts
from torchspore.mindspore import ops
from torchspore.mindspore.mint.nn import functional as F
from torchspore.mindspore.mint.nn.layer.shared import REQUIRED, layer
from torchspore.mindspore.nn.layer.activation import PReLUExt

ELU = layer("ELU", F.elu, alpha=1.0, inplace=False)
GELU = layer("GELU", F.gelu, approximate="none")
GLU = layer("GLU", F.glu, dim=-1)
Hardshrink = layer("Hardshrink", F.hardshrink, lambd=0.5)
Hardsigmoid = layer("Hardsigmoid", F.hardsigmoid)
Hardswish = layer("Hardswish", F.hardswish)
Hardtanh = layer("Hardtanh", F.hardtanh, min_val=-1.0, max_val=1.0, inplace=False)
LogSigmoid = layer("LogSigmoid", F.logsigmoid)
LogSoftmax = layer("LogSoftmax", F.log_softmax, dim=None)
Mish = layer("Mish", F.mish)
ReLU = layer("ReLU", F.relu)
ReLU6 = layer("ReLU6", F.relu6, inplace=False)
SELU = layer("SELU", F.selu)
SiLU = layer("SiLU", F.silu, inplace=False)
Sigmoid = layer("Sigmoid", ops.sigmoid)
Softmax = layer("Softmax", F.softmax, dim=None)
Softshrink = layer("Softshrink", F.softshrink, lambd=0.5)
Tanh = layer("Tanh", ops.tanh)
Threshold = layer("Threshold", F.threshold, threshold=REQUIRED, value=REQUIRED, inplace=False)


class PReLU(PReLUExt):
    """x where positive, else x times `weight`: one number, or one for each of `num_parameters` channels (axis 1)."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        check_counts("PReLU", num_parameters=num_parameters)
        super().__init__(num_parameters, init, dtype)

    def construct(self, input: Any) -> Any:
        """x where positive, else x times the weight of its channel."""
        return F.prelu(input, self.weight)
