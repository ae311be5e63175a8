"""`enable_parallel_optimizer`: numbers of an optimizer that is not cut, with a part of its memory."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_data_parallel import alone, batches, begin, close, make_net, optimizer, trained, weights  # noqa: E402

RANKS = 2
OPTIMIZERS = ("SGD", "Momentum", "Adam", "AdamWeightDecay", "Lamb")


def cut(mode: int, level: str, way: str, names: tuple[str, ...] = OPTIMIZERS, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """For each optimizer the weights of a rank after the steps."""
    config = {"parallel_optimizer_threshold": 0, "optimizer_level": level}
    rank = begin(mode, gradients_mean=True, enable_parallel_optimizer=True, parallel_optimizer_config=config, **(more or {}))
    from torchspore.engine.comm import groups

    return {name: trained(make_net(), name, batches(rank, groups.size()), way) for name in names}


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("level, way", [("level1", "cell"), ("level2", "cell"), ("level2", "scale"), ("level2", "clipped")])
def test_a_shared_optimizer_gives_the_numbers_of_a_whole_one(workers: Any, mode: int, level: str, way: str) -> None:
    wanted = {name: alone(mode, name) for name in OPTIMIZERS}
    for found in workers(RANKS, cut, mode, level, way):
        for name in OPTIMIZERS:
            close(found[name], wanted[name])
