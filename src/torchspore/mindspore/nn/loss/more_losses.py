"""Losses from margins, distances, overlaps and distributions as Cells."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.base.arguments import check_int_type, is_int
from torchspore.base.frames import line_prefix
from torchspore.base.text import message, with_type
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.basic import get_activation
from torchspore.mindspore.nn.loss.loss import LossBase, check_tensors
from torchspore.mindspore.ops.declaration.kind_checks import check_kinds
from torchspore.mindspore.ops.declaration.limits import check_real
from torchspore.mindspore.ops.losses import more_losses


def _require_equal_shapes(name: str, logits: Any, labels: Any) -> None:
    if logits.shape != labels.shape:
        raise ValueError(f"{line_prefix()}{name}: expected equal shapes, got {logits.shape} and {labels.shape}.")


class MAELoss(LossBase):
    """The absolute difference of logits and labels."""

    def construct(self, logits: Any, label: Any) -> Any:
        """The loss."""
        check_tensors("MAELoss", logits=logits, label=label)
        return self.get_loss(ops.abs(logits - label))


class L1LossExt(LossBase):
    """The absolute difference of logits and labels."""

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        return ops.l1_loss(logits, labels, self.reduction)


class RMSELoss(LossBase):
    """The root of the mean squared difference of logits and labels."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, logits: Any, label: Any) -> Any:
        """The loss ()."""
        check_tensors("RMSELoss", logits=logits, label=label)
        return ops.sqrt(ops.mean(ops.square(logits - label)))


class HuberLoss(LossBase):
    """Half the squared difference up to `delta`; above it, delta times (the difference minus delta / 2)."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        return ops.huber_loss(logits, labels, self.reduction, self.delta)


class KLDivLoss(LossBase):
    """The Kullback-Leibler divergence of log probabilities and probabilities; 'batchmean' divides the sum by the first length."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("mean" if reduction == "batchmean" else reduction)
        self.reduction = reduction

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss. Raises ValueError for different shapes."""
        if logits.shape != labels.shape:
            raise ValueError(f"KLDivLoss of shapes {list(logits.shape)} and {list(labels.shape)}: expected equal shapes.")
        return ops.kl_div(logits, labels, self.reduction)


class CosineEmbeddingLoss(LossBase):
    """1 - cos of the rows of both inputs where the label is 1; max(0, cos - margin) where it is -1."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        if isinstance(margin, bool) or not isinstance(margin, float):
            raise TypeError(f"CosineEmbeddingLoss(margin={margin!r:.40}): expected a float, got {type(margin).__name__}.")
        if not -1 <= margin <= 1:
            raise ValueError(f"CosineEmbeddingLoss(margin={margin}): expected a number from -1 to 1.")
        self.margin = margin

    def construct(self, logits_x1: Any, logits_x2: Any, labels: Any) -> Any:
        """The loss."""
        return ops.cosine_embedding_loss(logits_x1, logits_x2, labels, self.margin, self.reduction)


class HingeEmbeddingLoss(LossBase):
    """The input where the label is 1; max(0, margin - input) where it is -1."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        check_kinds("HingeEmbeddingLoss", "float", margin=margin)
        self.margin = margin

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        return ops.hinge_embedding_loss(logits, labels, self.margin, self.reduction)


class MarginRankingLoss(LossBase):
    """max(0, -target * (input1 - input2) + margin), with targets 1 and -1."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        check_real("MarginRankingLoss", margin=margin)
        self.margin = margin

    def construct(self, input1: Any, input2: Any, target: Any) -> Any:
        """The loss."""
        return ops.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class MultiMarginLoss(LossBase):
    """For each row (N, C): the mean over other classes of max(0, margin - x[target] + x)^p, times the class's weight."""

    def __init__(self, p: int = 1, margin: float = 1.0, reduction: str = "mean", weight: Any = None) -> None:
        super().__init__(reduction)
        check_kinds("MultiMarginLoss", "int", p=p)
        check_real("MultiMarginLoss", margin=margin)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss(p={p}): expected 1 or 2.")
        self.p, self.margin, self.weight = p, margin, weight

    def construct(self, x: Any, target: Any, weight: Any = None) -> Any:
        """The loss; `weight` of the call overrides that of the layer."""
        return ops.multi_margin_loss(x, target, self.p, self.margin, self.weight if weight is None else weight, self.reduction)


class MultilabelMarginLoss(LossBase):
    """For each row (N, C): the sum of max(0, 1 - (x[right] - x[wrong])) over all pairs, divided by C.

    Targets list the correct classes up to the first -1.
    """

    def construct(self, x: Any, target: Any) -> Any:
        """The loss."""
        return ops.multilabel_margin_loss(x, target, self.reduction)


class MultiLabelSoftMarginLoss(LossBase):
    """The binary cross entropy of logits (N, C): the mean over the classes, each times its weight."""

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def construct(self, x: Any, target: Any) -> Any:
        """The loss."""
        return ops.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)


class SoftMarginLoss(LossBase):
    """log(1 + exp(-label * logit)), with labels 1 and -1."""

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        return ops.soft_margin_loss(logits, labels, self.reduction)


class TripletMarginLoss(LossBase):
    """max(0, |x - positive| - |x - negative| + margin), in the norm `p`; `swap` takes the smaller distance to the negative."""

    def __init__(self, p: int = 2, swap: bool = False, eps: float = 1e-6, reduction: str = "mean", margin: float = 1.0) -> None:
        super().__init__(reduction)
        self.p, self.swap, self.eps, self.margin = p, swap, eps, margin

    def construct(self, x: Any, positive: Any, negative: Any, margin: Any = 1.0) -> Any:
        """The loss; a `margin` of the call that is not 1 overrides that of the layer."""
        margin_of_call = self.margin if isinstance(margin, float) and margin == 1.0 else margin
        return ops.TripletMarginLoss(self.p, self.swap, self.eps, self.reduction)(x, positive, negative, margin_of_call)


class TripletMarginWithDistanceLoss(LossBase):
    """max(0, d(x, positive) - d(x, negative) + margin), with the Euclidean distance or a user function."""

    def __init__(
        self, distance_function: Callable[[Any, Any], Any] | None = None, swap: bool = False, reduction: str = "mean", margin: float = 1.0,
    ) -> None:
        super().__init__(reduction)
        if distance_function is not None and not callable(distance_function):
            raise TypeError(message(f"TripletMarginWithDistanceLoss(distance_function={distance_function!r:.40})", "a function"))
        if not isinstance(swap, bool):
            raise TypeError(message(f"TripletMarginWithDistanceLoss(swap={swap!r:.40})", with_type("a bool", swap)))
        check_real("TripletMarginWithDistanceLoss", margin=margin)
        self.distance_function = distance_function or (lambda a, b: ops.sqrt(ops.sum(ops.square(a - b + 1e-6), -1)))
        self.swap, self.margin = swap, margin

    def construct(self, x: Any, positive: Any, negative: Any) -> Any:
        """The loss."""
        check_tensors("TripletMarginWithDistanceLoss", x=x, positive=positive, negative=negative)
        near, far = self.distance_function(x, positive), self.distance_function(x, negative)
        if self.swap:
            far = ops.minimum(far, self.distance_function(positive, negative))
        return self.get_loss(ops.relu(near - far + self.margin))


class PoissonNLLLoss(LossBase):
    """exp(x) - target * x, or with `log_input=False` x - target * log(x + eps); `full` adds Stirling's approximation of log(target!)."""

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def construct(self, input: Any, target: Any) -> Any:
        """The loss."""
        return more_losses._poisson_nll(input, target, self.log_input, self.full, self.eps, self.reduction)


class GaussianNLLLoss(LossBase):
    """Half of log(var) + (x - target)^2 / var, with variances of at least `eps`; `full` adds log(2 pi) / 2."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        check_kinds("GaussianNLLLoss", "bool", full=full)
        check_real("GaussianNLLLoss", above=0.0, eps=eps)
        self.full, self.eps = full, eps

    def construct(self, logits: Any, labels: Any, var: Any) -> Any:
        """The loss."""
        return ops.gaussian_nll_loss(logits, labels, var, self.full, self.eps, self.reduction)


class CTCLoss(LossBase):
    """Connectionist temporal classification (Graves and others, 2006) for log probabilities (time, N, classes) and labels."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        check_kinds("CTCLoss", "int", blank=blank)
        check_kinds("CTCLoss", "bool", zero_infinity=zero_infinity)
        self.blank, self.zero_infinity = blank, zero_infinity

    def construct(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        """The loss."""
        return ops.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)[0]


class DiceLoss(LossBase):
    """1 - 2 * |A and B| / (|A| + |B|) over all elements, with `smooth` added to the denominator."""

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        check_real("DiceLoss", above=0.0, smooth=smooth)
        self.smooth = smooth

    def construct(self, logits: Any, label: Any) -> Any:
        """The loss ()."""
        _require_equal_shapes("DiceLoss", logits, label)
        if logits.dtype == dtypes.uint8 or label.dtype == dtypes.uint8:
            raise TypeError(f"{line_prefix()}DiceLoss: expected other dtypes than uint8, got {logits.dtype} and {label.dtype}.")
        intersection = ops.sum(ops.mul(logits.reshape(-1), label.reshape(-1)))
        total = ops.sum(ops.mul(logits.reshape(-1), logits.reshape(-1))) + ops.sum(ops.mul(label.reshape(-1), label.reshape(-1)))
        return 1 - 2 * intersection / (total + self.smooth)


class MultiClassDiceLoss(LossBase):
    """The mean of DiceLoss over the classes (axis 1), each times its weight; `ignore_indiex` excludes one class.

    `weights` (C, ...) are the weights of the classes. `activation`, a name, a Cell or None, is applied to the logits first.
    """

    def __init__(self, weights: Any = None, ignore_indiex: int | None = None, activation: Any = "softmax") -> None:
        super().__init__()
        if weights is not None and weights.ndim != 2:
            raise ValueError(f"MultiClassDiceLoss(weights of shape {weights.shape}): expected two axes.")
        if ignore_indiex is not None and not is_int(ignore_indiex):
            raise TypeError(message(f"MultiClassDiceLoss(ignore_indiex={ignore_indiex!r:.40})", "an int or None"))
        self.binarydiceloss = DiceLoss(smooth=1e-5)
        self.weights, self.ignore_indiex = weights, ignore_indiex
        self.activation = get_activation(activation) if isinstance(activation, str) else activation
        if self.activation is not None and not isinstance(self.activation, Cell):
            raise TypeError(f"MultiClassDiceLoss(activation={activation!r:.40}): expected a name, a Cell or None.")

    def construct(self, logits: Any, label: Any) -> Any:
        """The loss, in the shape of one weight."""
        _require_equal_shapes("MultiClassDiceLoss", logits, label)
        if self.activation is not None:
            logits = self.activation(logits)
        if self.weights is not None and self.weights.shape[0] != label.shape[1]:
            raise ValueError(
                f"{line_prefix()}MultiClassDiceLoss: expected {self.weights.shape[0]} classes, as many as weights, got {label.shape[1]}."
            )
        total = 0
        for i in range(label.shape[1]):
            if i != self.ignore_indiex:
                loss = self.binarydiceloss(logits[:, i], label[:, i])
                total = total + (loss if self.weights is None else loss * self.weights[i])
        return total / label.shape[1]


class FocalLoss(LossBase):
    """-(1 - p)^gamma * log(p) for the true class (Lin and others, 2017), with a weight for each class.

    Logits (N, C, ...); labels are classes (N, 1, ...), or one number for each class (N, C, ...). 'none' gives the means over the last axes.
    """

    def __init__(self, weight: Any = None, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        if weight is not None and weight.ndim != 1:
            raise ValueError(f"FocalLoss(weight of shape {weight.shape}): expected one axis.")
        check_real("FocalLoss", gamma=gamma)
        self.weight, self.gamma = weight, gamma

    def construct(self, logits: Any, labels: Any) -> Any:
        """The loss."""
        if logits.ndim not in (2, 3, 4) or labels.ndim != logits.ndim:
            raise ValueError(f"{line_prefix()}FocalLoss: expected 2, 3 or 4 axes of both, got shapes {logits.shape} and {labels.shape}.")
        if labels.shape[1] not in (1, logits.shape[1]):
            raise ValueError(f"{line_prefix()}FocalLoss: expected labels of 1 or {logits.shape[1]} channels, got shape {labels.shape}.")
        n, c = logits.shape[:2]
        chances = ops.log_softmax(logits.reshape(n, c, -1), 1)
        labels = labels.reshape(n, labels.shape[1], -1)
        if labels.shape[1] == 1:
            classes = labels.astype(dtypes.int32)
            chances = ops.squeeze(ops.gather_elements(chances, 1, classes), 1)
            weights = None if self.weight is None else ops.gather(self.weight, ops.squeeze(classes, 1), 0)
            marks = 1
        else:
            weights = None if self.weight is None else ops.reshape(self.weight, (1, c, 1))
            marks = labels
        loss = -ops.pow(1 - ops.exp(chances), self.gamma) * marks * (chances if weights is None else chances * weights)
        return self.get_loss(ops.mean(loss, -1))


class SampledSoftmaxLoss(LossBase):
    """The cross entropy over the true class and `num_sampled` others, drawn uniformly, for many classes (Jean and others, 2015).

    `sampled_values` has (classes, expected counts of the true ones, expected counts of the drawn ones) instead of drawing;
    `remove_accidental_hits` excludes drawn classes that are true. `seed` determines the drawn classes, which change from call to call; 0
    means a seed from MindSpore's generator.
    """

    def __init__(
        self, num_sampled: int, num_classes: int, num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = True,
        seed: int = 0, reduction: str = "none",
    ) -> None:
        super().__init__(reduction)
        for name, value in (("num_sampled", num_sampled), ("num_classes", num_classes), ("num_true", num_true)):
            check_int_type("SampledSoftmaxLoss", name, value)
            if value < 1:
                raise ValueError(message(f"SampledSoftmaxLoss({name}={value})", "an int from 1 on"))
        if num_sampled > num_classes or num_true > num_classes:
            raise ValueError(f"SampledSoftmaxLoss(num_sampled={num_sampled}, num_true={num_true}): expected up to {num_classes} classes.")
        if sampled_values is not None and (not isinstance(sampled_values, (list, tuple)) or len(sampled_values) != 3):
            raise TypeError(f"SampledSoftmaxLoss(sampled_values={sampled_values!r:.40}): expected a tuple of three Tensors, or None.")
        self.num_sampled, self.num_classes, self.num_true = num_sampled, num_classes, num_true
        self.sampled_values, self.remove_accidental_hits, self.seed = sampled_values, remove_accidental_hits, seed
        self.sampler = ops.UniformCandidateSampler(num_true, num_sampled, True, num_classes, seed, remove_accidental_hits)

    def construct(self, weights: Any, biases: Any, labels: Any, logits: Any) -> Any:
        """The loss of the class vectors `weights` (classes, D) and `biases` (classes,), labels (N, num_true) and inputs (N, D)."""
        drawn = self.sampled_values
        if drawn is None:
            drawn = self.sampler(labels.reshape(-1, self.num_true))
        loss = more_losses._sampled_softmax(weights, biases, labels, logits, *drawn, self.num_true, self.remove_accidental_hits)
        return self.get_loss(loss)


__all__ = [
    "CTCLoss", "CosineEmbeddingLoss", "DiceLoss", "FocalLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss",
    "L1LossExt", "MAELoss", "MarginRankingLoss", "MultiClassDiceLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "MultilabelMarginLoss", "PoissonNLLLoss", "RMSELoss", "SampledSoftmaxLoss", "SoftMarginLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]
