"""What a test sets in the context does not act on the tests after it (tests/support/context_guard.py)."""
from __future__ import annotations

import time

from support import context_guard

from torchspore.context.public import get_auto_parallel_context, get_context, set_auto_parallel_context, set_context


def test_options_are_as_before() -> None:
    set_context(mode=1)
    restore = context_guard.keep()
    set_context(mode=0, deterministic="ON")
    set_auto_parallel_context(device_num=8, parallel_mode="semi_auto_parallel")
    restore()
    assert (get_context("mode"), get_context("deterministic")) == (1, "OFF")
    assert (get_auto_parallel_context("device_num"), get_auto_parallel_context("parallel_mode")) == (1, "stand_alone")


def test_a_test_that_sets_nothing_pays_little() -> None:
    started = time.perf_counter()
    for _ in range(1000):
        context_guard.keep()()
    assert time.perf_counter() - started < 0.05
