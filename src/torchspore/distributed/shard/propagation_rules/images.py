"""Convolutions, pooling and attention: the batch, and channels or heads, may be split; positions may not."""
from __future__ import annotations

from typing import Any

from torchspore.distributed.shard.propagation_rules.registry import OperatorCall, splits
from torchspore.distributed.shard.propagation_rules.rule import Dims, Local, Naming, Rule


@splits("convolution")
def convolution(call: OperatorCall) -> Rule | None:
    """(n, ci, ..) by (co, ci, ..), a bias (co): with ci split each device has a partial sum, without a bias and with one group."""
    out, naming = call.outputs[0], Naming()
    if out is None:
        return None
    n, ci, co, kernel, before, after = _parts(naming, call, call.shape("input"), call.shape("weight"), tuple(out.shape))
    bias = call.args.get("bias")
    if bias is not None:
        naming.lock(ci)
    inputs = [(n, ci, *before), kernel] + ([(co,)] if bias is not None else [])
    return naming.rule(inputs, [(n, co, *after)], reduced={ci[0]: "sum"})


def _parts(naming: Naming, call: OperatorCall, x: Any, weight: Any, out: Any) -> tuple[Any, ...]:
    has_groups = call["groups"] != 1
    n, ci, co = naming.new(x[0]), naming.new(x[1], has_groups), naming.new(out[1], has_groups)
    spatial = naming.all(weight[2:], True)
    if has_groups:
        kernel: Dims = (*naming.all(weight[:2], True), *spatial)
    else:
        kernel = (ci, co, *spatial) if call["transposed"] else (co, ci, *spatial)
    return n, ci, co, kernel, naming.all(x[2:], True), naming.all(out[2:], True)


@splits("convolution_backward")
def convolution_gradient(call: OperatorCall) -> Rule | None:
    """The gradient of the input is a sum over co, that of the kernel a sum over n."""
    naming = Naming()
    grad, x, weight = (call.shape(name) for name in ("grad_output", "input", "weight"))
    n, ci, co, kernel, before, after = _parts(naming, call, x, weight, grad)
    full_input, outputs, each = (n, ci, *before), [], []
    for dims, terms, out in zip(
        (full_input, kernel, (co,)), ({co[0]: "sum"}, {n[0]: "sum"}, {n[0]: "sum"}), call.outputs,
    ):
        if out is not None:
            outputs.append(dims)
            each.append(terms)

    def arguments(args: list[Any], kwargs: dict[str, Any], local: Local) -> None:
        if args[3] is not None:
            args[3] = [local.inputs[0].local(local.mesh, grad)[1]]

    return naming.rule([(n, co, *after), full_input, kernel], outputs, reduced_each=tuple(each), arguments=arguments)


@splits(
    "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "max_pool3d_with_indices", "max_pool3d_with_indices_backward",
    "avg_pool2d", "avg_pool2d_backward", "avg_pool3d", "avg_pool3d_backward", "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward",
    "_adaptive_avg_pool3d", "_adaptive_avg_pool3d_backward", "adaptive_max_pool2d", "adaptive_max_pool2d_backward", "upsample_nearest2d",
    "upsample_bilinear2d", "reflection_pad2d", "replication_pad2d", "reflection_pad2d_backward", "replication_pad2d_backward",
    "grid_sampler_2d", "pixel_shuffle", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward", "_scaled_dot_product_attention_math", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
)
def leading(call: OperatorCall) -> Rule | None:
    """The first two dimensions of all operands and results are equal, or 1; they are split alike, the others are not."""
    tensors = [t for t in (*call.inputs, *call.outputs) if t is not None]
    name = call.target._opname
    if tensors[0].ndim != (5 if "3d" in name else 4):
        return None
    ahead = 1 if name in ("pixel_shuffle", "grid_sampler_2d") else 2
    naming = Naming()
    first = naming.all(tensors[0].shape[:ahead])

    def dims(t: Any) -> Dims:
        shared = t.ndim >= ahead and tuple(t.shape[:ahead]) == tuple(tensors[0].shape[:ahead])
        return (*first, *naming.all(t.shape[ahead:], True)) if shared else naming.all(t.shape, True)

    inputs = [dims(t) for t in call.inputs]
    outputs = [dims(t) for t in call.outputs if t is not None]
    if any(out[:ahead] != first for out in outputs):
        return None
    return naming.rule(inputs, outputs)


@splits("native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training")
def batch_norm(call: OperatorCall) -> Rule | None:
    """Channels may be split, and in inference all dimensions. Training over a split batch has a lowering."""
    name = call.target._opname
    x = call.args["input"]
    training = bool(call.args.get("training", call.args.get("train", False)))
    naming = Naming()
    channel = naming.new(x.shape[1])
    others = [naming.new(size, training) for at, size in enumerate(x.shape) if at != 1]
    full = (others[0], channel, *others[1:])

    def dims(t: Any) -> Dims:
        return full if t.ndim == x.ndim else (channel,) if t.ndim == 1 and t.shape[0] == x.shape[1] else naming.all(t.shape, True)

    outputs = [dims(t) for t in call.outputs if t is not None]
    terms = {factor: "sum" for dim in others for factor in dim} if name.endswith("backward") else {}
    return naming.rule([dims(t) for t in call.inputs], outputs, reduced=terms)


@splits("native_group_norm", "native_group_norm_backward")
def group_norm(call: OperatorCall) -> Rule | None:
    """The rows of a batch may be split: groups of channels are normalized together, row by row."""
    naming = Naming()
    rows, channels, groups = int(call["N"]), int(call["C"]), int(call["group"])
    row, channel, group = naming.new(rows), naming.new(channels, locked=True), naming.new(groups, locked=True)

    def dims(t: Any) -> Dims:
        if t.ndim == 2 and tuple(t.shape) == (rows, groups):
            return (row, group)
        return (channel,) if t.ndim == 1 else (row, channel, *naming.all(t.shape[2:], True))

    def arguments(args: list[Any], kwargs: dict[str, Any], local: Local) -> None:
        args[position] = local.inputs[0].local(local.mesh, tuple(call.inputs[0].shape))[0]

    is_gradient = call.target._opname.endswith("backward")
    position = 5 if is_gradient else 3
    inputs, outputs = [dims(t) for t in call.inputs], [dims(t) for t in call.outputs if t is not None]
    each = tuple({row[0]: "sum"} if is_gradient and out == (channel,) else {} for out in outputs)
    return naming.rule(inputs, outputs, reduced_each=each, arguments=arguments)
