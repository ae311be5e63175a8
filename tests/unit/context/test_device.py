"""Devices that a machine has, played by a stand-in for the count: nothing here runs an operator on one."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.context.public import get_context, scope, set_context
from torchspore.context.store import STORE
from torchspore.engine import device, eager
from torchspore.errors import DeviceNotFound


@pytest.fixture(autouse=True)
def two_gpus(fresh: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(device, "count", lambda target: {"CPU": 1, "GPU": 2, "Ascend": 0}[target])
    yield
    STORE.reset("context")
    STORE.learn_default("device_target", "CPU")
    device.await_use(False)


def test_the_device_and_its_index() -> None:
    set_context(device_id=1, device_target="GPU")
    assert (device.current(), device.has_queue()) == (torch.device("cuda", 1), True)
    assert str(effects.outcome_of(OPTIONS["device_target"], "GPU")) == "applied: operators run on cuda"
    assert str(effects.outcome_of(OPTIONS["device_id"], 1)) == "applied: operators run on cuda:1"
    with scope(device_target="CPU"):
        assert device.current() == torch.device("cpu")
    assert device.current() == torch.device("cuda", 1)


def test_an_index_that_is_not_there_is_told_when_it_is_used() -> None:
    set_context(device_target="GPU", device_id=5)
    with pytest.raises(DeviceNotFound) as caught:
        device.current()
    line, _, text = str(caught.value).partition(": ")
    assert Path(line.rpartition(":")[0]).name == "test_device.py"
    assert text == "device_id=5: this machine has 2 of GPU.\n\nhint: write device_id=0."


def test_the_accelerator_that_is_there_is_the_default() -> None:
    device.tell_default()
    assert get_context("device_target") == "GPU"
    set_context(device_target="CPU")
    assert (get_context("device_target"), device.current()) == ("CPU", torch.device("cpu"))


def test_what_was_set_before_acts_on_the_new_device() -> None:
    set_context(pynative_synchronize=True, device_id=1)
    assert not eager.wait_for_each
    set_context(device_target="GPU")
    assert eager.wait_for_each
    assert str(effects.outcome_of(OPTIONS["device_id"], 1)) == "applied: operators run on cuda:1"
    set_context(device_target="CPU")
    assert not eager.wait_for_each
    assert str(effects.outcome_of(OPTIONS["device_id"], 1)) == "no effect here: the CPU has no index"


def test_memory_level_follows_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "count", lambda target: 1)
    assert get_context("memory_optimize_level") == 0
    set_context(device_target="Ascend")
    assert get_context("memory_optimize_level") == 1
    with scope(device_target="CPU"):
        assert get_context("memory_optimize_level") == 0
    set_context(device_target="CPU", memory_optimize_level="O1")
    assert get_context("memory_optimize_level") == 1
