"""MindSpore's module of this name."""
from __future__ import annotations

from torchspore.mindspore.train.dataset_helper import data_sink
