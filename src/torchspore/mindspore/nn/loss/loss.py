"""Losses as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.base.frames import line_prefix
from torchspore.base.text import message, short, with_type
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.parts import Part
from torchspore.mindspore.ops.declaration import split_capture
from torchspore.mindspore.ops.declaration.kind_checks import check_kinds
from torchspore.mindspore.ops.declaration.limits import check_real, checked, optional, tensor
from torchspore.mindspore.ops.losses import loss as loss_operators


class LossBase(Cell):
    """The base of losses: `get_loss(x, weights)` weighs and reduces by `reduction` ('mean', 'sum' or 'none')."""

    reduce_mean, reduce_sum = Part(lambda _: ops.ReduceMean()), Part(lambda _: ops.ReduceSum())
    mul, cast = Part(lambda _: ops.Mul()), Part(lambda _: ops.Cast())

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"{type(self).__name__}(reduction={reduction!r}): expected 'mean', 'sum' or 'none'.")
        self.reduction = reduction
        self.reduce, self.average = reduction != "none", reduction == "mean"

    def get_axis(self, x: Any) -> tuple[int, ...]:
        """Return all axes of x."""
        return tuple(range(x.ndim))

    def get_loss(self, x: Any, weights: Any = 1.0) -> Any:
        """Return x times `weights`, reduced."""
        x = (x.astype(dtypes.float32, copy=False) * weights).astype(x.dtype, copy=False) if weights is not None else x
        if not self.reduce:                    # programs set these two after the constructor, as in MindSpore
            return x
        return ops.mean(x) if self.average else ops.sum(x, dtype=x.dtype)

    def _loss_by_parts_(self, x: Any, weights: Any = 1.0) -> Any:
        from torchspore.mindspore.nn.layer import by_parts

        return by_parts.weighed(self, x, weights) if split_capture.is_split() else type(self).get_loss(self, x, weights)


def check_tensors(name: str, **values: Any) -> None:
    """Raises TypeError for an input that is not a Tensor: a number would be broadcast."""
    for key, value in values.items():
        if not isinstance(value, TensorBase):
            raise TypeError(f"{line_prefix()}{message(f'{name} of {key}={short(value)}', with_type('a Tensor', value))}")


class L1Loss(LossBase):
    """The absolute difference of logits and labels."""

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        check_tensors("L1Loss", logits=logits, labels=labels)
        return self.get_loss(ops.abs(logits - labels))


class MSELoss(LossBase):
    """The squared difference of logits and labels."""

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        check_tensors("MSELoss", logits=logits, labels=labels)
        return self.get_loss(ops.square(logits - labels))


class SmoothL1Loss(LossBase):
    """The squared difference below `beta`, the absolute difference above it."""

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        check_kinds("SmoothL1Loss", "float", beta=beta)
        self.beta = beta

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        return ops.smooth_l1_loss(logits, labels, self.beta, self.reduction)


_NO_CLASS = -(1 << 40)
"""Instead of the class number -100, which cross_entropy ignores."""


class SoftmaxCrossEntropyWithLogits(LossBase):
    """The cross entropy of logits (N, C) and classes (N,) if `sparse`, else probabilities (N, C); 'none' unless `reduction` says
    otherwise.
    """

    softmax_cross_entropy = Part(lambda _: ops.SoftmaxCrossEntropyWithLogits())
    sparse_softmax_cross_entropy, one_hot = Part(lambda _: ops.SparseSoftmaxCrossEntropyWithLogits()), Part(lambda _: ops.OneHot())

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        if not isinstance(sparse, bool):
            raise TypeError(message(f"SoftmaxCrossEntropyWithLogits(sparse={sparse!r})", with_type("a bool", sparse)))
        self.sparse = sparse

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        if self.sparse and self.reduction == "mean":
            return ops.cross_entropy(logits, labels, ignore_index=_NO_CLASS)
        if self.sparse:
            return loss_operators._cross_entropy_of_classes(logits, labels, self.reduction)
        return self.get_loss(ops.SoftmaxCrossEntropyWithLogits()(logits, labels)[0])


class CrossEntropyLoss(LossBase):
    """The cross entropy of logits (N, C, ...) and classes (N, ...) or probabilities (N, C, ...)."""

    @checked(weight=optional(tensor))
    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0) -> None:
        super().__init__(reduction)
        check_kinds("CrossEntropyLoss", "int", ignore_index=ignore_index)
        check_real("CrossEntropyLoss", least=0.0, most=1.0, label_smoothing=label_smoothing)
        self.weight, self.ignore_index, self.label_smoothing = weight, ignore_index, label_smoothing

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        return ops.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(LossBase):
    """The negative log likelihood of log probabilities (N, C, ...) and classes (N, ...)."""

    @checked(weight=optional(tensor))
    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        check_kinds("NLLLoss", "int", ignore_index=ignore_index)
        self.weight, self.ignore_index = weight, ignore_index

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        return ops.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class BCELoss(LossBase):
    """The binary cross entropy of probabilities; 'mean' unless `reduction` says otherwise."""

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        return ops.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """The binary cross entropy of logits."""

    def __init__(self, reduction: str = "mean", weight: Any = None, pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        return ops.binary_cross_entropy_with_logits(logits, labels, self.weight, self.pos_weight, self.reduction)
