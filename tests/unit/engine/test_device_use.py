"""What happens around operators on an accelerator, with torch's `meta` device standing for one: it computes nothing, but lies elsewhere."""
from __future__ import annotations

from collections.abc import Iterator

import mindspore as ms
import pytest
import torch
from mindspore import Tensor, nn, ops

from torchspore.context import effects
from torchspore.engine.devices import device
from torchspore.engine.execution import device_selection, pynative
from torchspore.engine.tensors import tensor as engine
from torchspore.errors import DeviceFailed

ELSEWHERE = device.Machine(resolve=lambda target: torch.device("meta"))
HOST = device.Machine()
QUEUE = device.Machine(has_queue=lambda target: True)


@pytest.fixture
def elsewhere() -> Iterator[None]:
    with effects.fresh(), device.on(ELSEWHERE):
        Tensor([1.0]) + 1                   # what waits for the program's first operator waits no longer
        before = engine.active
        device_selection.await_use(True)
        yield
        device_selection.await_use(False)
        assert engine.active == before


def test_a_tensor_born_on_the_host_moves_when_it_is_needed(elsewhere: None) -> None:
    early = engine.wrap(torch.ones(2, 3))
    late = Tensor([[1.0, 2.0, 3.0]])
    assert (early._t.device.type, late._t.device.type) == ("cpu", "meta")
    assert (early + late).shape == (2, 3) and early._t.device.type == "meta"
    bias = engine.wrap(torch.ones(3))
    assert ops.dense(late, Tensor([[1.0, 2.0, 3.0]] * 3), bias).shape == (1, 3) and bias._t.device.type == "meta"


def test_a_network_born_on_the_host_moves_too(elsewhere: None) -> None:
    with device.on(HOST):
        net = nn.Dense(3, 2)
    assert net(Tensor([[1.0, 2.0, 3.0]])).shape == (1, 2)
    assert {p._t.device.type for p in net.get_parameters()} == {"meta"}


def test_the_first_operator_marks_the_device_as_used_and_making_a_tensor_does_not(elsewhere: None) -> None:
    x = Tensor([1.0])
    assert effects.first_use() is None
    x + x
    assert f"{__file__}:" in str(effects.first_use()) and not device_selection.awaits_use


def test_each_operator_is_waited_for_where_the_device_has_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda index: waits.append(1))
    x = Tensor([[1.0, 2.0]])
    with device.on(QUEUE):
        pynative.synchronize(True)
    try:
        ops.relu(x + x)
        ops.matmul(x, x.T)
    finally:
        pynative.synchronize(False)
    x + x
    assert len(waits) == 4


def test_the_cpu_waits_for_nothing() -> None:
    before = engine.active
    ms.set_context(pynative_synchronize=True)
    assert not pynative.wait_for_each and engine.active == before
    ms.set_context(pynative_synchronize=False)


def test_an_error_of_the_device_appears_at_the_line_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [2]

    def synchronize(index: torch.device) -> None:
        left[0] -= 1
        if not left[0]:
            raise RuntimeError("device-side assert triggered")

    monkeypatch.setattr(torch.accelerator, "synchronize", synchronize)
    x, y = Tensor([[1.0, 2.0]]), Tensor([[1.0], [2.0]])
    with device.on(QUEUE):
        pynative.synchronize(True)
    try:
        ops.relu(x)
        with pytest.raises(DeviceFailed, match=r"test_device_use\.py:\d+: matmul\(.*: the device says 'device-side assert") as caught:
            ops.matmul(x, y)
    finally:
        pynative.synchronize(False)
    assert caught.traceback[0].lineno + 1 == int(str(caught.value).split(":")[1])
