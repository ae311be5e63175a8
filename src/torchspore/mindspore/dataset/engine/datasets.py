"""MindSpore's module of this name: every Dataset and step."""

# ruff: noqa: F401
from __future__ import annotations

from torchspore.mindspore.dataset.engine.batching import BatchDataset, BatchInfo, PaddedBatchDataset
from torchspore.mindspore.dataset.engine.cache_client import DatasetCache
from torchspore.mindspore.dataset.engine.dataset import Dataset, SourceDataset, zip
from torchspore.mindspore.dataset.engine.datasets_records import MindDataset
from torchspore.mindspore.dataset.engine.datasets_tfrecord import TFRecordDataset
from torchspore.mindspore.dataset.engine.datasets_user_defined import (
    GeneratorDataset,
    MappableDataset,
    NumpySlicesDataset,
    PaddedDataset,
)
from torchspore.mindspore.dataset.engine.datasets_vision import (
    Cifar10Dataset,
    Cifar100Dataset,
    FashionMnistDataset,
    ImageFolderDataset,
    KMnistDataset,
    MnistDataset,
)
from torchspore.mindspore.dataset.engine.mapping import MapDataset
from torchspore.mindspore.dataset.engine.operations import (
    ConcatDataset,
    FilterDataset,
    ProjectDataset,
    RenameDataset,
    RepeatDataset,
    ShuffleDataset,
    SkipDataset,
    TakeDataset,
    ZipDataset,
)
from torchspore.mindspore.dataset.engine.samplers import Shuffle
from torchspore.mindspore.dataset.engine.schema import Schema
