"""Boxes in images: overlaps, suppression, encoding, and regions that are cut out of images and features."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.formulas.bitonic_sort import best_first
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.indices import as_index
from torchspore.mindspore.ops.declaration.torch_messages import FROM_THE_END
from torchspore.mindspore.ops.losses.loss import constant_in

T = torch.Tensor


@op(primitive="IOU", init=("mode",))
def _iou_primitive(anchor_boxes: T, gt_boxes: T, mode: str = "iou") -> T:
    """Overlaps of boxes (N, 4) with boxes (M, 4), shape (M, N): intersection over union, or over the truth's area for mode 'iof'."""
    return _overlap(anchor_boxes, gt_boxes, mode)


@op()
def iou(anchor_boxes: T, gt_boxes: T, mode: str = "iou") -> T:
    """Overlaps of boxes (N, 4) with boxes (M, 4), shape (M, N): intersection over union, or over the truth's area for mode 'iof'."""
    return _overlap(anchor_boxes, gt_boxes, mode)


def _overlap(anchors: T, truth: T, mode: str) -> T:
    """Boxes are x0, y0, x1, y1 of pixels that belong to them, so a side has one pixel more than the difference. No gradient."""
    if mode not in ("iou", "iof"):
        raise ValueError(f"mode={mode!r}: expected 'iou' or 'iof'.")
    for boxes in (anchors, truth):
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise ValueError(f"expected boxes of shape (N, 4), got {tuple(boxes.shape)}.")
    a, b = constant_in(anchors).unsqueeze(0), constant_in(truth).unsqueeze(1)
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    intersection = torch.clamp(high - low + 1, min=0).prod(-1)
    anchor_area, truth_area = ((boxes[..., 2:] - boxes[..., :2] + 1).prod(-1) for boxes in (a, b))
    return intersection / (truth_area if mode == "iof" else anchor_area + truth_area - intersection)


def suppressed(overlaps: T, threshold: Any) -> T:
    """Return which boxes stay (bool), in the order of their scores: those that do not overlap a better box that stays."""
    above = torch.triu(overlaps > threshold, 1)
    keep = torch.ones(overlaps.shape[0], dtype=torch.bool, device=overlaps.device)
    for _ in range(overlaps.shape[0]):
        # Each round settles at least one more box of the order; the loop ends when nothing changes.
        now = ~(above & keep.unsqueeze(-1)).any(0)
        if bool((now == keep).all()):
            break
        keep = now
    return keep


@op(primitive="NMSWithMask", init=("iou_threshold",))
def _nms_with_mask(bboxes: T, iou_threshold: float = 0.5) -> Any:
    """Boxes (N, 5) sorted by score, their indexes (int32), and which stay: those that do not overlap a better box that stays."""
    order = best_first(bboxes[:, 4].detach())
    boxes = bboxes.index_select(0, order)
    left, top, right, bottom = boxes[:, :4].unbind(-1)
    area = (right - left) * (bottom - top)
    wide = torch.minimum(right.unsqueeze(0), right.unsqueeze(1)) - torch.maximum(left.unsqueeze(0), left.unsqueeze(1))
    high = torch.minimum(bottom.unsqueeze(0), bottom.unsqueeze(1)) - torch.maximum(top.unsqueeze(0), top.unsqueeze(1))
    intersection = wide.clamp(min=0) * high.clamp(min=0)
    overlaps = intersection / (area.unsqueeze(0) + area.unsqueeze(1) - intersection)
    return boxes, torch.arange(boxes.shape[0], dtype=torch.int32, device=boxes.device), suppressed(overlaps, iou_threshold)


@op(primitive="NonMaxSuppressionWithOverlaps")
def _non_max_suppression_with_overlaps(
    overlaps: T, scores: T, max_output_size: Any, overlap_threshold: Any, score_threshold: Any,
) -> T:
    """Indexes (int32) of at most `max_output_size` boxes, best first; none overlaps a better one of them above the threshold."""
    order = torch.sort(scores, descending=True, stable=True).indices
    order = order[scores[order] > float(score_threshold)]
    keep = suppressed(overlaps[order][:, order], float(overlap_threshold))
    return order[keep][: int(max_output_size)].to(torch.int32)


@op(primitive="NonMaxSuppressionV3")
def _non_max_suppression(boxes: T, scores: T, max_output_size: Any, iou_threshold: Any, score_threshold: Any) -> T:
    """Indexes (int32) of at most `max_output_size` boxes (N, 4), best first; none overlaps a better one of them above the threshold."""
    return _select_boxes(boxes, scores, int(max_output_size), float(iou_threshold), float(score_threshold)).to(torch.int32)


@op(primitive="CheckValid")
def check_valid(bboxes: T, img_metas: T) -> T:
    """Test whether boxes (N, 4) are inside an image, whose height, width and ratio are `img_metas` (3,). Shape (N,)."""
    height, width = (img_metas[:2] * img_metas[2]).unbind()
    left, top, right, bottom = bboxes.unbind(-1)
    return (left >= 0) & (top >= 0) & (right <= width - 1) & (bottom <= height - 1)


def _shape_of(boxes: T) -> tuple[T, T]:
    """Return the centers and the sizes (N, 2) of boxes (N, 4)."""
    low, high = boxes[:, :2], boxes[:, 2:]
    return (low + high) * 0.5, high - low + 1


def _four(values: Any, like: T) -> T:
    numbers = [float(v) for v in values]
    if len(numbers) != 4:
        raise ValueError(f"expected 4 numbers, got {len(numbers)}.")
    return constant(numbers, like.device, like.dtype)


def _encode(anchors: T, truth: T, means: Any, stds: Any) -> T:
    centre, size = _shape_of(anchors)
    truth_center, truth_size = _shape_of(truth)
    deltas = torch.cat([(truth_center - centre) / size, torch.log(truth_size / size)], -1)
    return (deltas - _four(means, deltas)) / _four(stds, deltas)


@op(primitive="BoundingBoxEncode", init=("means", "stds"))
def _bounding_box_encode(anchor_box: T, groundtruth_box: T, means: Any = (0.0, 0.0, 0.0, 0.0), stds: Any = (1.0, 1.0, 1.0, 1.0)) -> T:
    """Encode boxes (N, 4) relative to their anchors: shifts in units of anchor size and logarithms of size ratios, normalized."""
    return _encode(anchor_box, groundtruth_box, means, stds)


@op()
def bounding_box_encode(anchor_box: T, groundtruth_box: T, means: Any = (0.0, 0.0, 0.0, 0.0), stds: Any = (1.0, 1.0, 1.0, 1.0)) -> T:
    """Encode boxes (N, 4) relative to their anchors: shifts in units of anchor size and logarithms of size ratios, normalized."""
    return _encode(anchor_box, groundtruth_box, means, stds)


def _decode(anchors: T, deltas: T, max_shape: Any, means: Any, stds: Any, wh_ratio_clip: float) -> T:
    if len(max_shape) != 2:
        raise ValueError(f"max_shape={max_shape!r}: expected (height, width).")
    deltas = deltas * _four(stds, deltas) + _four(means, deltas)
    limit = abs(float(torch.log(torch.tensor(wh_ratio_clip))))
    centre, size = _shape_of(anchors)
    size = size * torch.exp(torch.clamp(deltas[:, 2:], -limit, limit))
    centre = centre + (anchors[:, 2:] - anchors[:, :2] + 1) * deltas[:, :2]
    low, high = centre - size * 0.5 + 0.5, centre + size * 0.5 - 0.5
    end = constant([max_shape[1], max_shape[0]], deltas.device, deltas.dtype)
    return torch.cat([torch.minimum(low.clamp(min=0), end), torch.minimum(high.clamp(min=0), end)], -1)


@op(primitive="BoundingBoxDecode", init=("max_shape", "means", "stds", "wh_ratio_clip"))
def _bounding_box_decode(
    anchor_box: T, deltas: T, max_shape: Any, means: Any = (0.0, 0.0, 0.0, 0.0), stds: Any = (1.0, 1.0, 1.0, 1.0),
    wh_ratio_clip: float = 0.016,
) -> T:
    """Decode `deltas` of `bounding_box_encode` to boxes (N, 4), clipped to an image of `max_shape` (height, width)."""
    return _decode(anchor_box, deltas, max_shape, means, stds, wh_ratio_clip)


@op()
def bounding_box_decode(
    anchor_box: T, deltas: T, max_shape: Any, means: Any = (0.0, 0.0, 0.0, 0.0), stds: Any = (1.0, 1.0, 1.0, 1.0),
    wh_ratio_clip: float = 0.016,
) -> T:
    """Decode `deltas` of `bounding_box_encode` to boxes (N, 4), clipped to an image of `max_shape` (height, width)."""
    return _decode(anchor_box, deltas, max_shape, means, stds, wh_ratio_clip)


def _sampled(images: T, numbers: T, rows: T, columns: T) -> T:
    """Sample images (B, C, H, W) bilinearly at image numbers (K,), rows (K, P) and columns (K, Q); return (K, C, P, Q)."""
    height, width = images.shape[-2:]

    def corners(positions: T, length: int) -> tuple[T, T, T]:
        low = torch.floor(positions).clamp(0, length - 1)
        share = (positions - low).clamp(0, 1)
        return low.long(), (low + 1).clamp(max=length - 1).long(), share

    top, bottom, down = corners(rows, height)
    left, right, across = corners(columns, width)
    image = numbers.long()[:, None, None]

    def at(row: T, column: T) -> T:
        return images.permute(0, 2, 3, 1)[image, row.unsqueeze(-1), column.unsqueeze(-2)]

    down, across = down[:, :, None, None], across[:, None, :, None]
    above = at(top, left) * (1 - across) + at(top, right) * across
    below = at(bottom, left) * (1 - across) + at(bottom, right) * across
    return (above * (1 - down) + below * down).permute(0, 3, 1, 2)


@op(primitive="ROIAlign", init=("pooled_height", "pooled_width", "spatial_scale", "sample_num", "roi_end_mode"))
def _roi_align(
    features: T, rois: T, pooled_height: int, pooled_width: int, spatial_scale: float, sample_num: int = 2, roi_end_mode: int = 1,
) -> T:
    """Average samples in a grid of bins for each region: features (B, C, H, W), rois (K, 5) of (image, x0, y0, x1, y1).

    The coordinates are multiplied by `spatial_scale`; `roi_end_mode` 1 includes the last pixel. Each bin has sample_num**2 samples; for
    sample_num <= 0 the number depends on the region's pixels. Return (K, C, pooled_height, pooled_width).
    """
    rois = constant_in(rois)
    ends = rois[:, 3:] + (1 if roi_end_mode else 0)
    low, high = rois[:, 1:3] * spatial_scale, ends * spatial_scale
    size = torch.clamp(high - low, min=1.0) if roi_end_mode else high - low
    if sample_num > 0:
        return _bins(features, rois[:, 0], low, size, (pooled_height, pooled_width), (sample_num, sample_num))
    parts = []
    for i in range(rois.shape[0]):                 # the number of samples differs between regions
        samples = tuple(max(int(torch.ceil(size[i, axis] / pooled)), 1) for axis, pooled in ((1, pooled_height), (0, pooled_width)))
        parts.append(_bins(features, rois[i : i + 1, 0], low[i : i + 1], size[i : i + 1], (pooled_height, pooled_width), samples))
    return torch.cat(parts) if parts else features.new_zeros(0, features.shape[1], pooled_height, pooled_width)


def _bins(features: T, numbers: T, low: T, size: T, pooled: tuple[int, int], samples: Any) -> T:
    positions, inside = [], []
    for axis, (bins, count) in zip((1, 0), zip(pooled, samples)):
        steps = (torch.arange(bins * count, dtype=low.dtype, device=low.device) + 0.5) / count
        at = low[:, axis : axis + 1] + size[:, axis : axis + 1] / bins * steps
        length = features.shape[2 if axis else 3]
        inside.append((at >= -1) & (at <= length))
        positions.append(at.clamp(0, length - 1))
    values = _sampled(features, numbers, *positions)
    values = values * (inside[0].unsqueeze(-1) & inside[1].unsqueeze(-2)).unsqueeze(1)
    k, c = values.shape[:2]
    return values.reshape(k, c, pooled[0], samples[0], pooled[1], samples[1]).mean((3, 5))


def _crop(image: T, boxes: T, box_indices: T, crop_size: Any, method: str, extrapolation_value: float) -> T:
    if method not in ("bilinear", "nearest", "bilinear_v2"):
        raise ValueError(f"method={method!r}: expected 'bilinear', 'nearest' or 'bilinear_v2'.")
    if any(length < 1 for length in sizes(crop_size)):
        raise ValueError(f"crop_size={crop_size}: expected ints from 1 on.")
    box_indices = torch.where(box_indices < 0, FROM_THE_END, as_index(box_indices))
    image = image.to(torch.float32)
    positions, inside = [], []
    for axis in (0, 1):
        start, end = boxes[:, axis : axis + 1], boxes[:, axis + 2 : axis + 3]
        length, count = image.shape[1 + axis], int(crop_size[axis])
        steps = torch.arange(count, dtype=torch.float32, device=image.device)
        if method == "bilinear_v2":
            at = start * length + (steps + 0.5) * ((end - start) * length / count) - 0.5
        elif count > 1:
            at = start * (length - 1) + steps * ((end - start) * (length - 1) / (count - 1))
        else:
            at = 0.5 * (start + end) * (length - 1) + steps * 0
        inside.append((at >= 0) & (at <= length - 1))
        positions.append(at)
    if method == "nearest":
        rows, columns = (torch.floor(at + 0.5).clamp(0, image.shape[1 + axis] - 1).long() for axis, at in enumerate(positions))
        values = image[box_indices.long()[:, None, None], rows.unsqueeze(-1), columns.unsqueeze(-2)]
    else:
        values = _sampled(image.permute(0, 3, 1, 2), box_indices, *positions).permute(0, 2, 3, 1)
    if method == "bilinear_v2":
        return values
    is_inside = (inside[0].unsqueeze(-1) & inside[1].unsqueeze(-2)).unsqueeze(-1)
    return torch.where(is_inside, values, constant(extrapolation_value, image.device, torch.float32))


@op(primitive="CropAndResize", init=("method", "extrapolation_value"))
def _crop_and_resize(x: T, boxes: T, box_index: T, crop_size: Any, method: str = "bilinear", extrapolation_value: float = 0.0) -> T:
    """Cut boxes (K, 4) of (y0, x0, y1, x1) in [0, 1] out of images (B, H, W, C) and resize them to `crop_size`: float32."""
    return _crop(x, boxes, box_index, crop_size, method, extrapolation_value)


@op()
def crop_and_resize(
    image: T, boxes: T, box_indices: T, crop_size: Any, method: str = "bilinear", extrapolation_value: float = 0.0,
) -> T:
    """Cut boxes (K, 4) of (y0, x0, y1, x1) in [0, 1] out of images (B, H, W, C) and resize them to `crop_size`: float32."""
    return _crop(image, boxes, box_indices, crop_size, method, extrapolation_value)


@op(primitive="RGBToHSV")
def _rgb_to_hsv(images: T) -> T:
    """Convert colors (..., 3) from red, green and blue in [0, 1] to hue, saturation and value."""
    return _hsv(images)


def _hsv(images: T) -> T:
    red, green, blue = images.unbind(-1)
    high, low = images.amax(-1), images.amin(-1)
    spread = high - low
    safe = torch.where(spread == 0, 1, spread)
    hue = torch.where(high == red, (green - blue) / safe, torch.where(high == green, (blue - red) / safe + 2, (red - green) / safe + 4)) / 6
    hue = torch.where(spread == 0, 0, torch.where(hue < 0, hue + 1, hue))
    saturation = torch.where(high > 0, spread / torch.where(high > 0, high, 1), 0)
    return torch.stack([hue, saturation, high], -1)


@op(primitive="HSVToRGB")
def _hsv_to_rgb(x: T) -> T:
    """Convert colors (..., 3) from hue, saturation and value in [0, 1] to red, green and blue."""
    return _rgb(x)


def _rgb(x: T) -> T:
    hue, saturation, value = x.unbind(-1)
    shift = constant([0.0, 4.0, 2.0], x.device, x.dtype)
    share = (torch.abs(torch.remainder(hue.unsqueeze(-1) * 6 + shift, 6) - 3) - 1).clamp(0, 1)
    return value.unsqueeze(-1) * (1 - saturation.unsqueeze(-1) * (1 - share))


@op(primitive="AdjustHue")
def _adjust_hue(image: T, delta: T) -> T:
    """Add `delta` to the hue of colors (..., 3) of red, green and blue."""
    hue, saturation, value = _hsv(image).unbind(-1)
    return _rgb(torch.stack([torch.remainder(hue + delta.to(hue.dtype), 1), saturation, value], -1))


@op(primitive="AdjustSaturation")
def _adjust_saturation(image: T, scale: T) -> T:
    """Multiply the saturation of colors (..., 3) of red, green and blue by `scale`, and limit it to 1."""
    hue, saturation, value = _hsv(image).unbind(-1)
    return _rgb(torch.stack([hue, (saturation * scale.to(hue.dtype)).clamp(0, 1), value], -1))


@op(primitive="AdjustContrastv2")
def _adjust_contrast(images: T, contrast_factor: T) -> T:
    """Multiply the distance of images (..., H, W, C) from the mean of each channel by `contrast_factor`."""
    mean = images.mean((-3, -2), keepdim=True)
    return (images - mean) * contrast_factor.to(images.dtype) + mean


@op(primitive="CombinedNonMaxSuppression", init=("pad_per_class", "clip_boxes"))
def _combined_non_max_suppression(
    boxes: T, scores: T, max_output_size_per_class: Any, max_total_size: Any, iou_threshold: Any, score_threshold: Any,
    pad_per_class: bool = False, clip_boxes: bool = True,
) -> Any:
    """Select the best boxes of all classes for each image: boxes (B, N, Q, 4) of (y0, x0, y1, x1), scores (B, N, C); Q is 1 or C.

    Return boxes (B, K, 4), scores (B, K), classes (B, K), padded with zeros, and the number of valid ones (B,) (int32).
    """
    per_class, total = int(max_output_size_per_class), int(max_total_size)
    if pad_per_class:
        total = min(total, per_class * scores.shape[-1])
    results = []
    for image, image_scores in zip(boxes, scores):
        picked = []
        for number in range(image_scores.shape[-1]):
            candidates = image[:, number if image.shape[1] > 1 else 0]
            selected = _select_boxes(candidates, image_scores[:, number], per_class, float(iou_threshold), float(score_threshold))
            picked.append((candidates[selected], image_scores[selected, number], torch.full_like(image_scores[selected, number], number)))
        rows, values, classes = (torch.cat(parts) for parts in zip(*picked))
        best = torch.sort(values, descending=True, stable=True).indices[:total]
        rows = rows[best].clamp(0, 1) if clip_boxes else rows[best]
        rest = total - best.shape[0]
        results.append((
            torch.nn.functional.pad(rows, [0, 0, 0, rest]), torch.nn.functional.pad(values[best], [0, rest]),
            torch.nn.functional.pad(classes[best], [0, rest]), constant(best.shape[0], boxes.device, torch.int32),
        ))
    return tuple(torch.stack(parts) for parts in zip(*results))


def _select_boxes(boxes: T, scores: T, most: int, iou_threshold: float, score_threshold: float) -> T:
    """Return the indexes of at most `most` boxes, best first; none overlaps a better one of them above the threshold."""
    low, high = torch.minimum(boxes[:, :2], boxes[:, 2:]), torch.maximum(boxes[:, :2], boxes[:, 2:])
    area = (high - low).prod(-1)
    size = torch.minimum(high.unsqueeze(0), high.unsqueeze(1)) - torch.maximum(low.unsqueeze(0), low.unsqueeze(1))
    intersection = size.clamp(min=0).prod(-1)
    overlaps = intersection / (area.unsqueeze(0) + area.unsqueeze(1) - intersection)
    order = torch.sort(scores, descending=True, stable=True).indices
    order = order[scores[order] > score_threshold]
    return order[suppressed(overlaps[order][:, order], iou_threshold)][:most]
