"""Boxes of detectors and the loss of unaligned sequences."""
from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def box_iou(anchors: Tensor, boxes: Tensor, mode: str = "iou") -> Tensor:
    """Intersection over union of boxes with anchors, shape (boxes, anchors); a side includes its last pixel. No gradient."""
    a, b = anchors.detach().unsqueeze(0), boxes.detach().unsqueeze(1)
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    shared = torch.clamp(high - low + 1, min=0).prod(-1)
    first, second = (a[..., 2:] - a[..., :2] + 1).prod(-1), (b[..., 2:] - b[..., :2] + 1).prod(-1)
    return shared / (second if mode == "iof" else first + second - shared)


def boxes_inside(boxes: Tensor, meta: Tensor) -> Tensor:
    """Test which boxes are inside an image; `meta` is its height, width and ratio."""
    height, width = (meta[:2] * meta[2]).unbind()
    x0, y0, x1, y1 = boxes.unbind(-1)
    return (x0 >= 0) & (y0 >= 0) & (x1 <= width - 1) & (y1 <= height - 1)


def encode_boxes(anchors: Tensor, boxes: Tensor, means: Sequence[float], deviations: Sequence[float]) -> Tensor:
    """Shifts and logarithms of sizes of boxes relative to their anchors."""
    size, box_size = anchors[:, 2:] - anchors[:, :2] + 1, boxes[:, 2:] - boxes[:, :2] + 1
    shift = ((boxes[:, :2] + boxes[:, 2:]) * 0.5 - (anchors[:, :2] + anchors[:, 2:]) * 0.5) / size
    deltas = torch.cat([shift, torch.log(box_size / size)], -1)
    return (deltas - deltas.new_tensor(means)) / deltas.new_tensor(deviations)


def decode_boxes(
    anchors: Tensor, deltas: Tensor, max_shape: Sequence[int], means: Sequence[float], deviations: Sequence[float], ratio_clip: float,
) -> Tensor:
    """The boxes that `encode_boxes` has encoded, inside an image of `max_shape`."""
    deltas = deltas * deltas.new_tensor(deviations) + deltas.new_tensor(means)
    limit = abs(math.log(ratio_clip))
    size = (anchors[:, 2:] - anchors[:, :2] + 1) * torch.exp(torch.clamp(deltas[:, 2:], -limit, limit))
    center = (anchors[:, :2] + anchors[:, 2:]) * 0.5 + deltas[:, :2] * (anchors[:, 2:] - anchors[:, :2] + 1)
    end = deltas.new_tensor([max_shape[1], max_shape[0]])
    low, high = center - size * 0.5 + 0.5, center + size * 0.5 - 0.5
    return torch.cat([torch.minimum(torch.clamp(low, min=0), end), torch.minimum(torch.clamp(high, min=0), end)], -1)


def suppress_boxes(boxes: Tensor, threshold: float) -> tuple[Tensor, Tensor, Tensor]:
    """Boxes (N, 5) by their score, their indexes, and which stay: those that do not overlap a better box that stays."""
    boxes = boxes[torch.argsort(boxes[:, 4].detach(), descending=True, stable=True)]
    x0, y0, x1, y1 = boxes[:, :4].unbind(-1)
    area = (x1 - x0) * (y1 - y0)
    wide = torch.minimum(x1[None], x1[:, None]) - torch.maximum(x0[None], x0[:, None])
    high = torch.minimum(y1[None], y1[:, None]) - torch.maximum(y0[None], y0[:, None])
    shared = wide.clamp(min=0) * high.clamp(min=0)
    overlaps = shared / (area[None] + area[:, None] - shared)
    stays = torch.ones(boxes.shape[0], dtype=torch.bool, device=boxes.device)
    for index in range(boxes.shape[0]):
        if stays[index]:
            stays[index + 1:] &= ~(overlaps[index, index + 1:] > threshold)
    return boxes, torch.arange(boxes.shape[0], device=boxes.device), stays


def sample_bilinearly(images: Tensor, numbers: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Values of images (B, C, H, W) at image numbers (K,), rows (K, P) and columns (K, Q), shape (K, C, P, Q)."""
    top, left = torch.floor(rows), torch.floor(columns)
    down, across = (rows - top)[:, :, None, None], (columns - left)[:, None, :, None]
    pixels, image = images.permute(0, 2, 3, 1), numbers.long()[:, None, None]
    lines = [(top + step).clamp(max=images.shape[2] - 1).long().unsqueeze(-1) for step in (0, 1)]
    places = [(left + step).clamp(max=images.shape[3] - 1).long().unsqueeze(-2) for step in (0, 1)]
    above = pixels[image, lines[0], places[0]] * (1 - across) + pixels[image, lines[0], places[1]] * across
    below = pixels[image, lines[1], places[0]] * (1 - across) + pixels[image, lines[1], places[1]] * across
    return (above * (1 - down) + below * down).permute(0, 3, 1, 2)


def roi_align(
    features: Tensor, rois: Tensor, pooled: tuple[int, int], scale: float, samples: int = 2, includes_last_pixel: int = 1,
) -> Tensor:
    """Average samples * samples points of each bin of each region (image, x0, y0, x1, y1), shape (regions, C, *pooled)."""
    if samples < 1:
        raise NotImplementedError("sample_num below 1, which takes the number of samples from the size of the region")
    rois = rois.detach()
    low = rois[:, 1:3] * scale
    size = (rois[:, 3:] + (1 if includes_last_pixel else 0)) * scale - low
    size = size.clamp(min=1.0) if includes_last_pixel else size
    positions, inside = [], []
    for axis, bins in ((1, pooled[0]), (0, pooled[1])):
        steps = (torch.arange(bins * samples, dtype=low.dtype, device=low.device) + 0.5) / samples
        at = low[:, axis:axis + 1] + size[:, axis:axis + 1] / bins * steps
        length = features.shape[2 if axis else 3]
        inside.append((at >= -1) & (at <= length))
        positions.append(at.clamp(0, length - 1))
    values = sample_bilinearly(features, rois[:, 0], positions[0], positions[1])
    values = values * (inside[0].unsqueeze(-1) & inside[1].unsqueeze(-2)).unsqueeze(1)
    count, channels = values.shape[:2]
    return values.reshape(count, channels, pooled[0], samples, pooled[1], samples).mean((3, 5))


def ctc_loss(x: Tensor, indices: Tensor, values: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The losses of logits (time, N, classes) whose last class is the blank, for sparse labels; and their gradient for the logits."""
    rows, positions = indices[:, 0].long(), indices[:, 1].long()
    labels = torch.zeros(x.shape[1], max(values.shape[0], 1), dtype=torch.int64, device=x.device)
    labels = labels.index_put((rows, positions), values.long())
    counts = torch.bincount(rows, minlength=x.shape[1])
    losses = F.ctc_loss(F.log_softmax(x, -1), labels, lengths.long(), counts, blank=x.shape[2] - 1, reduction="none")
    if not x.requires_grad:
        return losses, torch.zeros_like(x)
    return losses, torch.autograd.grad(losses.sum(), x, retain_graph=True)[0]
