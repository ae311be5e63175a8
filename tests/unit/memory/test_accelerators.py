"""What limits of memory say to torch for a GPU and to torch_npu: the calls that their published modules have, on modules that stand in.

No GPU and no NPU has run this: it holds names, signatures and order.
"""
from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from torchspore.context.store import STORE
from torchspore.engine import device, private
from torchspore.engine.memory import limit

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
def card(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Card:
    """A device of that kind, with the context as the test sets it."""
    found = Card()
    values: dict[str, Any] = {"device_target": request.param, "device_id": 1}
    monkeypatch.setattr(STORE, "get", lambda key, real=STORE.get: values.get(key, real(key)))
    monkeypatch.setattr(limit, "module_of", lambda target: found)
    found.values = values  # type: ignore[attr-defined]
    return found


def test_the_calls_are_torchs_own() -> None:
    for name in ("device_count", "get_device_properties", "set_per_process_memory_fraction", "memory_allocated"):
        ours = [p for p in inspect.signature(getattr(Card, name)).parameters if p != "self"]
        assert ours == list(inspect.signature(getattr(torch.cuda, name)).parameters)[: len(ours)]
    assert next(iter(inspect.signature(torch.cuda._lazy_call).parameters)) == "callable"


def test_the_share_of_the_card_is_set_when_it_is_first_used(card: Any) -> None:
    card.values["max_device_memory"] = 2.0
    outcome = limit.cap(2.0)
    assert str(outcome) == "applied: torch takes at most 2.0 GiB of the device's memory, or all that it has" and card.fractions == []
    card.values["max_device_memory"] = 100.0              # a second limit before the first use: the last one counts
    limit.cap(100.0)
    for call in card.waiting:
        call()
    assert card.fractions == [(1.0, 1), (1.0, 1)]
    card.values.update({"max_device_memory": 2.0, "device_id": 0})
    card.waiting[0]()
    assert card.fractions[-1] == (0.25, 0)
    card.values["device_id"] = 2                          # beyond the cards: the first operator says so
    card.waiting[0]()
    assert len(card.fractions) == 3


def test_the_older_spelling_counts_where_the_other_is_not_set(card: Any) -> None:
    card.values["variable_memory_max_size"] = "4 * 1024 * 1024 * 1024"
    assert limit.cap_variables(card.values["variable_memory_max_size"]).state == "applied"
    card.waiting[-1]()
    assert card.fractions == [(0.5, 1)]
    card.values["max_device_memory"] = 2.0
    assert str(limit.cap_variables(card.values["variable_memory_max_size"])) == "no effect here: max_device_memory sets the limit"
    card.waiting[-1]()
    assert card.fractions[-1] == (0.25, 1)


def test_an_error_of_the_card_names_the_limit(card: Any) -> None:
    card.values["max_device_memory"] = 3.5
    assert limit.sentence(RuntimeError("shapes differ")) is None
    said = limit.sentence(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8 GiB"))
    assert said == ("out of memory: 2.00 GiB more were asked for, and 3.0 GiB of the 3.5 GiB of max_device_memory are held.\n\n"
                    "hint: raise max_device_memory, or use a smaller batch.")
    card.values["max_device_memory"] = 1024.0
    assert limit.sentence(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")) is None


def test_the_pool_of_a_card_grows_by_the_step(card: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(private, "set_allocator_settings", said.append)
    monkeypatch.setattr(private, "allocator_settings", lambda: "roundup_power2_divisions:[256:1,512:2],large_segment_size_mb:64")
    monkeypatch.setenv("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True,large_segment_size_mb:64")
    assert str(limit.grow_by(1.5)) == "applied: torch takes the device's memory in steps of 1.5 GiB"
    card.values["max_device_memory"] = 1.0                # a step is never more than there may be
    limit.grow_by(2.0)
    if card.values["device_target"] == "GPU":
        assert said == [f"roundup_power2_divisions:[256:1,512:2],large_segment_size_mb:{size}" for size in (1536, 1024)]
    else:
        assert limit.os.environ["PYTORCH_NPU_ALLOC_CONF"] == "expandable_segments:True,large_segment_size_mb:1024" and not said


def test_a_setting_that_torch_refuses_is_refused(monkeypatch: pytest.MonkeyPatch, card: Any) -> None:
    def refuse(text: str) -> None:
        raise ValueError("Unrecognized key 'large_segment_size_mb'")

    monkeypatch.setattr(private, "set_allocator_settings", refuse)
    if card.values["device_target"] == "GPU":
        assert limit.grow_by(1.0).state == "refused"


def test_torch_takes_the_step() -> None:
    before = private.allocator_settings() or ""
    try:
        private.set_allocator_settings("large_segment_size_mb:1024")
        assert private.allocator_settings() == "large_segment_size_mb:1024"
        with pytest.raises((RuntimeError, ValueError)):
            private.set_allocator_settings("large_segment_size_mb:5")
    finally:
        private.set_allocator_settings(before)
    assert device.count("CPU") == 1
