"""A call that sets options to the values that they have costs nothing and changes nothing."""
from __future__ import annotations

from typing import Any

import pytest

from torchspore.context import effects, public
from torchspore.context.store import STORE
from torchspore.errors import OptionTypeError, OptionValueError


@pytest.fixture(autouse=True)
def _mode() -> Any:
    mode = public.get_context("mode")
    yield
    public.set_context(mode=mode)


@pytest.mark.parametrize("values", [{"mode": 0}, {"device_target": "CPU"}, {"device_target": "CPU", "mode": 1}, {"deterministic": "OFF"},
                                    {"jit_config": {"jit_level": "O0"}}, {"max_call_depth": 900}])
def test_unchanged_values_do_not_change_the_key_of_graphs(values: dict[str, Any]) -> None:
    public.set_context(**values)
    version, snapshot = STORE.version, STORE.snapshot()
    for _ in range(3):
        public.set_context(**values)
    assert STORE.version == version and STORE.snapshot() is snapshot


def test_a_changed_value_acts_whatever_was_set_before() -> None:
    for mode in (0, 0, 1, 1, 0):
        public.set_context(mode=mode)
        assert public.get_context("mode") == mode and STORE.graph_mode == (mode == 0)
    with public.scope(mode=1):
        public.set_context(mode=1)
        assert not STORE.graph_mode
        public.set_context(mode=0)
        assert STORE.graph_mode
    assert STORE.graph_mode


def test_a_value_is_set_again_after_a_reset() -> None:
    public.set_auto_parallel_context(gradients_mean=True)
    public.set_auto_parallel_context(gradients_mean=True)
    public.reset_auto_parallel_context()
    assert not public.get_auto_parallel_context("gradients_mean")
    public.set_auto_parallel_context(gradients_mean=True)
    assert public.get_auto_parallel_context("gradients_mean")
    public.reset_auto_parallel_context()
    public.set_auto_parallel_context(gradients_mean=False)
    assert STORE.source("auto_parallel.gradients_mean")[0] == "code"
    public.reset_auto_parallel_context()


@pytest.mark.parametrize(("name", "value", "wrong"), [("mode", 0, 0.0), ("max_call_depth", 1000, 1000.0)])
def test_an_equal_value_of_another_type_is_checked(name: str, value: Any, wrong: Any) -> None:
    previous = public.get_context(name)
    public.set_context(**{name: value})
    public.set_context(**{name: value})
    with pytest.raises((OptionTypeError, OptionValueError)):
        public.set_context(**{name: wrong})
    public.set_context(**{name: previous})


def test_effects_that_the_program_can_undo_run_again() -> None:
    calls: list[Any] = []

    def find(effect: str) -> Any:
        return lambda value: calls.append((effect, value))

    with effects.fresh(is_loaded=True, find=find):
        public.set_context(deterministic="OFF")
        public.set_context(deterministic="OFF")
    assert calls == [("engine.execution.determinism:select", "OFF")] * 2
