"""Normalization as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_counts
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.process_groups import GlobalComm, get_group_size
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.mint.nn import functional as F
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.normalization import LayerNormExt
from torchspore.mindspore.ops.collectives import synchronized
from torchspore.mindspore.ops.declaration.limits import checked, real


def _filled(value: str, shape: Any, name: str, dtype: Any, trains: bool = True) -> Parameter:
    return Parameter(initializer(value, shape, dtype or dtypes.float32), name=name, requires_grad=trains)


class _BatchNorm(Cell):
    """Normalizes each channel (axis 1) by the batch while training or without running values, else by the running values.

    `momentum` is the fraction by which the running values move towards the batch's; None makes them the mean of all batches.
    """

    _ndims_: tuple[int, ...] = (4,)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_counts(type(self).__name__, num_features=num_features)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = _filled("ones", [num_features], "weight", dtype) if affine else None
        self.bias = _filled("zeros", [num_features], "bias", dtype) if affine else None
        self.running_mean = _filled("zeros", [num_features], "running_mean", dtype, False) if track_running_stats else None
        self.running_var = _filled("ones", [num_features], "running_var", dtype, False) if track_running_stats else None
        self.num_batches_tracked = (
            Parameter(Tensor(0, dtypes.int64), name="num_batches_tracked", requires_grad=False) if track_running_stats else None
        )

    def construct(self, input: Any) -> Any:
        """The normalized input."""
        if input.ndim not in self._ndims_:
            expected_ranks = " or ".join(map(str, self._ndims_))
            raise ValueError(f"{type(self).__name__}: expected an input of {expected_ranks} axes, got shape {input.shape}.")
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            ops.assign_add(self.num_batches_tracked, 1)
            if self.momentum is None:
                share = 1.0 / ops.cast(self.num_batches_tracked, dtypes.float32)
        by_batch = self.training or not self.track_running_stats
        return self._normalized_(input, by_batch, share)

    def _normalized_(self, input: Any, by_batch: bool, share: Any) -> Any:
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, by_batch, share, self.eps)

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (N, C) or (N, C, L)."""

    _ndims_ = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of images (N, C, H, W)."""


class BatchNorm3d(_BatchNorm):
    """Batch normalization of volumes (N, C, D, H, W)."""

    _ndims_ = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of all processes of `process_group` (None: all processes), in training."""

    _ndims_ = (2, 3, 4, 5)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, track_running_stats: bool = True,
        process_group: str | None = None, dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)
        self.process_group = process_group or GlobalComm.WORLD_COMM_GROUP
        self.world_size = get_group_size(self.process_group)

    def _normalized_(self, input: Any, by_batch: bool, share: Any) -> Any:
        group = synchronized.sharers(self.process_group) if self.training else None
        if group is None:
            return super()._normalized_(input, by_batch, share)
        return synchronized.synced_batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, share, self.eps, group,
        )


class GroupNorm(Cell):
    """Normalizes each of `num_groups` groups of channels (axis 1); `affine` sets whether weight and bias exist."""

    @checked(eps=real())
    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, dtype: Any = None) -> None:
        super().__init__()
        check_counts("GroupNorm", num_groups=num_groups, num_channels=num_channels)
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm(num_groups={num_groups}): expected a divisor of num_channels={num_channels}.")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = _filled("ones", [num_channels], "weight", dtype, affine)
        self.bias = _filled("zeros", [num_channels], "bias", dtype, affine)

    def construct(self, input: Any) -> Any:
        """The normalized input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}, eps={self.eps}, affine={self.affine}"


class LayerNorm(LayerNormExt):
    """Normalizes over the last axes, of the lengths `normalized_shape`; the types of the input and of the weights must agree."""

    def construct(self, input: Any) -> Any:
        """The normalized input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)
