"""The primitives of MindSpore's `_grad_ops` for gradients of pools, convolutions, resizes, pads and samplings: `MaxPoolGrad`, …

Each is the vector-Jacobian product of the forward primitive. Arguments that have the forward outputs are not needed.
"""
from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from torchspore.mindspore.ops.declaration.arguments import as_dtype, sizes
from torchspore.mindspore.ops.declaration.declare import OPERATORS, op
from torchspore.mindspore.ops.declaration.indices import as_index
from torchspore.mindspore.ops.gradients.grad_primitives import vjp
from torchspore.mindspore.ops.gradients.grad_structures import sampled_back

T = torch.Tensor
Size = int | tuple[int, ...]


def _back(forward: str, cotangent: T, *inputs: T, **options: Any) -> T:
    """Return the gradient of the operator `forward` for its first input."""
    body = OPERATORS[forward].body
    return vjp(lambda x: body(x, *inputs[1:], **options), inputs[:1], cotangent)[0]


def _zeros(shape: Any, like: T) -> T:
    """Return zeros of this shape, the point at which a linear operator's gradient is taken."""
    return torch.zeros(sizes(shape), dtype=like.dtype, device=like.device)


def _agree(name: str, value: T, like: str, expected_shape: Any) -> None:
    if tuple(value.shape) != tuple(expected_shape):
        raise ValueError(f"expected {name} of the shape of {like}, {tuple(expected_shape)}, got {tuple(value.shape)}.")


def _channels_first(data_format: str, expected_format: str) -> None:
    if data_format != expected_format:
        raise ValueError(f"data_format={data_format!r}: expected {expected_format!r}.")


# ---- pools


@op(primitive="MaxPoolGrad", init=("kernel_size", "strides", "pad_mode", "data_format"))
def _max_pool_grad(
    x_origin: T, out_origin: T, grad: T, kernel_size: Size = 1, strides: Size = 1, pad_mode: str = "VALID", data_format: str = "NCHW",
) -> T:
    """The gradient of MaxPool, shape (N, C, H, W); `grad` is the gradient of its output."""
    _agree("grad", grad, "out_origin", out_origin.shape)
    return _back("_max_pool", grad, x_origin, kernel_size=kernel_size, strides=strides, pad_mode=pad_mode, data_format=data_format)


@op(primitive="MaxPoolGradGrad", init=("kernel_size", "strides", "pad_mode"))
def _max_pool_grad_grad(x: T, out: T, grad: T, kernel_size: Size = 1, strides: Size = 1, pad_mode: str = "VALID") -> T:
    """The gradient of MaxPoolGrad for its `grad`: the elements of `grad`, of x's shape, at the maxima of MaxPool."""
    _agree("grad", grad, "x", x.shape)
    options = {"kernel_size": kernel_size, "strides": strides, "pad_mode": pad_mode}
    return vjp(lambda cotangent: _back("_max_pool", cotangent, x, **options), (torch.zeros_like(out),), grad)[0]


@op(primitive="MaxPool3DGrad", init=("kernel_size", "strides", "pad_mode", "pad_list", "data_format"))
def _max_pool3d_grad(
    x_origin: T, out_origin: T, grad: T, kernel_size: Size = (1, 1, 1, 1, 1), strides: Size = (1, 1, 1, 1, 1), pad_mode: str = "VALID",
    pad_list: Any = 0, data_format: str = "NCDHW",
) -> T:
    """The gradient of MaxPool3D, of shape (N, C, D, H, W)."""
    _agree("grad", grad, "out_origin", out_origin.shape)
    options = {"kernel_size": _last_three(kernel_size), "strides": _last_three(strides), "data_format": data_format}
    return _back("_max_pool3d", grad, x_origin, pad_mode=pad_mode, pad_list=pad_list, **options)


def _last_three(size: Size) -> Size:
    return size[2:] if isinstance(size, tuple) and len(size) == 5 else size


@op(primitive="AvgPoolGrad", init=("kernel_size", "strides", "pad_mode", "data_format"))
def _avg_pool_grad(
    x: T, out: T, dout: T, kernel_size: Size = 1, strides: Size = 1, pad_mode: str = "VALID", data_format: str = "NCHW",
) -> T:
    """The gradient of AvgPool, of shape (N, C, H, W)."""
    _agree("dout", dout, "out", out.shape)
    return _back("_avg_pool", dout, x, kernel_size=kernel_size, strides=strides, pad_mode=pad_mode, data_format=data_format)


@op(
    primitive="AvgPool3DGrad",
    init=("kernel_size", "strides", "pads", "ceil_mode", "count_include_pad", "divisor_override", "data_format", "pad_mode"),
)
def _avg_pool3d_grad(
    origin_input_shape: Any, grads: T, kernel_size: Size = 1, strides: Size = 1, pads: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int = 0, data_format: str = "NCDHW", pad_mode: str = "pad",
) -> T:
    """The gradient of AvgPool3D for its input of `origin_input_shape`, (N, C, D, H, W)."""
    return _back(
        "_avg_pool3d", grads, _zeros(origin_input_shape, grads), kernel_size=_last_three(kernel_size), strides=_last_three(strides),
        pad_mode=pad_mode, pad=pads, ceil_mode=ceil_mode, count_include_pad=count_include_pad, divisor_override=divisor_override,
        data_format=data_format,
    )


@op(primitive="AdaptiveAvgPool3DGrad")
def _adaptive_avg_pool3d_grad(y_grad: T, orig_input_shape: Any) -> T:
    """The gradient of adaptive_avg_pool3d for its input of `orig_input_shape`."""
    return vjp(lambda x: F.adaptive_avg_pool3d(x, y_grad.shape[-3:]), (_zeros(orig_input_shape, y_grad),), y_grad)[0]


def _scatter_to_positions(gradient: T, like: T, positions: T, axes: int) -> T:
    """Add each value of `gradient` at its position in `positions`, counted over the last `axes` axes of `like`."""
    _agree("the gradient", gradient, "argmax", positions.shape)
    outer = like.shape[: like.ndim - axes]
    flat = torch.zeros((*outer, like.shape[like.ndim - axes :].numel()), dtype=gradient.dtype, device=gradient.device)
    return flat.scatter_add(-1, as_index(positions).flatten(-axes), gradient.flatten(-axes)).reshape(like.shape)


@op(primitive="AdaptiveMaxPool2DGrad")
def _adaptive_max_pool2d_grad(y_grad: T, x: T, argmax: T) -> T:
    """The gradient of AdaptiveMaxPool2D with maxima at `argmax`."""
    return _scatter_to_positions(y_grad, x, argmax, 2)


@op(primitive="AdaptiveMaxPool3DGrad")
def _adaptive_max_pool3d_grad(input_grad: T, x: T, argmax: T) -> T:
    """The gradient of AdaptiveMaxPool3D with maxima at `argmax`."""
    return _scatter_to_positions(input_grad, x, argmax, 3)


@op(
    primitive="MaxPoolGradWithArgmaxV2", init=("kernel_size", "strides", "pads", "dilation", "ceil_mode", "argmax_type"),
)
def _max_pool_grad_argmax_v2(
    x: T, grad: T, argmax: T, kernel_size: Size, strides: Size | None = None, pads: Size = 0, dilation: Size = (1, 1),
    ceil_mode: bool = False, argmax_type: Any = None,
) -> T:
    """The gradient of MaxPoolWithArgmaxV2 with maxima at `argmax`."""
    return _scatter_to_positions(grad, x, argmax, 2)


_POOL = ("kernel_size", "strides", "pad_mode", "data_format")


@op(primitive="MaxPoolGradWithArgmax", init=_POOL)
def _max_pool_grad_argmax(
    x: T, grad: T, argmax: T, kernel_size: Size = 1, strides: Size = 1, pad_mode: str = "VALID", data_format: str = "NCHW",
) -> T:
    """The gradient of MaxPoolWithArgmax with maxima at `argmax`, counted over the channels too."""
    _channels_first(data_format, "NCHW")
    return _scatter_to_positions(grad, x, argmax, 3)


@op(primitive="MaxPoolGradGradWithArgmax", init=_POOL)
def _max_pool_grad_grad_argmax(
    x: T, grad: T, argmax: T, kernel_size: Size = 1, strides: Size = 1, pad_mode: str = "VALID", data_format: str = "NCHW",
) -> T:
    """The gradient of MaxPoolGradWithArgmax for its `grad`: the elements of `grad`, of x's shape, at `argmax`."""
    _channels_first(data_format, "NCHW")
    _agree("grad", grad, "x", x.shape)
    return torch.gather(grad.flatten(-3), -1, as_index(argmax).flatten(-3)).reshape(argmax.shape)


@op(primitive="MaxPool3DGradWithArgmax", init=("ksize", "strides", "pads", "dilation", "ceil_mode", "data_format"))
def _max_pool3d_grad_argmax(
    x: T, grads: T, argmax: T, ksize: Size, strides: Size, pads: Size, dilation: Size = (1, 1, 1), ceil_mode: bool = False,
    data_format: str = "NCDHW",
) -> T:
    """The gradient of MaxPool3DWithArgmax with maxima at `argmax`."""
    _channels_first(data_format, "NCDHW")
    return _scatter_to_positions(grads, x, argmax, 3)


@op(primitive="FractionalMaxPoolGradWithFixedKsize", init=("data_format",))
def _fractional_max_pool_grad(origin_input: T, out_backprop: T, argmax: T, data_format: str = "NCHW") -> T:
    """The gradient of FractionalMaxPoolWithFixedKsize with maxima at `argmax`."""
    _channels_first(data_format, "NCHW")
    return _scatter_to_positions(out_backprop, origin_input, argmax, 2)


@op(primitive="FractionalMaxPool3DGradWithFixedKsize", init=("data_format",))
def _fractional_max_pool3d_grad(origin_input: T, out_backprop: T, argmax: T, data_format: str = "NCDHW") -> T:
    """The gradient of FractionalMaxPool3DWithFixedKsize with maxima at `argmax`."""
    _channels_first(data_format, "NCDHW")
    return _scatter_to_positions(out_backprop, origin_input, argmax, 3)


@op(primitive="MaxUnpool2DGrad", init=("ksize", "strides", "pads", "output_shape", "data_format"))
def _max_unpool2d_grad(
    x: T, grads: T, argmax: T, ksize: Size, strides: Size = 0, pads: Size = 0, output_shape: Any = (), data_format: str = "NCHW",
) -> T:
    """The gradient of MaxUnpool2D: the elements of `grads` at `argmax`."""
    _channels_first(data_format, "NCHW")
    return _taken(x, grads, argmax, 2)


@op(primitive="MaxUnpool3DGrad", init=("ksize", "strides", "pads", "output_shape", "data_format"))
def _max_unpool3d_grad(
    x: T, grads: T, argmax: T, ksize: Size, strides: Size = 0, pads: Size = 0, output_shape: Any = (), data_format: str = "NCDHW",
) -> T:
    """The gradient of MaxUnpool3D: the elements of `grads` at `argmax`."""
    _channels_first(data_format, "NCDHW")
    return _taken(x, grads, argmax, 3)


def _taken(x: T, grads: T, argmax: T, axes: int) -> T:
    _agree("argmax", argmax, "x", x.shape)
    return torch.gather(grads.flatten(-axes), -1, as_index(argmax).flatten(-axes)).reshape(x.shape)


# ---- convolutions


_CONV2D = ("out_channel", "kernel_size", "pad_mode", "pad", "pad_list", "mode", "stride", "dilation", "group", "data_format")


@op(primitive="Conv2DBackpropFilter", init=_CONV2D)
def _conv2d_backprop_filter(
    out_backprop: T, input: T, filter_sizes: Any, out_channel: int, kernel_size: Size, pad_mode: str = "valid", pad: Any = 0,
    pad_list: Any = (0, 0, 0, 0), mode: int = 1, stride: Size = (1, 1), dilation: Size = (1, 1, 1, 1), group: int = 1,
    data_format: str = "NCHW",
) -> T:
    """The gradient of Conv2D for its weight of shape `filter_sizes`; pads come from `pad_mode` and `pad`, as in Conv2D."""
    if any(sizes(pad_list)):
        raise ValueError(f"pad_list={pad_list}: expected zeros.\n\nhint: write pad_mode='pad', pad=...")
    body, weight = OPERATORS["_conv2d"].body, _zeros(filter_sizes, out_backprop)
    options = {"mode": mode, "pad_mode": pad_mode, "pad": pad, "stride": _two(stride), "dilation": _two(dilation), "group": group,
               "data_format": data_format}
    return vjp(lambda weight: body(input, weight, out_channel, kernel_size, **options), (weight,), out_backprop)[0]


def _two(size: Size) -> Size:
    return size[2:] if isinstance(size, tuple) and len(size) == 4 else size


@op(
    primitive="Conv3DBackpropFilter",
    init=("out_channel", "kernel_size", "mode", "pad_mode", "pad", "stride", "dilation", "group", "data_format"),
)
def _conv3d_backprop_filter(
    x: T, out_backprop: T, filter_size: Any, out_channel: int, kernel_size: Size, mode: int = 1, pad_mode: str = "valid", pad: Any = 0,
    stride: Size = (1, 1, 1, 1, 1), dilation: Size = (1, 1, 1, 1, 1), group: int = 1, data_format: str = "NCDHW",
) -> T:
    """The gradient of Conv3D for its weight of shape `filter_size`."""
    body, weight = OPERATORS["_conv3d"].body, _zeros(filter_size, out_backprop)
    options = {"mode": mode, "pad_mode": pad_mode, "pad": pad, "stride": _last_three(stride), "dilation": _last_three(dilation),
               "group": group, "data_format": data_format}
    return vjp(lambda weight: body(x, weight, out_channel, kernel_size, **options), (weight,), out_backprop)[0]


# ---- pads, resizes, samplings


@op(primitive="MirrorPadGrad", init=("mode",))
def _mirror_pad_grad(dy: T, paddings: Any, mode: str = "REFLECT") -> T:
    """The gradient of mirror_pad: `dy` without its borders; mirrored elements add to their sources."""
    pairs = paddings.tolist() if isinstance(paddings, T) else paddings
    shape = [length - before - after for length, (before, after) in zip(dy.shape, pairs)]
    return _back("mirror_pad", dy, _zeros(shape, dy), paddings=paddings, mode=mode)


@op(primitive="PadV3Grad", init=("mode", "paddings_contiguous"))
def _pad_v3_grad(x: T, paddings: Any, mode: str = "reflect", paddings_contiguous: bool = True) -> T:
    """The gradient of PadV3; `x` is the gradient of its output."""
    numbers = sizes(paddings)
    half = len(numbers) // 2
    before, after = (numbers[::2], numbers[1::2]) if paddings_contiguous else (numbers[:half], numbers[half:])
    shape = list(x.shape)
    for axis, (first, last) in enumerate(zip(before, after), 1):
        shape[-axis if paddings_contiguous else axis - 1 - half] -= first + last
    return _back("_pad_v3", x, _zeros(shape, x), paddings=paddings, mode=mode, paddings_contiguous=paddings_contiguous)


@op(primitive="ResizeBicubicGrad", init=("align_corners", "half_pixel_centers"))
def _resize_bicubic_grad(grads: T, image: T, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    """The gradient of ResizeBicubic for `image`, (N, C, H, W)."""
    options = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    return _back("_resize_bicubic", grads, image, size=tuple(grads.shape[-2:]), **options)


@op(primitive="ResizeLinear1DGrad", init=("coordinate_transformation_mode",))
def _resize_linear_grad(grads: T, x: T, coordinate_transformation_mode: str = "align_corners") -> T:
    """The gradient of ResizeLinear1D for `x`, (N, C, W)."""
    return _back("_resize_linear", grads, x, size=grads.shape[-1:], coordinate_transformation_mode=coordinate_transformation_mode)


@op(primitive="ResizeNearestNeighborV2Grad", init=("align_corners", "half_pixel_centers"))
def _resize_nearest_v2_grad(grads: T, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    """The gradient of ResizeNearestNeighborV2 for its input of `size` (height, width)."""
    options = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    return _back("_resize_nearest_v2", grads, _zeros([*grads.shape[:2], *sizes(size)], grads), size=tuple(grads.shape[-2:]), **options)


@op(primitive="UpsampleNearest3DGrad")
def _upsample_nearest3d_grad(dy: T, input_size: Any, output_size: Any = None, scales: Any = None) -> T:
    """The gradient of UpsampleNearest3D for its input of `input_size` (N, C, D, H, W)."""
    return _back("_upsample_nearest3d", dy, _zeros(input_size, dy), output_size=output_size, scales=scales)


@op(primitive="UpsampleTrilinear3DGrad", init=("align_corners",))
def _upsample_trilinear3d_grad(dy: T, input_size: Any, output_size: Any = None, scales: Any = None, align_corners: bool = False) -> T:
    """The gradient of UpsampleTrilinear3D for its input of `input_size` (N, C, D, H, W)."""
    options = {"output_size": output_size, "scales": scales, "align_corners": align_corners}
    return _back("_upsample_trilinear3d", dy, _zeros(input_size, dy), **options)


@op(primitive="AffineGridGrad", init=("align_corners",))
def _affine_grid_grad(y_grad: T, x_size: Any, align_corners: bool = False) -> T:
    """The gradient of AffineGrid for theta, (N, 2, 3) or (N, 3, 4), with images of `x_size`."""
    axes = len(sizes(x_size)) - 2
    theta = _zeros((y_grad.shape[0], axes, axes + 1), y_grad)
    return _back("_affine_grid", y_grad, theta, output_size=tuple(sizes(x_size)), align_corners=align_corners)


@op(primitive="GridSampler3DGrad", init=("interpolation_mode", "padding_mode", "align_corners", "output_mask"))
def _grid_sampler_3d_grad(
    grad: T, input_x: T, grid: T, interpolation_mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False,
    output_mask: Any = (1, 1),
) -> tuple[T, ...]:
    """The gradients of GridSampler3D for the input and the grid; those that `output_mask` does not request are zeros."""
    return sampled_back(grad, input_x, grid, interpolation_mode, padding_mode, align_corners, output_mask)


@op(primitive="ROIAlignGrad", init=("pooled_height", "pooled_width", "spatial_scale", "sample_num"))
def _roi_align_grad(
    dy: T, rois: T, xdiff_shape: Any, pooled_height: int, pooled_width: int, spatial_scale: float, sample_num: int = 2,
) -> T:
    """The gradient of ROIAlign for its features of shape `xdiff_shape`, (N, C, H, W)."""
    options = {"pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": spatial_scale, "sample_num": sample_num}
    return _back("_roi_align", dy, _zeros(xdiff_shape, dy), rois, **options)


@op(primitive="LRNGrad", init=("depth_radius", "bias", "alpha", "beta"))
def _lrn_grad(grads: T, x: T, y: T, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5) -> T:
    """The gradient of lrn for x, (N, C, H, W), with its result `y`."""
    _agree("y", y, "x", x.shape)
    return _back("lrn", grads, x, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta)


@op(primitive="CropAndResizeGradImage", init=("T", "method"))
def _crop_grad_image(grads: T, boxes: T, box_index: T, image_size: Any, T: Any = None, method: str = "bilinear") -> Any:
    """The gradient of CropAndResize for its images of `image_size` (B, H, W, C), of dtype `T`."""
    images = _zeros(image_size, grads)
    options = {"crop_size": tuple(grads.shape[1:3]), "method": method, "extrapolation_value": 0.0}
    gradients = _back("_crop_and_resize", grads, images, boxes, box_index, **options)
    return gradients if T is None else gradients.to(as_dtype(T))


@op(primitive="CropAndResizeGradBoxes", init=("method",))
def _crop_grad_boxes(grads: T, images: T, boxes: T, box_index: T, method: str = "bilinear") -> T:
    """The gradient of CropAndResize for its boxes (K, 4); at rows and columns of pixels it is 0, as between equal ones."""
    if method != "bilinear":
        raise ValueError(f"method={method!r}: expected 'bilinear'.")
    height, width = images.shape[1:3]
    rows, at_y = _crossed(boxes[:, 0], boxes[:, 2], grads.shape[1], height)
    columns, at_x = _crossed(boxes[:, 1], boxes[:, 3], grads.shape[2], width)
    inside = ((rows >= 0) & (rows <= height - 1)).unsqueeze(2) & ((columns >= 0) & (columns <= width - 1)).unsqueeze(1)
    image = images[as_index(box_index)].to(grads.dtype)
    number = torch.arange(image.shape[0], device=image.device).reshape(-1, 1, 1)

    def corner(row: T, column: T) -> T:
        return image[number, row.clamp(0, height - 1).long().unsqueeze(2), column.clamp(0, width - 1).long().unsqueeze(1)]

    top, bottom, left, right = rows.floor(), rows.ceil(), columns.floor(), columns.ceil()
    down, along = (rows - top)[:, :, None, None], (columns - left)[:, None, :, None]
    upper_left, upper_right, lower_left, lower_right = (corner(row, column) for row in (top, bottom) for column in (left, right))
    by_row = (1 - along) * (lower_left - upper_left) + along * (lower_right - upper_right)
    by_column = (1 - down) * (upper_right - upper_left) + down * (lower_right - lower_left)
    by_row, by_column = ((part * grads).sum(-1) * inside for part in (by_row, by_column))
    (first_y, last_y), (first_x, last_x) = at_y, at_x
    return torch.stack([
        (by_row * first_y.unsqueeze(1)).sum((1, 2)), (by_column * first_x).sum((1, 2)),
        (by_row * last_y.unsqueeze(1)).sum((1, 2)), (by_column * last_x).sum((1, 2)),
    ], 1)


def _crossed(start: T, end: T, count: int, length: int) -> tuple[T, tuple[T, T]]:
    """Return the sample points of a box in pixels (K, count), and their derivatives by its start and its end (count,)."""
    steps = torch.arange(count, dtype=start.dtype, device=start.device)
    share = steps / (count - 1) if count > 1 else torch.full_like(steps, 0.5)
    by_start, by_end = (1 - share) * (length - 1), share * (length - 1)
    return start.unsqueeze(1) * by_start + end.unsqueeze(1) * by_end, (by_start, by_end)
