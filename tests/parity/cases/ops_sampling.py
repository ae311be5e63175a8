"""Images and volumes read at the places of a grid, and likeness of rows."""
from __future__ import annotations

import numpy as np
from mindspore import ops
from parity.case import case
from parity.forms import probe

RANDOM = np.random.default_rng(5)
IMAGES = RANDOM.normal(size=(2, 3, 5, 6)).astype(np.float32)
GRID = RANDOM.uniform(-1.2, 1.2, size=(2, 3, 4, 2)).astype(np.float32)
VOLUMES = RANDOM.normal(size=(1, 2, 3, 4, 5)).astype(np.float32)
INDICES = RANDOM.uniform(-1.2, 1.2, size=(1, 2, 2, 3, 3)).astype(np.float32)
THETA = RANDOM.normal(size=(2, 2, 3)).astype(np.float32)
DEEP = RANDOM.normal(size=(1, 3, 4)).astype(np.float32)
X, Y = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)

SAMPLED = {
    "grid_sample": lambda: probe(ops.grid_sample, IMAGES, GRID, align_corners=False),
    "grid_sample_corners": lambda: probe(ops.grid_sample, IMAGES, GRID, align_corners=True),
    "grid_sample_nearest": lambda: probe(ops.grid_sample, IMAGES, GRID, "nearest", align_corners=False, by=(0,)),
    "grid_sample_border": lambda: probe(ops.grid_sample, IMAGES, GRID, "bilinear", "border", align_corners=False),
    "grid_sample_reflection": lambda: probe(ops.grid_sample, IMAGES, GRID, "bilinear", "reflection", align_corners=True),
    "grid_sample_volume": lambda: probe(ops.grid_sample, VOLUMES, INDICES, align_corners=False),
    "GridSampler2D": lambda: probe(ops.GridSampler2D(), IMAGES, GRID),
    "GridSampler2D_border": lambda: probe(ops.GridSampler2D("bilinear", "border", True), IMAGES, GRID),
    "GridSampler3D": lambda: probe(ops.GridSampler3D("nearest", "border"), VOLUMES, INDICES, by=(0,)),
    "affine_grid": lambda: probe(ops.affine_grid, THETA, (2, 3, 4, 5)),
    "affine_grid_corners": lambda: probe(ops.affine_grid, THETA, (2, 3, 4, 5), True),
    "affine_grid_volume": lambda: probe(ops.affine_grid, DEEP, (1, 2, 3, 4, 2)),
    "AffineGrid": lambda: probe(ops.AffineGrid(True), THETA, (2, 3, 4, 5), by=()),
    "cosine_similarity": lambda: probe(ops.cosine_similarity, X, Y),
    "cosine_similarity_rows": lambda: probe(ops.cosine_similarity, X, Y, 0, 1e-3),
}


@case(over=SAMPLED, rtol=2e-5, atol=2e-6, graph=True)
def sampled(ask):
    return ask()
