"""The share of a data set that one process of several reads."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.dataset.core.validator_helpers import check_bool
from torchspore.mindspore.dataset.core.validator_helpers import check_type as _check_type
from torchspore.mindspore.dataset.dataloader.sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index from `rank` on, in an order that `seed` and the epoch determine.

    All processes yield equally many: if the number is not divisible, indices repeat, or `drop_last` drops the last ones. `num_replicas`
    and `rank` default to those of `mint.distributed`.
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        super().__init__(dataset)
        for name, value in (("num_replicas", num_replicas), ("rank", rank)):
            if value is not None:
                _check_type("DistributedSampler", name, value, int, "an int")
        check_bool("DistributedSampler", "shuffle", shuffle)
        _check_type("DistributedSampler", "seed", seed, int, "an int")
        check_bool("DistributedSampler", "drop_last", drop_last)
        from torchspore.mindspore.ops.process_groups import groups

        self.num_replicas = groups.get_world_size() if num_replicas is None else num_replicas
        self.rank = groups.get_rank() if rank is None else rank
        if self.num_replicas < 1:
            raise ValueError(message(f"DistributedSampler(num_replicas={num_replicas})", "at least 1 process"))
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(message(f"DistributedSampler(rank={rank})", f"a rank from 0 to {self.num_replicas - 1}"))
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = dataset, shuffle, seed, drop_last, 0
        count = len(dataset)
        self.num_samples = count // self.num_replicas if drop_last else -(-count // self.num_replicas)
        self.total_samples = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = np.random.default_rng(self.seed + self.epoch).permutation(count) if self.shuffle else np.arange(count)
        if self.total_samples > count and count:
            order = np.resize(order, self.total_samples)
        return iter(order[self.rank:self.total_samples:self.num_replicas].tolist())

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which changes the order; call it before each epoch. Raises TypeError if the value is not an int."""
        _check_type("DistributedSampler.set_epoch", "epoch", epoch, int, "an int")
        self.epoch = epoch
