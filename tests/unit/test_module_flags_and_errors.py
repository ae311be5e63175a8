"""Parameters of torch Modules and Cells that either side freezes; errors of a Module in a MindSpore program."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn

import torchspore


@pytest.fixture(params=(ms.PYNATIVE_MODE, ms.GRAPH_MODE))
def in_mode(request: Any) -> Any:
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_a_parameter_that_either_side_freezes_is_frozen() -> None:
    cell = torchspore.as_cell(torch.nn.Linear(2, 2))
    module = cell.module
    module.weight.requires_grad_(False)
    assert [p.name for p in cell.trainable_params()] == ["bias"]
    cell.trainable_params()[0].requires_grad = False
    assert not module.bias.requires_grad
    module.weight.requires_grad_(True)
    net = torchspore.as_module(nn.Dense(2, 2))
    net.weight.requires_grad_(False)
    assert [p.name for p in net.cell.trainable_params()] == ["bias"]
    net.cell.bias.requires_grad = False
    assert not net.bias.requires_grad and [p.name for p in cell.trainable_params()] == ["weight"]


def test_errors_of_a_module_keep_the_text_of_torch(in_mode: int) -> None:
    loss = torchspore.as_cell(torch.nn.CrossEntropyLoss())
    with pytest.raises(RuntimeError, match=r"test_module_flags_and_errors.py:\d+: CrossEntropyLoss: (?i:expected .*(Long|Int))"):
        ms.value_and_grad(loss)(Tensor(np.ones((2, 3), np.float32)), Tensor([0, 1], ms.int32))
    mixed = torchspore.as_cell(torch.nn.Linear(2, 2).double())
    with pytest.raises(RuntimeError, match=r"test_module_flags_and_errors.py:\d+: Linear: .*dtype"):
        mixed(Tensor(np.ones((2, 2), np.float32)))
