"""Each operator, split in every way that its inputs may lie, beside one device: results and gradients."""
from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from support.split_functions import grid, split

from torchspore.engine.formulas.topk import topk

CASES: dict[str, tuple[Any, list[Any]]] = {
    "mm": (torch.mm, [(8, 16), (16, 8)]),
    "bmm": (torch.bmm, [(8, 8, 8), (8, 8, 8)]),
    "addmm": (torch.addmm, [(8,), (8, 16), (16, 8)]),
    "linear": (F.linear, [(8, 8, 16), (8, 16), (8,)]),
    "add, broadcast": (torch.add, [(8, 1, 8), (8, 8)]),
    "relu": (torch.relu, [(8, 16)]),
    "gelu": (F.gelu, [(8, 16)]),
    "where": (lambda x, y: torch.where(x > 0, x, y), [(8, 8), (8, 8)]),
    "sum": (lambda x: x.sum(1), [(8, 8, 8)]),
    "mean": (lambda x: x.mean((0, 2), keepdim=True), [(8, 8, 8)]),
    "amax": (lambda x: x.amax(1), [(8, 8)]),
    "max": (lambda x: x.max(1).values, [(8, 8)]),
    "var": (lambda x: x.var(1), [(8, 8)]),
    "softmax": (lambda x: x.softmax(1), [(8, 8, 8)]),
    "log_softmax": (lambda x: x.log_softmax(-1), [(8, 16)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (16,), w, b), [(8, 8, 16), (16,), (16,)]),
    "cumsum": (lambda x: x.cumsum(1), [(8, 8)]),
    "sort": (lambda x: x.sort(1).values, [(8, 8)]),
    "topk": (lambda x: x.topk(3, 1).values, [(8, 8)]),
    "topk of MindSpore": (lambda x: topk(x, 3)[0], [(8, 8)]),
    "view, join": (lambda x: x.view(64, 8) * 2, [(8, 8, 8)]),
    "view, part": (lambda x: x.view(8, 2, 4, 8).sum(2), [(8, 8, 8)]),
    "view, odd": (lambda x: x.view(4, 16, 8) * 2, [(8, 8, 8)]),
    "heads": (lambda x: x.view(8, 8, 8, 4).transpose(1, 2).softmax(-1), [(8, 8, 32)]),
    "permute": (lambda x: x.permute(2, 0, 1) * 2, [(8, 8, 8)]),
    "expand": (lambda x: x.expand(8, 8, 8) * 2, [(8, 1, 8)]),
    "squeeze": (lambda x: x.unsqueeze(1).squeeze(1) * 2, [(8, 8)]),
    "cat": (lambda x, y: torch.cat([x, y], 1), [(8, 8), (8, 16)]),
    "stack": (lambda x, y: torch.stack([x, y], 1), [(8, 8), (8, 8)]),
    "split": (lambda x: x.split(4, 1)[1], [(8, 16)]),
    "chunk": (lambda x: torch.chunk(x, 2, -1)[0] * 2, [(8, 16)]),
    "slice": (lambda x: x[:, 2:10], [(8, 16)]),
    "select": (lambda x: x[:, 3], [(8, 16, 8)]),
    "pad": (lambda x: F.pad(x, (1, 2)), [(8, 8)]),
    "repeat": (lambda x: x.repeat(1, 2), [(8, 8)]),
    "gather": (lambda x: x.gather(1, torch.arange(8).remainder(3).repeat(8, 1)), [(8, 8)]),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.mT + 8 * torch.eye(4)), [(8, 4, 4)]),
    "inverse": (lambda x: torch.linalg.inv(x @ x.mT + 8 * torch.eye(4)), [(8, 4, 4)]),
    "solve": (lambda x, y: torch.linalg.solve(x @ x.mT + 8 * torch.eye(4), y), [(8, 4, 4), (8, 4, 2)]),
    "det": (lambda x: torch.linalg.det(x @ x.mT + 8 * torch.eye(4)), [(8, 4, 4)]),
    "svdvals": (lambda x: torch.linalg.svd(x)[1], [(8, 4, 4)]),
    "triangles": (lambda x: torch.triu(x, 1) + torch.tril(x, -2), [(8, 8, 16)]),
    "embedding": (lambda w, i: F.embedding(i, w), [(16, 8), "16:8,8"]),
    "nll_loss": (lambda x, y: F.cross_entropy(x, y), [(8, 16), "16:8"]),
    "nll_loss, none": (lambda x, y: F.cross_entropy(x, y, reduction="none"), [(8, 16), "16:8"]),
    "nll_loss, sum": (lambda x, y: F.cross_entropy(x, y, reduction="sum"), [(8, 16), "16:8"]),
    "nll_loss, ignored": (lambda x, y: F.cross_entropy(x, y, ignore_index=3), [(8, 16), "16:8"]),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), [(8, 8, 4, 4), (8, 8, 3, 3)]),
    "conv2d, bias": (lambda x, w, b: F.conv2d(x, w, b, stride=2), [(8, 8, 4, 4), (8, 8, 2, 2), (8,)]),
    "conv2d, groups": (lambda x, w: F.conv2d(x, w, groups=8), [(8, 8, 4, 4), (8, 1, 3, 3)]),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w), [(8, 8, 4, 4), (8, 8, 3, 3)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), [(8, 8, 4, 4)]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), [(8, 8, 4, 4)]),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), [(8, 8, 4, 4)]),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, torch.zeros(8), torch.ones(8), w, b, True), [(8, 8, 4, 4), (8,), (8,)]),
    "group_norm": (lambda x, w, b: F.group_norm(x, 4, w, b), [(8, 8, 4, 4), (8,), (8,)]),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), [(8, 8, 8, 8)] * 3),
    "dropout": (lambda x: torch.native_dropout(x, 0.5, True)[0], [(8, 16)]),
    "one_hot": (lambda x, y: x * F.one_hot(y, 16), [(8, 16), "16:8"]),
}


def value(shape: Any) -> torch.Tensor:
    """Random numbers of this shape; indices below the number that a text begins with."""
    if isinstance(shape, str):
        below, dims = shape.split(":")
        return torch.randint(0, int(below), tuple(map(int, dims.split(","))))
    return torch.randn(shape)


def shape_of(shape: Any) -> tuple[int, ...]:
    """The dimensions of what `value` gives."""
    return tuple(map(int, shape.split(":")[1].split(","))) if isinstance(shape, str) else tuple(shape)


@pytest.mark.parametrize("name", CASES)
def test_every_split_gives_what_one_device_gives(name: str) -> None:
    function, shapes = CASES[name]
    torch.manual_seed(1)
    inputs = [value(shape) for shape in shapes]
    seen = 0
    for mesh, cuts in grid([shape_of(shape) for shape in shapes], most=6):
        _, differences = split(function, mesh, inputs, cuts)
        assert max(differences) < 2e-5, f"{mesh.sizes} {[layout.dim_axes for layout in cuts]}: {differences}"
        seen += 1
    assert seen >= 9
