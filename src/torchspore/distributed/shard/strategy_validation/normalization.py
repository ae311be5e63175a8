"""Softmax, losses and norms: operators that read several numbers of one row."""
from __future__ import annotations

from collections.abc import Iterable

from torchspore.distributed.shard.strategy_validation.axis_labels import UNCUT, Call, Cuts, Family, Form, labels


def _axes(call: Call, axes_given: int | Iterable[int]) -> set[int]:
    rank = len(call.shapes[0])
    return {axis % rank for axis in ((axes_given,) if isinstance(axes_given, int) else tuple(axes_given))}


def along_rows(call: Call) -> Form:
    """The result has the input's shape; the axes of `axis` (by default the last one) stay unsplit."""
    axes = labels(len(call.shapes[0]))
    rows = _axes(call, call.get("axis", "dim", default=-1))
    return Form(
        inputs=(axes,), outputs=(axes,), order=axes, uncut={axes[axis]: f"{call.name} needs all of axis {axis}" for axis in sorted(rows)}
    )


def dense_cross_entropy(call: Call) -> Form:
    """Logits (n, c) and labels (n, c); a loss for each row, and the gradient of the logits."""
    return Form(
        inputs=(("n", "c"), ("n", "c")), outputs=(("n",), ("n", "c")), order=("n", "c"), uncut={"c": "the classes of a row stay together"},
    )


def sparse_cross_entropy(call: Call) -> Form:
    """Logits (n, c) and labels (n,); one number, or the gradient of the logits with is_grad."""
    outputs = (("n", "c"),) if call.get("is_grad", default=False) else ((),)
    return Form(inputs=(("n", "c"), ("n",)), outputs=outputs, order=("n", "c"), uncut={"c": "the classes of a row stay together"})


def reduced_loss(call: Call) -> Form:
    """All inputs have one shape; the loss has that shape, or is one number, as `reduction` says."""
    axes = labels(len(call.shapes[0]))
    result = axes if call.get("reduction", default="mean") == "none" else ()
    return Form(inputs=(axes,) * len(call.shapes), outputs=(result,), order=axes)


def layer_norm(call: Call) -> Form:
    """x, gamma and beta; x is not split from begin_norm_axis on."""
    rank = len(call.shapes[0])
    axes = labels(rank)
    begin = call.axis("begin_norm_axis", default=1)
    parameters = axes[call.axis("begin_params_axis", default=1):]
    statistics = axes[:begin] + (UNCUT,) * (rank - begin)
    uncut = {axes[axis]: f"it is normalized, as begin_norm_axis is {begin}" for axis in range(begin, rank)}
    return Form(inputs=(axes, parameters, parameters), outputs=(axes, statistics, statistics),
                order=axes, uncut=uncut)


def rms_norm(call: Call) -> Form:
    """x and gamma; the mean of squares is summed over devices if the last axes are split."""
    axes = labels(len(call.shapes[0]))
    behind = len(call.shapes[1])
    before = axes[:len(axes) - behind]
    return Form(inputs=(axes, axes[len(axes) - behind:]), outputs=(axes, before + (UNCUT,) * behind), order=axes)


def batch_norm(call: Call) -> Form:
    """x (n, c, ...) and scale, bias, mean and variance (c,): the statistics are those of the full batch."""
    axes = ("n", "c", *labels(len(call.shapes[0]) - 2, "s"))
    if call.get("data_format", "format", default="NCHW") == "NHWC":
        axes = ("n", *labels(len(call.shapes[0]) - 2, "s"), "c")
    size = call.get("group_size", default=0)

    def check_group(cuts: Cuts, devices: int) -> str | None:
        """Return why statistics over groups of devices do not allow these splits."""
        if size and (size & (size - 1) or size > devices):
            return f"group_size a power of two up to {devices}, got {size}"
        if size and cuts["c"] > 1 and cuts["n"] > 1:
            return f"only one of n and c cut, as group_size is {size}"
        return None

    return Form(
        inputs=(axes, *[("c",)] * (len(call.shapes) - 1)), outputs=(axes, *[("c",)] * 4), order=axes, check=check_group,
    )


def group_norm(call: Call) -> Form:
    """x (n, c, ...), weight and bias (c,): only the batch may be split."""
    axes = ("n", "c", *labels(len(call.shapes[0]) - 2, "s"))
    uncut = dict.fromkeys(axes[1:], "a group is normalized together")
    return Form(inputs=(axes, *[("c",)] * (len(call.shapes) - 1)), outputs=(axes, ("n", UNCUT), ("n", UNCUT)), order=axes, uncut=uncut)


FAMILIES: dict[str, Family] = {
    **dict.fromkeys(
        ("Softmax", "LogSoftmax", "L2Normalize", "LogSoftmaxExt", "CumSum", "CumProd", "Cummax", "Cummin", "CumsumExt"), along_rows,
    ),
    "SoftmaxCrossEntropyWithLogits": dense_cross_entropy, "SparseSoftmaxCrossEntropyWithLogits": sparse_cross_entropy,
    "KLDivLoss": reduced_loss, "LayerNorm": layer_norm, "RmsNorm": rms_norm,
    "BatchNorm": batch_norm, "GroupNorm": group_norm,
}
