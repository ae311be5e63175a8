"""Graphs that are split, run by processes: each holds its part, and all give what one process gives."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def _trained(name: str, data: int, model: int) -> tuple[list[float], dict[str, tuple[int, ...]]]:
    import mindspore as ms
    from mindspore.communication import init
    from split_nets import trained

    init()
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    losses, step = trained(name, data, model)
    return losses, {p.name: tuple(p.shape) for p in step.get_parameters()}


def _alone(name: str) -> tuple[list[float], dict[str, tuple[int, ...]]]:
    from split_nets import trained

    losses, step = trained(name)
    return losses, {p.name: tuple(p.shape) for p in step.get_parameters()}


@pytest.mark.parametrize(("name", "data", "model"), [("gpt", 2, 1), ("gpt", 1, 2), ("towers", 1, 2), ("residual", 2, 1), ("gpt", 2, 2)])
def test_processes_train_as_one(name: str, data: int, model: int, workers: Any) -> None:
    (alone, shapes), = workers(1, _alone, name)
    found = workers(data * model, _trained, name, data, model)
    for losses, _ in found:
        np.testing.assert_allclose(losses, alone, rtol=2e-6 if name != "residual" else 1e-5)
    cut = {own for own, shape in found[0][1].items() if shape != shapes[own]}
    if model == 1:
        assert not cut
    elif name == "gpt":
        assert {"table", "moments.table", "blocks.0.up.weight", "moments.blocks.0.up.weight", "blocks.1.down.weight"} <= cut
        assert "blocks.0.down.bias" not in cut
