"""`context.scope` and options that act on the whole process: what other threads read is what acts."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import mindspore as ms
import pytest
import torch

from torchspore.errors import ScopeRefused


def in_thread(function: Callable[[], Any]) -> Any:
    """What `function` gives, or the error that it raises, in a thread of its own."""
    results: list[Any] = []

    def body() -> None:
        try:
            results.append(function())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=body, name="worker")
    thread.start()
    thread.join()
    return results[0]


def effects() -> tuple[bool, int]:
    return torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()


def options_here() -> tuple[bool, int]:
    return ms.get_context("deterministic") == "ON", ms.get_context("runtime_num_threads")


def test_a_thread_started_in_a_scope_reads_what_acts() -> None:
    before = options_here()
    with ms.context.scope(deterministic="ON", runtime_num_threads=1):
        assert effects() == in_thread(effects) == options_here() == in_thread(options_here) == (True, 1)
        with ms.context.scope(deterministic="OFF"):
            assert in_thread(options_here)[0] is in_thread(effects)[0] is False
        assert in_thread(options_here)[0] is in_thread(effects)[0] is True
    assert options_here() == in_thread(options_here) == before and not effects()[0]


def test_what_a_scope_refused_has_changed_nothing() -> None:
    with pytest.raises(ValueError), ms.context.scope(deterministic="ON", max_call_depth=0):
        pass
    assert in_thread(options_here)[0] is False and not effects()[0]


@pytest.mark.parametrize("option", [{"deterministic": "ON"}, {"runtime_num_threads": 1}])
def test_refused_while_another_thread_runs(option: dict[str, Any]) -> None:
    name, value = next(iter(option.items()))
    go = threading.Event()
    thread = threading.Thread(target=go.wait, name="trainer")
    thread.start()
    before = effects()
    try:
        with pytest.raises(ScopeRefused) as caught, ms.context.scope(**option):
            pass
        with ms.context.scope(max_call_depth=99):       # what is a thread's own is not refused
            assert ms.get_context("max_call_depth") == 99
    finally:
        go.set()
        thread.join()
    assert effects() == before
    assert str(caught.value) == (
        f"scope({name}={value!r}): {name} acts on the entire process, and a scope would change it while other threads run (trainer).\n\n"
        f"hint: write set_context({name}={value!r}) outside of scopes, before the threads start."
    )


def test_refused_in_a_thread_that_is_not_the_main_one() -> None:
    def scoped() -> None:
        with ms.context.scope(deterministic="ON"):
            raise AssertionError("the scope was entered")

    assert isinstance(in_thread(scoped), ScopeRefused)
    assert not effects()[0]
