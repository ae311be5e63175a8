"""`mindspore.dataset.dataloader`: batches of a data set that is a class with `__getitem__` or `__iter__`."""
from __future__ import annotations

from torchspore.mindspore.dataset.dataloader.collate import default_collate, default_convert
from torchspore.mindspore.dataset.dataloader.dataloader import DataLoader
from torchspore.mindspore.dataset.dataloader.dataset import Dataset, IterableDataset, TensorDataset
from torchspore.mindspore.dataset.dataloader.distributed import DistributedSampler
from torchspore.mindspore.dataset.dataloader.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from torchspore.mindspore.dataset.dataloader.worker import get_worker_info
from torchspore.public_names import missing

__all__ = [
    "BatchSampler", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler",
    "TensorDataset", "default_collate", "default_convert", "get_worker_info",
]

__getattr__ = missing(__name__)
