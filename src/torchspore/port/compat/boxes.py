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
    last = deltas.new_tensor([max_shape[1] - 1, max_shape[0] - 1])
    low, high = center - (size - 1) * 0.5, center + (size - 1) * 0.5
    return torch.cat([torch.minimum(torch.clamp(low, min=0), last), torch.minimum(torch.clamp(high, min=0), last)], -1)


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
