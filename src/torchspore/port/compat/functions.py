"""Functions that torch lacks. The output of a port contains the text of those that it calls."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def after(value: Any, _: Any) -> Any:
    """The first value; the second has been computed before."""
    return value


def as_shape(size: int | Sequence[int]) -> Sequence[int]:
    """A shape, also for one number."""
    return (size,) if isinstance(size, int) else size


def as_tensor(value: Any, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor of a value, which may be a tensor, an array or a number."""
    return torch.as_tensor(value).detach().to(dtype) if dtype is not None else torch.as_tensor(value).detach()


def as_array(value: Any) -> Any:
    """An array of a tensor; another value as it is."""
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value


def tensor_of_numbers(values: Sequence[float]) -> Tensor:
    """A tensor of numbers: int32 of integers, else float32."""
    return torch.tensor(values, dtype=torch.int32 if all(isinstance(value, int) for value in values) else torch.float32)


def copied_tensor(value: Any) -> Tensor:
    """A new tensor of a value, which may be a tensor, an array, a list or a number."""
    return value.detach().clone() if isinstance(value, Tensor) else torch.tensor(value)


def move_channels_first(layer: nn.Module, inputs: Any) -> Any:
    """Move the last axis of a layer's input behind the first."""
    return inputs[0].movedim(-1, 1), *inputs[1:]


def move_channels_last(layer: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    """Move the second axis of a layer's output to the end."""
    return output.movedim(1, -1)


def in_format(layer: nn.Module, data_format: str) -> nn.Module:
    """The layer; with the format "NHWC" the channels are the last axis of its input and output."""
    if data_format == "NHWC":
        layer.register_forward_pre_hook(move_channels_first)
        layer.register_forward_hook(move_channels_last)
    return layer


def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Any:
    """The values, which are limited from below and from above."""
    x = x if clip_value_min is None else maximum(x, clip_value_min)
    return x if clip_value_max is None else minimum(x, clip_value_max)


def assign(parameter: Tensor, value: Tensor | float) -> Tensor:
    """Write a value into a parameter, without a gradient."""
    with torch.no_grad():
        return parameter.copy_(torch.as_tensor(value))


def maximum(x: Any, y: Any) -> Tensor:
    """The larger values; one of the two may be a number."""
    x, y = _two_tensors(x, y)
    return torch.maximum(x, y)


def minimum(x: Any, y: Any) -> Tensor:
    """The smaller values; one of the two may be a number."""
    x, y = _two_tensors(x, y)
    return torch.minimum(x, y)


def _two_tensors(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors on the same device; a number takes the dtype of the other where it fits."""
    if not isinstance(x, Tensor):
        x = torch.as_tensor(x, device=y.device).to(torch.result_type(x, y))
    if not isinstance(y, Tensor):
        y = torch.as_tensor(y, device=x.device).to(torch.result_type(x, y))
    return x, y


def floor_divide(x: Any, y: Any) -> Any:
    """x // y; torch's operator has no gradient, and raises an error where one is recorded."""
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        return x // y
    with torch.no_grad():
        return torch.as_tensor(x // y)


def largest(x: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The largest values along an axis and their positions; of all values without an axis."""
    if dim is None:
        return x.max(), torch.zeros((), dtype=torch.int64, device=x.device)
    values, indices = torch.max(x, dim=dim, keepdim=keepdim)
    return values, indices


def smallest(x: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest values along an axis and their positions; of all values without an axis."""
    if dim is None:
        return x.min(), torch.zeros((), dtype=torch.int64, device=x.device)
    values, indices = torch.min(x, dim=dim, keepdim=keepdim)
    return values, indices


def reverse(x: Tensor, axis: int) -> Tensor:
    """The slices along an axis in reverse order, as x[::-1]."""
    return torch.flip(x, (axis,))


def reverse_sequence(x: Tensor, lengths: Tensor, axis: int, batch_axis: int = 0) -> Tensor:
    """Reverse the first `lengths` elements of each sample along an axis."""
    positions = torch.arange(x.shape[axis], device=x.device)
    index = torch.where(positions < lengths[:, None], lengths[:, None] - 1 - positions, positions)
    shape = [1] * x.dim()
    shape[batch_axis], shape[axis] = x.shape[batch_axis], x.shape[axis]
    index = index if batch_axis % x.dim() < axis % x.dim() else index.T
    return torch.gather(x, axis, index.reshape(shape).expand_as(x))


def two_sided(padding: Any) -> Any:
    """Return the padding of torch for four or six numbers, two for each direction: top, bottom, left, right."""
    if not isinstance(padding, (tuple, list)) or len(padding) not in (4, 6):
        return padding
    if tuple(padding[::2]) != tuple(padding[1::2]):
        raise ValueError(f"padding {padding}: torch pads both sides of a direction equally")
    return tuple(padding[::2])


def use_batch_statistics(norm: nn.Module, inputs: Any) -> None:
    """Let the call of a norm use the statistics of the batch."""
    norm.train(True)


def use_running_statistics(norm: nn.Module, inputs: Any) -> None:
    """Let the call of a norm use the running statistics."""
    norm.train(False)


def with_statistics(norm: nn.Module, uses_batch: bool | None) -> nn.Module:
    """Let a norm use the statistics of the batch always (True), never (False), or in training (None)."""
    if uses_batch is not None:
        norm.register_forward_pre_hook(use_batch_statistics if uses_batch else use_running_statistics)
    return norm


def reverse_axes(x: Tensor) -> Tensor:
    """The axes in reverse order."""
    return x.permute(tuple(reversed(range(x.ndim))))


def numpy_reshape(x: Any, shape: Any) -> Any:
    """The values in another shape, for tensors and arrays."""
    return x.reshape(shape)


def numpy_transpose(x: Any, axes: Any = None) -> Any:
    """The axes in another order, for tensors and arrays."""
    if isinstance(x, Tensor):
        return x.permute(tuple(reversed(range(x.ndim))) if axes is None else axes)
    return x.transpose(axes)


def transpose_axes(x: Tensor, *axes: int) -> Tensor:
    """Swap two axes, or bring all into another order."""
    return x.transpose(*axes) if len(axes) == 2 else x.permute(*axes)


def largest_along(x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The largest values along an axis, or several."""
    return torch.max(x, dim=dim, keepdim=keepdim).values if isinstance(dim, int) else torch.amax(x, dim=dim, keepdim=keepdim)


def smallest_along(x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The smallest values along an axis, or several."""
    return torch.min(x, dim=dim, keepdim=keepdim).values if isinstance(dim, int) else torch.amin(x, dim=dim, keepdim=keepdim)


def diagonal_tensor(x: Tensor) -> Tensor:
    """A tensor with the axes of x twice, and x on its diagonal."""
    return torch.diag(x.reshape(-1)).reshape(x.shape + x.shape)


def take(x: Tensor, index: Tensor, axis: int) -> Tensor:
    """The slices along an axis at the positions."""
    axis = axis % x.ndim
    values = torch.index_select(x, axis, index.reshape(-1).long())
    return values.reshape(x.shape[:axis] + index.shape + x.shape[axis + 1:])


def select(condition: Any, x: Any, y: Any) -> Tensor:
    """x where the condition holds, else y."""
    return torch.where(torch.as_tensor(condition), x, y)


def name_of(value: Any) -> Any:
    """The name of an object. A parameter has that of `trainable_params` or `get_parameters`: torch gives it none."""
    if not isinstance(value, Tensor):
        return value.name
    if "name_in_model" not in vars(value):
        raise AttributeError("a parameter has no name in torch: iterate over named_parameters() of the model")
    return vars(value)["name_in_model"]


def parameter_named(owner: Any, name: str, torch_name: str) -> Any:
    """An attribute of an object, or the parameter of a layer, which has another name in torch."""
    return getattr(owner, name) if hasattr(owner, name) else getattr(owner, torch_name)


def with_zero_row(layer: Any, row: Any) -> Any:
    """The layer, whose weight has zeros in a row; unlike torch's padding_idx, gradients reach it."""
    if row is not None:
        with torch.no_grad():
            layer.weight[row] = 0
    return layer


def frozen(layer: Any) -> Any:
    """The layer, whose parameters are not trained."""
    return layer.requires_grad_(False)


def norm(x: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:
    """A norm of vectors or matrices; for matrices an order of 1.0 or 2.0, a float, is the Frobenius norm."""
    is_of_matrices = x.ndim == 2 if dim is None else isinstance(dim, (tuple, list)) and len(dim) == 2
    if is_of_matrices and isinstance(ord, float) and abs(ord) in (1, 2):
        ord = None
    return torch.linalg.norm(x, ord, dim, keepdim)


def gather_nd(x: Tensor, index: Tensor) -> Tensor:
    """The slices whose positions are the rows of `index`."""
    return x[tuple(index.long().unbind(-1))]


def scatter_nd(x: Tensor, index: Tensor, updates: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of x with slices replaced, or added to, at the rows of `index`."""
    return x.index_put(tuple(index.long().unbind(-1)), updates, accumulate=accumulate)


def scatter_rows(x: Tensor, index: Tensor, updates: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of x with slices of the first axis replaced, or added to."""
    return x.index_put((index.long(),), updates, accumulate=accumulate)


def scatter_elements(x: Tensor, index: Tensor, updates: Tensor, axis: int = 0, reduction: str = "none") -> Tensor:
    """A copy of x with elements replaced along an axis, or added to."""
    if reduction == "add":
        return x.scatter_add(axis, index.long(), updates)
    return x.scatter(axis, index.long(), updates)


def segment_sum(x: Tensor, segments: Tensor, count: int) -> Tensor:
    """The sums of the slices that share a segment."""
    flat = segments.reshape(-1).long()
    values = x.reshape((flat.shape[0],) + tuple(x.shape[segments.ndim:]))
    return torch.zeros((count,) + tuple(values.shape[1:]), dtype=x.dtype, device=x.device).index_add(0, flat, values)


def segment_max(x: Tensor, segments: Tensor, count: int) -> Tensor:
    """The largest values of the slices that share a segment; the smallest number of the dtype where none does."""
    at = segments.reshape((-1,) + (1,) * (x.ndim - 1)).expand(x.shape).long()
    lowest = torch.full((count,) + tuple(x.shape[1:]), torch.finfo(x.dtype).min, dtype=x.dtype, device=x.device)
    return lowest.scatter_reduce(0, at, x, "amax")


def one_hot(index: Tensor, depth: int, on: Any = 1.0, off: Any = 0.0, axis: int = -1) -> Tensor:
    """`on` at the positions along a new axis, `off` elsewhere; a position outside of the depth has no `on`."""
    positions = torch.arange(depth, device=index.device)
    is_on = (index.unsqueeze(-1) == positions).movedim(-1, axis)
    return torch.where(is_on, torch.as_tensor(on, device=index.device), torch.as_tensor(off, device=index.device))


def strided_slice(x: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None) -> Tensor:
    """x[begin:end:strides] for each axis."""
    steps = strides if strides is not None else (1,) * len(begin)
    return x[tuple(slice(*bounds) for bounds in zip(begin, end, steps))]


def slice_of(x: Tensor, begin: Sequence[int], size: Sequence[int]) -> Tensor:
    """The part of x that begins at `begin` and has the lengths `size`; -1 is all that follows."""
    return x[tuple(slice(first, None if length == -1 else first + length) for first, length in zip(begin, size))]


def divide_or_zero(x: Any, y: Tensor) -> Tensor:
    """x / y, and 0 where y is 0."""
    is_zero = y == 0
    divisor = torch.where(is_zero, torch.ones_like(y), y)
    is_whole = isinstance(x, Tensor) and not x.is_floating_point() and not y.is_floating_point()
    quotient = torch.div(x, divisor, rounding_mode="trunc" if is_whole else None)
    return torch.where(is_zero, torch.zeros((), dtype=y.dtype, device=y.device), quotient)


def bias_add(x: Tensor, bias: Tensor) -> Tensor:
    """Add one number to each channel (axis 1)."""
    return x + bias.reshape((-1,) + (1,) * (x.ndim - 2))


def l2_normalize(x: Tensor, axis: Any = 0, epsilon: float = 1e-4) -> Tensor:
    """x divided by its length along an axis."""
    return x / torch.sqrt(torch.clamp(torch.sum(x * x, dim=axis, keepdim=True), min=epsilon))


def dropout_with_mask(x: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """The values after dropout, and the mask."""
    mask = (torch.rand_like(x) >= p).to(x.dtype)
    return x * mask / (1 - p), mask


def dropout_of_channels(x: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """The values after a dropout of full channels, and the mask of all values."""
    channels = torch.rand(x.shape[:2], device=x.device) >= p
    mask = channels.reshape(*x.shape[:2], *[1] * (x.ndim - 2)).expand(x.shape)
    return x * mask / (1 - p), mask


def class_numbers(target: Tensor) -> Tensor:
    """Class numbers as torch's losses take them (int64); probabilities stay."""
    return target if target.is_floating_point() else target.long()


def kl_div(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The divergence of log probabilities from probabilities; values of the target up to 0 count as 0."""
    target = target.detach()
    logarithm = torch.log(torch.where(target > 0, target, torch.ones_like(target)))
    loss = torch.where(target > 0, target * (logarithm - x), torch.zeros_like(x))
    if reduction == "batchmean":
        return loss.sum() / x.shape[0]
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def softmax_cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of each row, and its gradient for the logits."""
    labels = labels.detach()
    gradient = (F.softmax(logits, dim=-1) - labels).detach()
    loss = -(labels * F.log_softmax(logits.detach(), dim=-1)).sum(-1)
    product = (logits * gradient).sum(-1)                  # brings MindSpore's gradient, also where labels do not add up to 1
    return loss + (product - product.detach()), gradient


def nll_loss(x: Tensor, labels: Tensor, weight: Tensor, reduction: str = "mean") -> tuple[Tensor, Tensor]:
    """The loss, and the sum of the weights."""
    return F.nll_loss(x, labels.long(), weight, reduction=reduction), weight[labels.long()].sum()


def conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution with MindSpore's pad_mode."""
    if pad_mode == "same":
        x = pad_to_keep_size(x, weight.shape[2:], as_pair(stride), as_pair(dilation))
    return F.conv2d(x, weight, bias, stride, padding if pad_mode == "pad" else 0, dilation, groups)


def as_pair(value: Any) -> tuple[int, ...]:
    """Two numbers, of one or two."""
    return (value, value) if isinstance(value, int) else tuple(value)[-2:]


def pad_to_keep_size(x: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], value: float = 0.0) -> Tensor:
    """Pad x so that windows give ceil(size / stride) results; an odd number has one more at the end."""
    padding: list[int] = []
    for size, length, step, gap in zip(x.shape[2:], kernel, stride, dilation):
        total = max((-(-size // step) - 1) * step + gap * (length - 1) + 1 - size, 0)
        padding = [total // 2, total - total // 2, *padding]
    return F.pad(x, padding, value=value)


def fill_initially(tensor: Tensor, initial: str | float | Callable[[Tensor], Any]) -> Tensor:
    """Fill a tensor by an initializer: its name, a number, or a function."""
    by_name: dict[str, Callable[[Tensor], Any]] = {
        "zeros": nn.init.zeros_, "ones": nn.init.ones_, "zero": nn.init.zeros_, "one": nn.init.ones_,
        "normal": lambda t: nn.init.normal_(t, std=0.01),
        "xavier_uniform": nn.init.xavier_uniform_, "he_uniform": nn.init.kaiming_uniform_, "he_normal": nn.init.kaiming_normal_,
        "xavier_normal": nn.init.xavier_normal_, "uniform": lambda t: nn.init.uniform_(t, -0.07, 0.07),
    }
    with torch.no_grad():
        if isinstance(initial, str):
            by_name[initial.lower()](tensor)
        elif isinstance(initial, Tensor):
            tensor.copy_(initial)
        elif callable(initial):
            initial(tensor)
        else:
            tensor.fill_(initial)
    return tensor


def initialized(module: Any, **fill: Callable[[Tensor], Any]) -> Any:
    """The layer, whose parameters are filled by the functions."""
    for name, function in fill.items():
        if getattr(module, name, None) is not None:
            function(getattr(module, name))
    return module


def initialized_by(module: Any, **initial: Any) -> Any:
    """The layer, with initial values: a number, a tensor, a function, or the name of an initializer."""
    for name, value in initial.items():
        if value is not None and getattr(module, name, None) is not None:
            fill_initially(getattr(module, name), value)
    return module


def sequence(modules: Any) -> nn.Sequential:
    """A Sequential of a list of layers, or of layers by name."""
    if isinstance(modules, nn.Module):
        return nn.Sequential(modules)
    return nn.Sequential(modules) if isinstance(modules, OrderedDict) else nn.Sequential(*modules)


def activation_named(name: Any) -> Any:
    """The layer of an activation by its name."""
    layers: dict[str, Callable[[], nn.Module]] = {
        "relu": nn.ReLU, "relu6": nn.ReLU6, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "gelu": lambda: nn.GELU(approximate="tanh"),
        "elu": nn.ELU, "hswish": nn.Hardswish, "hsigmoid": nn.Hardsigmoid, "softmax": lambda: nn.Softmax(dim=-1), "silu": nn.SiLU,
        "leakyrelu": lambda: nn.LeakyReLU(0.2), "logsoftmax": lambda: nn.LogSoftmax(dim=-1), "mish": nn.Mish,
    }
    return layers[name.lower()]() if isinstance(name, str) else name


def split(x: Tensor, split_size_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of a tensor of this size, or these sizes."""
    return torch.split(x, split_size_or_sections, dim=axis)


def pad_axes(x: Tensor, paddings: Sequence[Sequence[int]]) -> Tensor:
    """Zeros before and behind each axis."""
    return F.pad(x, [int(number) for pair in reversed(paddings) for number in pair])


def conv2d_transpose(
    x: Tensor, weight: Tensor, size: Sequence[int], stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:
    """The gradient of a convolution for its input, which has this size; `padding`: top, bottom, left, right."""
    top, _, left, _ = padding if isinstance(padding, (tuple, list)) else (padding,) * 4
    complete = F.conv_transpose2d(x, weight, None, stride, 0, 0, groups, dilation)
    rows, columns = top + size[2], left + size[3]
    complete = F.pad(complete, [0, max(0, columns - complete.shape[3]), 0, max(0, rows - complete.shape[2])])
    return complete[:, :, top:rows, left:columns]


def replace_data(parameter: Tensor, value: Tensor) -> None:
    """Write values of another shape."""
    parameter.data = value.detach()


def missing(name: str) -> Callable[..., Any]:
    """A function that MindSpore lacks: the original fails where it calls it."""
    def fail(*_: Any, **__: Any) -> Any:
        raise AttributeError(f"MindSpore has no {name}")

    return fail
