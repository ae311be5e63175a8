"""Means over bins of regions, with separate channels for each bin (Dai and others, R-FCN, 2016)."""
from __future__ import annotations

import torch

from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


def _edges(start: T, size: T, bins: int, length: int) -> tuple[T, T]:
    """Return the first pixel of each bin, and the one after its last: (K, bins) each."""
    steps = torch.arange(bins, device=start.device, dtype=start.dtype)
    width = (size / bins)[:, None]
    first = torch.floor(steps * width + start[:, None]).clamp(0, length).long()
    last = torch.ceil((steps + 1) * width + start[:, None]).clamp(0, length).long()
    return first, torch.maximum(first, last)


@op(primitive="PsROIPooling", init=("pooled_height", "pooled_width", "num_rois", "spatial_scale", "out_dim", "group_size"))
def _ps_roi_pooling(
    features: T, rois: T, pooled_height: int, pooled_width: int, num_rois: int, spatial_scale: float, out_dim: int, group_size: int,
) -> tuple[T, T]:
    """Position-sensitive means: features (N, out_dim * group_size**2, H, W), rois (num_rois, 5) of (image, x0, y0, x1, y1).

    Corners are rounded and multiplied by `spatial_scale`, the last pixel is included, and a region is at least 0.1 wide. Return the means
    (num_rois, out_dim, pooled_height, pooled_width) and, in the same shape, the channel of each mean; 0 for an empty bin.

    Raises ValueError if the number of channels or of regions differs from the arguments.
    """
    channels, height, width = features.shape[1:]
    if channels != out_dim * group_size * group_size:
        raise ValueError(f"features with {channels} channels: expected out_dim * group_size**2 = {out_dim * group_size * group_size}.")
    if tuple(rois.shape) != (num_rois, 5):
        raise ValueError(f"rois of shape {list(rois.shape)}: expected [num_rois, 5] = [{num_rois}, 5].")
    corners = torch.floor(rois[:, 1:].to(torch.float32) + 0.5)
    low, high = corners[:, :2] * spatial_scale, (corners[:, 2:] + 1) * spatial_scale
    size = (high - low).clamp(min=0.1)
    left, right = _edges(low[:, 0], size[:, 0], pooled_width, width)
    top, bottom = _edges(low[:, 1], size[:, 1], pooled_height, height)
    of_row = (torch.arange(pooled_height, device=rois.device) * group_size // pooled_height)[:, None]
    of_column = (torch.arange(pooled_width, device=rois.device) * group_size // pooled_width)[None, :]
    channel = torch.arange(out_dim, device=rois.device)[:, None, None] * group_size * group_size + of_row * group_size + of_column
    image = rois[:, 0].long()[:, None, None, None]
    # Sums over everything above and to the left of a pixel: a bin is a combination of four.
    sums = torch.nn.functional.pad(features.to(torch.float64).cumsum(2).cumsum(3), (1, 0, 1, 0))

    def at(row: T, column: T) -> T:
        return sums[image, channel[None], row[:, None, :, None], column[:, None, None, :]]

    total = at(bottom, right) - at(top, right) - at(bottom, left) + at(top, left)
    area = ((bottom - top)[:, :, None] * (right - left)[:, None, :])[:, None]
    means = torch.where(area > 0, total / area.clamp(min=1), torch.zeros_like(total))
    return means.to(features.dtype), channel[None].expand(num_rois, -1, -1, -1).to(torch.int32).contiguous()
