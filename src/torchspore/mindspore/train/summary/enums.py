"""The kinds of recorded values, and the modes of a record."""
from __future__ import annotations

from enum import Enum


class PluginEnum(Enum):
    """The kinds of recorded values."""

    GRAPH = "graph"
    SCALAR = "scalar"
    IMAGE = "image"
    TENSOR = "tensor"
    HISTOGRAM = "histogram"
    TRAIN_LINEAGE = "train_lineage"
    EVAL_LINEAGE = "eval_lineage"
    CUSTOM_LINEAGE_DATA = "custom_lineage_data"
    DATASET_GRAPH = "dataset_graph"
    EXPLAINER = "explainer"
    LANDSCAPE = "landscape"


class ModeEnum(Enum):
    """The modes of a record."""

    TRAIN = "train"
    EVAL = "eval"
