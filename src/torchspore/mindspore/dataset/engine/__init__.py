"""Sources, steps, samplers and iterators of data pipelines."""
from __future__ import annotations

from torchspore.mindspore.dataset.engine.datasets import *
from torchspore.mindspore.dataset.engine.iterators import DictIterator, Iterator, TupleIterator
from torchspore.mindspore.dataset.engine.samplers import *
from torchspore.public_names import missing

__getattr__ = missing(__name__)
