"""MindSpore's module of this name."""

# ruff: noqa: F401
from __future__ import annotations

from torchspore.mindspore.train.dataset_helper import data_sink
