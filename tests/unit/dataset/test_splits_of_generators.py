"""Parts of a generator without a length: in each epoch they are of one order, as in MindSpore, also where a part ends it early."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore.dataset as ds
import numpy as np
import pytest

ROWS = 12


def _source() -> Any:
    def rows() -> Iterator[Any]:
        for number in range(ROWS):
            yield (np.array(number),)

    return ds.GeneratorDataset(rows, ["x"], shuffle=False)


def _epochs(dataset: Any, count: int = 4) -> list[list[int]]:
    iterator = dataset.create_tuple_iterator(num_epochs=count, output_numpy=True)
    return [[int(row[0]) for row in iterator] for _ in range(count)]


@pytest.mark.parametrize("make", [
    lambda: _source().shuffle(ROWS).split([0.5, 0.5], randomize=False), lambda: _source().shuffle(5).split([3, 9], randomize=False),
    lambda: _source().shuffle(5).map(lambda x: x, ["x"]).split([3, 9]), lambda: _source().split([7, 5]),
])
def test_parts_share_out_each_epoch(make: Any) -> None:
    ds.config.set_seed(5)                                  # without one, the shuffle of each part has its own
    parts = [_epochs(part) for part in make()]
    for epoch in zip(*parts):
        assert sorted(number for part in epoch for number in part) == list(range(ROWS))
