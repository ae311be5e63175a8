"""Normalization as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_int_type, is_int
from torchspore.base.frames import line_prefix
from torchspore.base.text import message, short
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.process_groups import GlobalComm, create_group, get_group_size, get_rank
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.parts import Part
from torchspore.mindspore.ops.collectives import synchronized
from torchspore.mindspore.ops.declaration.indices import normalized_axis
from torchspore.mindspore.ops.declaration.kind_checks import check_kinds
from torchspore.mindspore.ops.declaration.limits import check_lengths, check_real, check_words
from torchspore.mindspore.ops.layers import normalization


class _BatchNorm(Cell):
    """Normalizes over all axes except axis 1.

    `momentum` is the fraction of the running values that is *kept*. `use_batch_statistics` None means the batch's values while training,
    else the running ones.
    """

    _ndims_: tuple[int, ...] = (4,)
    bn_train = Part(lambda cell: ops.BatchNorm(True, float(cell.eps), float(1 - cell.momentum), cell.format))
    bn_infer = Part(lambda cell: ops.BatchNorm(False, float(cell.eps), float(1 - cell.momentum), cell.format))

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros", moving_var_init: Any = "ones", use_batch_statistics: bool | None = None, data_format: str = "NCHW",
        dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_int_type(name, "num_features", num_features)
        if num_features < 1:
            raise ValueError(message(f"{name}(num_features={num_features})", "an int from 1 on"))
        if not 0 <= momentum <= 1:
            raise ValueError(f"{name}(momentum={momentum}): expected a number from 0 to 1.")
        check_kinds(name, "float", eps=eps)
        if not 0 < eps <= 1:
            raise ValueError(f"{name}(eps={eps}): expected a number above 0 up to 1.")
        check_words(name, "data_format", data_format, ("NCHW", "NHWC"))
        if use_batch_statistics is not None and not isinstance(use_batch_statistics, bool):
            raise ValueError(f"{name}(use_batch_statistics={short(use_batch_statistics)}): expected True, False or None.")
        self.num_features, self.eps = num_features, eps
        self.momentum, self.use_batch_statistics, self.format = momentum, use_batch_statistics, data_format
        self.moving_mean = Parameter(initializer(moving_mean_init, num_features, dtype), name="mean", requires_grad=False)
        self.moving_variance = Parameter(initializer(moving_var_init, num_features, dtype), name="variance", requires_grad=False)
        self.gamma = Parameter(initializer(gamma_init, num_features, dtype), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, num_features, dtype), name="beta", requires_grad=affine)

    def construct(self, x: Any) -> Any:
        """x normalized."""
        if x.ndim not in self._ndims_:
            raise ValueError(
                f"{line_prefix()}{type(self).__name__}: expected an input of {' or '.join(map(str, self._ndims_))} axes, "
                f"got shape {x.shape}."
            )
        batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        if self.format == "NHWC":
            x = ops.transpose(x, (0, 3, 1, 2))
        out = ops.batch_norm(x, self.moving_mean, self.moving_variance, self.gamma, self.beta, batch, 1 - self.momentum, self.eps)
        return ops.transpose(out, (0, 2, 3, 1)) if self.format == "NHWC" else out

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, gamma={self.gamma}, beta={self.beta}, "
            f"moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (N, C) or (N, C, L)."""

    _ndims_ = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of images (N, C, H, W)."""


class BatchNorm3d(Cell):
    """Batch normalization of volumes (N, C, D, H, W), by a BatchNorm2d inside it, whose name is in the names of its Parameters."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros", moving_var_init: Any = "ones", use_batch_statistics: bool | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        self.bn2d = BatchNorm2d(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, use_batch_statistics,
            dtype=dtype,
        )

    def construct(self, input_x: Any) -> Any:
        """input_x normalized."""
        if input_x.ndim != 5:
            raise ValueError(f"{line_prefix()}BatchNorm3d: expected an input of 5 axes, got shape {input_x.shape}.")
        n, c, d, h, w = input_x.shape
        return ops.reshape(self.bn2d(ops.reshape(input_x, (n, c, d * h, w))), (n, c, d, h, w))


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of several processes, in training; their lengths may differ.

    `process_groups` lists the ranks that share statistics, such as [[0, 1], [2, 3]]; a process in none of them uses its own batch.
    None means all processes. Raises TypeError and ValueError unless it is a list of lists of ranks, each rank once.
    """

    _ndims_ = (2, 4)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, gamma_init: Any = "ones",
        beta_init: Any = "zeros", moving_mean_init: Any = "zeros", moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None, process_groups: Any = None, dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, use_batch_statistics,
            dtype=dtype,
        )
        is_list = isinstance(process_groups, list) and all(isinstance(ranks_of_group, list) for ranks_of_group in process_groups)
        if process_groups is not None and not is_list:
            raise TypeError(f"SyncBatchNorm(process_groups={process_groups!r:.40}): expected a list of lists of ranks, or None.")
        ranks, count = [rank for ranks_of_group in process_groups or () for rank in ranks_of_group], get_group_size()
        if len(set(ranks)) < len(ranks) or not all(rank in range(count) for rank in ranks):
            raise ValueError(message(
                f"SyncBatchNorm(process_groups={short(process_groups)})",
                "rank 0, the only process" if count == 1 else f"ranks from 0 to {count - 1}, each once",
            ))
        self.process_groups = process_groups
        self.group_name = _group_of_this_process(process_groups)

    def construct(self, x: Any) -> Any:
        """x normalized."""
        batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        group = synchronized.sharers(self.group_name) if batch and self.group_name else None
        if group is None or x.ndim not in self._ndims_:
            return super().construct(x)
        return synchronized.synced_batch_norm(
            x, self.moving_mean, self.moving_variance, self.gamma, self.beta, 1 - self.momentum, self.eps, group,
        )


def _group_of_this_process(process_groups: list[list[int]] | None) -> str:
    """Return the name of the group of processes that shares statistics with this one; '' if there is none."""
    if process_groups is None:
        return GlobalComm.WORLD_COMM_GROUP
    ranks = next((ranks_of_group for ranks_of_group in process_groups if get_rank() in ranks_of_group), [])
    if len(ranks) < 2:
        return ""
    name = "sync_batch_norm_" + "_".join(map(str, ranks))
    create_group(name, ranks)
    return name


class _InstanceNorm(Cell):
    """Normalizes each channel of each sample. `momentum` belongs to running values, which, as in MindSpore, nothing reads."""

    _ndim_ = 4

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, gamma_init: Any = "ones",
        beta_init: Any = "zeros", dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_int_type(name, "num_features", num_features)
        if num_features < 1:
            raise ValueError(message(f"{name}(num_features={num_features})", "an int from 1 on"))
        for key, value, kind in (("eps", eps, float), ("momentum", momentum, float), ("affine", affine, bool)):
            if not isinstance(value, kind):
                raise TypeError(f"{name}({key}={value!r:.40}): expected a {kind.__name__}, got {type(value).__name__}.")
        if not 0 <= momentum <= 1:
            raise ValueError(f"{name}(momentum={momentum}): expected a number from 0 to 1.")
        self.num_features, self.eps, self.momentum, self.affine = num_features, eps, momentum, affine
        self.moving_mean = Parameter(initializer("zeros", num_features, dtype), name="mean", requires_grad=False)
        self.moving_variance = Parameter(initializer("ones", num_features, dtype), name="variance", requires_grad=False)
        self.gamma = Parameter(initializer(gamma_init, num_features, dtype), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, num_features, dtype), name="beta", requires_grad=affine)

    def construct(self, x: Any) -> Any:
        """x normalized."""
        if x.ndim != self._ndim_:
            raise ValueError(f"{line_prefix()}{type(self).__name__}: expected an input of {self._ndim_} axes, got shape {x.shape}.")
        return normalization._instance_norm_layer(x, self.gamma, self.beta, self.eps)

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, gamma={self.gamma}, beta={self.beta}, "
            f"moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalizes each channel of each sequence of (N, C, L)."""

    _ndim_ = 3


class InstanceNorm2d(_InstanceNorm):
    """Normalizes each channel of each image of (N, C, H, W)."""


class InstanceNorm3d(_InstanceNorm):
    """Normalizes each channel of each volume of (N, C, D, H, W)."""

    _ndim_ = 5


def _check_shape(name: str, normalized_shape: Any) -> None:
    if not normalized_shape:
        raise ValueError(f"{name}(normalized_shape={normalized_shape}): expected one length or more.")
    if not all(is_int(length) for length in normalized_shape):
        raise TypeError(f"{name}(normalized_shape={short(normalized_shape)}): expected ints.")


class LayerNormExt(Cell):
    """Normalizes over the last axes, whose lengths are `normalized_shape`.

    `elementwise_affine` multiplies by a trained `weight`, and with `bias` adds one.
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        if not isinstance(shape, (tuple, list)):
            raise TypeError(f"{type(self).__name__}(normalized_shape={shape!r:.40}): expected an int, a tuple or a list.")
        _check_shape(type(self).__name__, shape)
        self.normalized_shape, self.eps, self.elementwise_affine = tuple(shape), eps, elementwise_affine
        dtype = dtypes.float32 if dtype is None else dtype
        self.weight = Parameter(initializer("ones", self.normalized_shape, dtype), name="weight") if elementwise_affine else None
        self.bias = Parameter(initializer("zeros", self.normalized_shape, dtype), name="bias") if elementwise_affine and bias else None

    def construct(self, input: Any) -> Any:
        """The normalized input."""
        return ops.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        return f"normalized_shape={self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LayerNorm(Cell):
    """Normalizes over the axes from `begin_norm_axis` on, whose lengths are `normalized_shape`."""

    layer_norm = Part(lambda cell: ops.LayerNorm(cell.begin_norm_axis, cell.begin_params_axis, cell.epsilon))

    def __init__(
        self, normalized_shape: Any, begin_norm_axis: int = -1, begin_params_axis: int = -1, gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        epsilon: float = 1e-7, dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        if not isinstance(normalized_shape, (tuple, list)):
            raise TypeError(
                f"LayerNorm(normalized_shape={normalized_shape!r}): expected a tuple or a list, got {type(normalized_shape).__name__}."
                f"\n\nhint: write ({normalized_shape},)."
            )
        _check_shape("LayerNorm", normalized_shape)
        self.normalized_shape, self.begin_norm_axis = normalized_shape, begin_norm_axis
        self.begin_params_axis, self.epsilon = begin_params_axis, epsilon
        self.gamma = Parameter(initializer(gamma_init, normalized_shape, dtype), name="gamma")
        self.beta = Parameter(initializer(beta_init, normalized_shape, dtype), name="beta")

    def construct(self, input_x: Any) -> Any:
        """The normalized input."""
        axis = normalized_axis(self.begin_norm_axis, input_x.ndim)
        return ops.layer_norm(input_x, input_x.shape[axis:], self.gamma, self.beta, self.epsilon)

    def extend_repr(self) -> str:
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}, "
            f"gamma={self.gamma}, beta={self.beta}"
        )


class GroupNorm(Cell):
    """Normalizes over the channels of each group and all later axes."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        check_lengths("GroupNorm", (), num_groups=num_groups, num_channels=num_channels)
        check_kinds("GroupNorm", "bool", affine=affine)
        check_real("GroupNorm", eps=eps)
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm(num_groups={num_groups}): expected a divisor of num_channels={num_channels}.")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.gamma = Parameter(initializer(gamma_init, num_channels, dtype), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, num_channels, dtype), name="beta", requires_grad=affine)

    def construct(self, x: Any) -> Any:
        """x normalized."""
        return ops.group_norm(x, self.num_groups, self.gamma, self.beta, self.eps)

    def extend_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm",
    "LayerNormExt", "SyncBatchNorm",
]
