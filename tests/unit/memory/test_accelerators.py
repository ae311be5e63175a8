"""What limits of memory say to torch for a GPU and to torch_npu: the calls that their published modules have, on modules that stand in.

No GPU and no NPU has run this: it holds names, signatures and order.
"""
from __future__ import annotations

import inspect
import os
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import pytest
import torch

from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.context.public import get_context, set_context
from torchspore.context.store import STORE
from torchspore.engine.devices import device
from torchspore.engine.execution import device_selection
from torchspore.engine.memory import limit
from torchspore.engine.torch_internals import torch_private
from torchspore.errors import EffectRefused

GIB = 1 << 30


class Card:
    """torch.cuda, or torch_npu's torch.npu, before the device is used: what is to be done then waits."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.fractions: list[tuple[float, int]] = []

    def _lazy_call(self, call: Callable[[], None]) -> None:
        self.waiting.append(call)

    def device_count(self) -> int:
        return 2

    def get_device_properties(self, device: int) -> Any:
        return types.SimpleNamespace(total_memory=8 * GIB)

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        assert type(fraction) is float and 0 <= fraction <= 1 and type(device) is int
        self.fractions.append((fraction, device))

    def memory_allocated(self, device: Any = None) -> int:
        return 3 * GIB


@pytest.fixture(params=["GPU", "Ascend"])
def card(request: pytest.FixtureRequest) -> Iterator[Card]:
    """The second of two devices of that kind."""
    result = Card()
    machine = device.Machine(lambda target: 2, lambda target: torch.device("cpu"), lambda target: False, lambda target: result)
    with effects.fresh(), device.on(machine):
        set_context(device_target=request.param, device_id=1)
        yield result
        STORE.reset("context")
        STORE.learn_default("device_target", "CPU")
        device_selection.await_use(False)


@pytest.fixture
def restored_allocator() -> Iterator[None]:
    """What torch's allocator is told is taken back."""
    before = torch_private.allocator_settings() or ""
    yield
    torch_private.set_allocator_settings(before)


def outcome_text(name: str) -> str:
    return str(effects.outcome_of(OPTIONS[name], get_context(name)))


def test_the_calls_are_torchs_own() -> None:
    for name in ("device_count", "get_device_properties", "set_per_process_memory_fraction", "memory_allocated"):
        ours = [p for p in inspect.signature(getattr(Card, name)).parameters if p != "self"]
        assert ours == list(inspect.signature(getattr(torch.cuda, name)).parameters)[: len(ours)]
    assert next(iter(inspect.signature(torch.cuda._lazy_call).parameters)) == "callable"


def test_the_share_of_the_card_is_set_when_it_is_first_used(card: Card) -> None:
    set_context(max_device_memory="2GB")
    assert outcome_text("max_device_memory") == "applied: torch allocates at most 2.0 GiB of the device's memory, at most all of it"
    set_context(max_device_memory="100GB")                # a second limit before the first use: the last one counts
    assert card.fractions == []
    for call in card.waiting:
        call()
    assert set(card.fractions) == {(1.0, 1)} and len(card.fractions) >= 2
    set_context(max_device_memory="2GB", device_id=0)
    card.waiting[0]()
    assert card.fractions[-1] == (0.25, 0)
    count = len(card.fractions)
    set_context(device_id=2)                              # beyond the cards: the first operator says so
    card.waiting[0]()
    assert len(card.fractions) == count


def test_the_older_spelling_counts_where_the_other_is_not_set(card: Card) -> None:
    set_context(variable_memory_max_size="4GB")
    assert outcome_text("variable_memory_max_size").startswith("applied")
    card.waiting[-1]()
    assert card.fractions == [(0.5, 1)]
    set_context(max_device_memory="2GB")
    set_context(variable_memory_max_size="5GB")
    assert outcome_text("variable_memory_max_size") == "no effect here: max_device_memory sets the limit"
    card.waiting[-1]()
    assert card.fractions[-1] == (0.25, 1)


def test_an_error_of_the_card_names_the_limit(card: Card) -> None:
    on_host = ms.Tensor([1.0] * 100_000)                                             # the message lists what the card holds, not this
    set_context(max_device_memory="3.5GB")
    assert on_host.size and limit.sentence(RuntimeError("shapes differ")) is None
    message = limit.sentence(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8 GiB"))
    assert message is not None and re.fullmatch(
        r"out of memory: 2\.00 GiB more were requested, and 3\.0 GiB of the 3\.5 GiB of max_device_memory='3\.5GB' \(\S+\.py:\d+\) are "
        r"held\.\n\nhint: raise max_device_memory, or use a smaller batch\.", message)
    set_context(max_device_memory="1024GB")
    assert limit.sentence(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")) is None


def test_the_pool_of_a_card_grows_by_the_step(card: Card, restored_allocator: None, monkeypatch: pytest.MonkeyPatch) -> None:
    torch_private.set_allocator_settings("roundup_power2_divisions:[256:1,512:2],large_segment_size_mb:64")
    monkeypatch.setenv("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True,large_segment_size_mb:64")

    def now() -> str | None:
        if get_context("device_target") == "GPU":
            return torch_private.allocator_settings()
        return os.environ["PYTORCH_NPU_ALLOC_CONF"].replace("expandable_segments:True", "roundup_power2_divisions:[256:1,512:2]")

    set_context(mempool_block_size="1.5GB")
    assert outcome_text("mempool_block_size") == "applied: torch allocates the device's memory in steps of 1.5 GiB"
    assert now() == "roundup_power2_divisions:[256:1,512:2],large_segment_size_mb:1536"
    set_context(max_device_memory="1GB", mempool_block_size="2GB")            # a step is never more than there may be
    assert now() == "roundup_power2_divisions:[256:1,512:2],large_segment_size_mb:1024"


def test_a_setting_that_torch_refuses_is_refused(monkeypatch: pytest.MonkeyPatch, card: Card, restored_allocator: None) -> None:
    torch_private.set_allocator_settings("")
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "garbage_collection_threshold:7,max_split_size_mb:64")
    if get_context("device_target") == "GPU":
        with pytest.raises(EffectRefused, match="garbage_collect"):
            set_context(mempool_block_size="2GB")


def test_torch_takes_the_step(restored_allocator: None) -> None:
    torch_private.set_allocator_settings("large_segment_size_mb:1024")
    assert torch_private.allocator_settings() == "large_segment_size_mb:1024"
    with pytest.raises((RuntimeError, ValueError)):
        torch_private.set_allocator_settings("large_segment_size_mb:5")
    assert device.count("CPU") == 1
